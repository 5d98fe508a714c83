"""`verdicts.json`: the judgement of one run as a file, so that a report needs neither Spark nor the evidence.

One object: `format`, then the fields of `ScenarioVerdict`. A verdict is written by its name (`"INCONCLUSIVE"`), never
by its rank, so that a person can read the file and the order of the lattice may grow. The file is written next to its
place and then moved into it: a reader sees the old judgement or the new one, never half of one. Reading is strict: a
foreign or cut file is refused with a sentence, because a report that guesses a verdict is worse than none.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from verification.evidence.atomic_write import atomic_write
from verification.vocabulary import strict_json
from verification.vocabulary.verdict import (
    ScenarioVerdict,
    Verdict,
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
    """Without the fields that are None."""
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
    """Write `verdicts.json` atomically; the directory must exist."""
    atomic_write(path, dumps(verdict))


def _with_verdicts(body: dict[str, Any]) -> dict[str, Any]:
    """The object with the number of each verdict instead of its name."""
    for each in (body, *body["requirements"]):
        each["verdict"] = Verdict[each["verdict"]].value
    return body


def read(path: Path) -> ScenarioVerdict:
    """Read `verdicts.json`.

    Raises UnfitVerdictError when the file is missing, cut, foreign or of another format.
    """
    return strict_json.read(
        path,
        ScenarioVerdict,
        of="verdict",
        format_=FORMAT,
        error=UnfitVerdictError,
        missing="this run was not judged",
        required=("findings", "coverage", "requirements", "counts"),
        prepare=_with_verdicts,
    )
