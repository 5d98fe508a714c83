"""The rule by which a whole run decides: the default rule, or `--strict` (docs/decision.md).

`run.json` keeps it, so a run is decided by the same rule when it is judged or rendered again. That file belongs to the
report, which reads all of it (`reports.model.run_record`); here only the rule is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from verification.evidence.run_directory import run_record_of
from verification.vocabulary import strict_json
from verification.vocabulary.errors import UnfitEvidenceError

FORMAT = 1
#: Marks the file as ours: retention deletes only directories whose run.json carries it.
KIND = "onceproof-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    kind: str
    strict: bool = False


def is_strict(path: Path) -> bool:
    """Whether the run at `path`, or the run of the scenario or case at `path`, was made with `--strict`.

    False without a readable `run.json`: a scenario that was copied out of its run has none, and a report names one that
    is cut or foreign.
    """
    try:
        rule = strict_json.read(
            run_record_of(path),
            _Rule,
            of="run record",
            format_=FORMAT,
            error=UnfitEvidenceError,
            missing="the plan of this run is unknown",
        )
    except UnfitEvidenceError:
        return False
    return rule.strict and rule.kind == KIND
