"""The script of a protocol case: what was asked of a broker, what it answered, and what was said about it.

A case drives a cluster request by request. Everything it sends and is answered is an *exchange*; everything it says
about what it saw is a *statement*: the observed value beside the expected one. Two kinds of statement exist. What a
case *requires* is the ground it stands on (the transaction is open, the record is acknowledged): where it does not hold
nothing was tested. What it *expects* is the claim: where it does not hold, the requirement is violated.

The script is on disk before it is judged, and `judge` decides from the file alone. A script that expects nothing
proves nothing and is an error, as is one that broke off. A case that does not apply to the release leaves a script too,
which says why, so that whoever judges again finds every case. It may have found that out on the way: what it was
answered and what it said until then is kept, and a claim that does not hold is violated all the same.

Values are JSON: bytes are hex, shortened, with their true length; uuids are text. The file carries a digest of all of
its other fields. It protects nobody from a forger, who can compute it anew; it tells a script that was edited by hand,
or damaged on a disk, from the one that was performed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

from verification.vocabulary import strict_json
from verification.vocabulary.errors import VerificationError
from verification.vocabulary.strict_json import Float64, Int64
from verification.vocabulary.verdict import RequirementVerdict, Verdict

FORMAT = 1
#: A batch's header is 61 bytes; what follows are records that nobody reads in a script.
BYTES_SHOWN = 64


class UnfitScriptError(VerificationError):
    """A file is no script of this format, or not the one that was written. Hint: the message names the file."""


class Relation(StrEnum):
    """How an observed value must stand to the expected one."""

    EQUALS = "equals"
    ONE_OF = "is one of"
    DIFFERS = "differs from"
    AT_LEAST = "is at least"
    AT_MOST = "is at most"


RELATIONS: Mapping[Relation, Callable[[Any, Any], bool]] = {
    Relation.EQUALS: lambda observed, expected: bool(observed == expected),
    Relation.ONE_OF: lambda observed, expected: observed in expected,
    Relation.DIFFERS: lambda observed, expected: bool(observed != expected),
    Relation.AT_LEAST: lambda observed, expected: observed is not None and bool(observed >= expected),
    Relation.AT_MOST: lambda observed, expected: observed is not None and bool(observed <= expected),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its answer, None when there was none; `error` then says why.

    `to` names the broker, and the connection where it is not the usual one. Times are CLOCK_MONOTONIC nanoseconds.
    """

    number: Int64
    api: str
    version: Int64
    to: str
    request: Any
    response: Any
    sent_ns: Int64
    answered_ns: Int64 | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What was said about something that was observed after so many exchanges."""

    after: Int64
    what: str
    relation: Relation
    expected: Any
    observed: Any
    required: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is true; values that cannot be compared do not fit."""
        try:
            return RELATIONS[self.relation](self.observed, self.expected)
        except TypeError:
            return False

    def __str__(self) -> str:
        return f"{self.what}: observed {self.observed!r}, which must be that it {self.relation} {self.expected!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One case as it was performed on one cluster.

    `generation` is the transaction protocol whose requests were used (TV1, TV2), empty where there is none in it.
    `cluster` says what it ran on, `broke` why it could not be performed to its end, empty when it was, `inapplicable`
    why it was not begun, or not ended, because the release does not have what it is about.
    """

    case: str
    claim: str
    requirements: tuple[str, ...]
    generation: str
    release: str
    cluster: str
    features: dict[str, Int64] = field(default_factory=dict)
    exchanges: tuple[Exchange, ...] = ()
    statements: tuple[Statement, ...] = ()
    broke: str = ""
    seconds: Float64 = 0.0
    replay: str = ""
    inapplicable: str = ""

    def write(self, path: Path) -> None:
        """Write script.json."""
        body = {"format": FORMAT, **asdict(self)}
        path.write_text(json.dumps({**body, "digest": digest(body)}, indent=1) + "\n", encoding="utf-8")


def digest(body: Mapping[str, Any]) -> str:
    """SHA-256 of a script's fields, however the file is laid out."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def read(path: Path) -> Script:
    """Read script.json; raises UnfitScriptError when it is missing, cut, foreign or not as it was written."""

    def unchanged(body: dict[str, Any]) -> dict[str, Any]:
        # A script without a digest is another harness's, and taken as it is.
        claimed = body.pop("digest", None)
        if claimed is not None and claimed != digest({"format": FORMAT, **body}):
            raise UnfitScriptError(f"{path} is not what was written: its digest is that of another script")
        return body

    script = strict_json.read(
        path,
        Script,
        of="script",
        format_=FORMAT,
        error=UnfitScriptError,
        missing="this case left no script",
        prepare=unchanged,
    )
    _fits(path, script)
    return script


def _fits(path: Path, script: Script) -> None:
    """Exchanges are numbered from 1, and every statement comes after one of them."""
    numbers = [each.number for each in script.exchanges]
    if numbers != list(range(1, len(numbers) + 1)):
        raise UnfitScriptError(f"{path} is not a whole script: its exchanges are not numbered from 1 on")
    if any(not 0 <= each.after <= len(numbers) for each in script.statements):
        raise UnfitScriptError(f"{path} is not a whole script: a statement comes after an exchange that is not there")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptVerdict:
    """The judgement of one script; `violated` are the claims that do not hold.

    `without_findings` is what the script is worth apart from them, with the reason.
    """

    case: str
    verdict: Verdict
    reason: str
    violated: tuple[Statement, ...]
    requirements: tuple[RequirementVerdict, ...]
    without_findings: tuple[Verdict, str] = (Verdict.PASS, "")


def judge(script: Script) -> ScriptVerdict:
    """Decide from the statements alone. A violated claim outweighs whatever else went wrong."""
    violated = tuple(each for each in script.statements if not each.required and not each.holds)
    without_findings = _without_findings(script)
    verdict, reason = (Verdict.FAIL, str(violated[0])) if violated else without_findings
    return ScriptVerdict(
        case=script.case,
        verdict=verdict,
        reason=reason,
        violated=violated,
        requirements=tuple(RequirementVerdict(id=each, verdict=verdict, reason=reason) for each in script.requirements),
        without_findings=without_findings,
    )


def _without_findings(script: Script) -> tuple[Verdict, str]:
    """What the script is worth where no claim is violated."""
    claims = [each for each in script.statements if not each.required]
    unmet = next((each for each in script.statements if each.required and not each.holds), None)
    if script.inapplicable:
        return Verdict.NOT_APPLICABLE, script.inapplicable
    if unmet is not None:
        return Verdict.INCONCLUSIVE, f"the ground for the claim was missing: {unmet}"
    if script.broke:
        return Verdict.ERROR, script.broke
    if not claims:
        return Verdict.ERROR, "the script says nothing about what it saw"
    return Verdict.PASS, f"{len(claims)} of {len(claims)} claims hold"


def plain(value: Any) -> Any:
    """A request's or answer's value as JSON shows it."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return {"bytes": len(data), "hex": data[:BYTES_SHOWN].hex()}
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return repr(value)
