"""`verdicts.json`: the judgement of one run as a file, so that a report needs neither Spark nor the evidence.

One object: `format`, then the fields of `ScenarioVerdict`. A verdict is written by its name (`"INCONCLUSIVE"`), never
by its rank, so that a person can read the file and the order of the lattice may grow. The file is written beside its
place and then moved into it: a reader sees the old judgement or the new one, never half of one. Reading is strict: a
foreign or cut file is refused with a sentence, because a report that guesses a verdict is worse than none.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.verdict import (
    CoverageItem,
    Finding,
    RequirementVerdict,
    ScenarioVerdict,
    Verdict,
    Violation,
    Witness,
    WitnessOperation,
    WitnessPlace,
)

FORMAT = 1


class UnfitVerdictError(Exception):
    """`verdicts.json` is missing, cut, foreign or of another format; the message says which."""


def _named(body: Any) -> Any:
    """The same structure with every Verdict replaced by its name."""
    if isinstance(body, Verdict):
        return body.name
    if isinstance(body, dict):
        return {name: _named(value) for name, value in body.items()}
    if isinstance(body, list | tuple):
        return [_named(each) for each in body]
    return body


def _said(body: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that say nothing."""
    return {name: value for name, value in body.items() if value is not None}


def dumps(verdict: ScenarioVerdict) -> str:
    """The file's whole text; equal verdicts give equal bytes. Fields of a violation that are None are left out."""
    body = asdict(verdict)
    for finding in body["findings"]:
        finding["examples"] = [_said(example) for example in finding["examples"]]
        if finding["witness"] is not None:
            shown = {name: [_said(each) for each in finding["witness"][name]] for name in ("places", "operations")}
            finding["witness"] |= shown
    return json.dumps({"format": FORMAT, **_named(body)}, indent=1) + "\n"


def write(path: Path, verdict: ScenarioVerdict) -> None:
    """Write `verdicts.json` at once or not at all; the directory must exist."""
    atomic_write(path, dumps(verdict))


def _finding(body: dict[str, Any]) -> Finding:
    examples = tuple(Violation(**each) for each in body["examples"])
    return Finding(**{**body, "examples": examples, "witness": _witness(body.get("witness"))})


def _witness(body: dict[str, Any] | None) -> Witness | None:
    if body is None:
        return None
    places = tuple(WitnessPlace(**{**each, "given_to": tuple(each["given_to"])}) for each in body["places"])
    return Witness(
        why=body["why"], places=places, operations=tuple(WitnessOperation(**each) for each in body["operations"])
    )


def _requirement(body: dict[str, Any]) -> RequirementVerdict:
    return RequirementVerdict(**{**body, "verdict": Verdict[body["verdict"]]})


def _scenario_verdict(body: dict[str, Any]) -> ScenarioVerdict:
    values: dict[str, Any] = dict(body)
    values["verdict"] = Verdict[body["verdict"]]
    values["findings"] = tuple(_finding(each) for each in body["findings"])
    values["coverage"] = tuple(CoverageItem(**each) for each in body["coverage"])
    values["requirements"] = tuple(_requirement(each) for each in body["requirements"])
    values["crashed"] = tuple(str(each) for each in body.get("crashed", ()))
    values["counts"] = tuple((str(name), int(count)) for name, count in body["counts"])
    return ScenarioVerdict(**values)


def read(path: Path) -> ScenarioVerdict:
    """Read `verdicts.json`.

    Raises UnfitVerdictError when the file is missing, cut, foreign or of another format.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnfitVerdictError(f"{path} does not exist; this run was not judged") from None
    except (OSError, ValueError) as error:
        raise UnfitVerdictError(f"{path} is not readable JSON ({error}); the file is cut or foreign") from error
    if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
        raise UnfitVerdictError(f"{path} is not of verdict format {FORMAT}, the one that this version reads")
    try:
        return _scenario_verdict(body)
    except (KeyError, TypeError, ValueError) as error:
        raise UnfitVerdictError(f"{path} does not fit verdict format {FORMAT}: {error!r}") from error
