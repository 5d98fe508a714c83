"""The script of a protocol case: its requests, the answers, and its statements about them; and the verdict on it.

A case drives a cluster request by request. Each request with its answer is an *exchange*. Each observation is a
*statement*: the observed value with the expected one. There are two kinds of statement. A case *requires* a precondition,
for instance that the transaction is open; where that does not hold, nothing was tested. A case *expects* a claim; where
that does not hold, the requirement is violated.

The script is on disk before it is judged, and `judge` decides from the file alone. A script without a claim proves
nothing and is an error, as is one that broke off. A case that does not apply to the release leaves a script with the
reason, so that a later judgement finds every case. A case may find this out after some exchanges: they and their
statements are kept, and a claim that does not hold is violated in spite of it.

Values are JSON: bytes are hex, shortened, with their true length; uuids are text. The file has a digest of all its other
fields. The digest detects a script that was edited by hand or damaged on a disk. Limit: it does not protect from a
forger, who can compute it anew.
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
#: A batch's header is 61 bytes; the records after it are of no use in a script.
BYTES_SHOWN = 64


def shown(value: Any, *, within: bool = False) -> str:
    """An observed or expected value for readers: without brackets at the top, and without words of a programming language.

    A text is as it is, and in quotation marks `within` another value.
    """
    if value is None or value in ([], {}):
        return "nothing" if not within else "(nothing)" if value in ([], {}) else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        text = ", ".join(shown(each, within=True) for each in value)
    elif isinstance(value, Mapping):
        text = ", ".join(f"{name}: {shown(each, within=True)}" for name, each in value.items())
    elif isinstance(value, str) and value and not within:
        return value
    else:
        return json.dumps(value, ensure_ascii=False, default=str)
    return f"({text})" if within else text


class UnfitScriptError(VerificationError):
    """A file is no script of this format, or not the one that was written. Hint: the message names the file."""


class Relation(StrEnum):
    """How an observed value must stand to the expected one."""

    EQUALS = "equals"
    ONE_OF = "is one of"
    DIFFERS = "differs from"
    AT_LEAST = "is at least"
    AT_MOST = "is at most"


#: What stands before the expected value in a sentence.
EXPECTED_AS: Mapping[Relation, str] = {
    Relation.EQUALS: "",
    Relation.ONE_OF: "one of ",
    Relation.DIFFERS: "anything but ",
    Relation.AT_LEAST: "at least ",
    Relation.AT_MOST: "at most ",
}

RELATIONS: Mapping[Relation, Callable[[Any, Any], bool]] = {
    Relation.EQUALS: lambda observed, expected: bool(observed == expected),
    Relation.ONE_OF: lambda observed, expected: observed in expected,
    Relation.DIFFERS: lambda observed, expected: bool(observed != expected),
    Relation.AT_LEAST: lambda observed, expected: observed is not None and bool(observed >= expected),
    Relation.AT_MOST: lambda observed, expected: observed is not None and bool(observed <= expected),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its answer. Without an answer `response` is None, and `error` is the reason.

    `to` names the broker, and the connection if it is not the usual one. Times are CLOCK_MONOTONIC nanoseconds.
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
    """A statement about a value that was observed after so many exchanges."""

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
        expected = f"{EXPECTED_AS[self.relation]}{shown(self.expected)}"
        return f"{self.what}: expected {expected}, observed {shown(self.observed)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUsed:
    """A topic of a case: the replicas of each partition, the leader of that time first.

    `min_in_sync` and `unclean_election` are the settings in force, None where the broker did not tell them.
    """

    name: str
    replicas: tuple[tuple[Int64, ...], ...]
    min_in_sync: Int64 | None = None
    unclean_election: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageChange:
    """The begin or the end of an outage of brokers, after so many exchanges; `what` is such as `crash of broker 2`."""

    after: Int64
    what: str
    at_ns: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One case as it was performed on one cluster.

    `generation` is the version of its transactional requests (TV1 or TV2), empty when it has none. `cluster` describes
    the cluster, and `configuration` the user's own settings by owner and name. `broke` is the reason why the case broke
    off, empty when it ended. `inapplicable` is the reason why the case does not apply to the release, empty when it
    does. `topics` and `outages` are None where the harness recorded none, as those before these fields.
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
    topics: tuple[TopicUsed, ...] | None = None
    outages: tuple[OutageChange, ...] | None = None
    configuration: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write script.json."""
        body = {"format": FORMAT, **asdict(self)}
        path.write_text(json.dumps({**body, "digest": digest(body)}, indent=1) + "\n", encoding="utf-8")


def digest(body: Mapping[str, Any]) -> str:
    """SHA-256 of a script's fields, which does not depend on the layout of the file."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def read(path: Path) -> Script:
    """Read script.json; raises UnfitScriptError when it is missing, truncated, of another program, or changed."""

    def unchanged(body: dict[str, Any]) -> dict[str, Any]:
        # A script without a digest comes from another harness, and is taken as it is.
        claimed = body.pop("digest", None)
        if claimed is not None and claimed != digest({"format": FORMAT, **body}):
            raise UnfitScriptError(f"{path} was changed after it was written: its digest is that of another script")
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
        raise UnfitScriptError(f"{path} is not a complete script: its exchanges are not numbered from 1 on")
    if any(not 0 <= each.after <= len(numbers) for each in script.statements):
        raise UnfitScriptError(f"{path} is not a complete script: a statement comes after an exchange that is missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptVerdict:
    """The judgement of one script; `violated` are the claims that do not hold.

    `without_findings` is the verdict, with its reason, that the script would have without them.
    """

    case: str
    verdict: Verdict
    reason: str
    violated: tuple[Statement, ...]
    requirements: tuple[RequirementVerdict, ...]
    without_findings: tuple[Verdict, str] = (Verdict.PASS, "")


def judge(script: Script) -> ScriptVerdict:
    """Decide from the statements alone. A violated claim outweighs everything else that went wrong."""
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
    """The verdict, with its reason, when no claim is violated."""
    claims = [each for each in script.statements if not each.required]
    unmet = next((each for each in script.statements if each.required and not each.holds), None)
    if script.inapplicable:
        return Verdict.NOT_APPLICABLE, script.inapplicable
    if unmet is not None:
        return Verdict.INCONCLUSIVE, f"a precondition does not hold: {unmet}"
    if script.broke:
        return Verdict.ERROR, script.broke
    if not claims:
        return Verdict.ERROR, "the script has no claim"
    return Verdict.PASS, f"{len(claims)} of {len(claims)} claims hold"


def plain(value: Any) -> Any:
    """A value of a request or answer in the form that JSON can hold."""
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
