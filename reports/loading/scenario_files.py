"""Read the files of a scenario, and name the defects of each.

Evidence may be any bytes. A file that is missing, truncated, foreign, not text or of wrong types becomes a named problem
and None, never an exception. A truncated history is shown as far as it goes. A verdict on another run is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from reports.model.report import EvidenceFile, Problem
from verification.evidence import history_file as histories
from verification.evidence import transaction_log_file, verdict_file
from verification.evidence.history_file import UnfitHistoryError
from verification.evidence.run_directory import CONTENTS, RunDirectory
from verification.evidence.transaction_log_file import TransactionLog
from verification.evidence.verdict_file import UnfitVerdictError
from verification.vocabulary import experiment as experiments
from verification.vocabulary import quiescent_state
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.experiment import Experiment, UnfitExperimentError
from verification.vocabulary.history import History
from verification.vocabulary.quiescent_state import PartitionEnd
from verification.vocabulary.verdict import ScenarioVerdict

Content = TypeVar("Content")
_UNFIT = (
    UnfitEvidenceError,
    UnfitExperimentError,
    UnfitHistoryError,
    UnfitVerdictError,
    OSError,
    ValueError,
    TypeError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFiles:
    """The readable files; `place` is the directory's path below the root, empty for the root itself."""

    place: str
    experiment: Experiment | None
    history: History | None
    transaction_log: TransactionLog | None
    judged: ScenarioVerdict | None
    ends: tuple[PartitionEnd, ...] | None
    problems: tuple[Problem, ...]
    evidence: tuple[EvidenceFile, ...]


def read_files(directory: RunDirectory, root: Path) -> ScenarioFiles:
    """Read the directory of one scenario, which is `root` or below it. Bad content raises no error."""
    place = "" if directory.root == root else directory.root.relative_to(root).as_posix()
    problems: list[Problem] = []

    def attempt(read: Callable[[], Content]) -> Content | None:
        return _attempt(read, problems, place or directory.root.name, directory.root)

    experiment = attempt(lambda: experiments.read(directory.experiment))
    history = attempt(lambda: histories.read(directory.history))
    if history is None:
        history = _attempt(
            lambda: histories.read(directory.history, allow_cut=True),
            [],
            place,
            directory.root,
        )
    judged = attempt(lambda: verdict_file.read(directory.verdicts))
    if judged is not None and experiment is not None and judged.run != experiment.run:
        text = _mismatch("verdicts.json", judged.run, "scenario.json", experiment.run)
        problems.append(Problem(place=place or directory.root.name, text=text))
        judged = None
    log = attempt(lambda: transaction_log_file.read(directory.transaction_log))
    if log is not None and history is not None and log.header.run != history.run:
        text = _mismatch("transaction_log.jsonl.gz", log.header.run, "history.jsonl", history.run)
        problems.append(Problem(place=place or directory.root.name, text=text))
        log = None
    # A scenario without captures was not judged; that is a problem already.
    state = _attempt(lambda: quiescent_state.read(directory.captures), [], place, directory.root)
    ends = None if state is None else state.ends
    return ScenarioFiles(
        place=place,
        experiment=experiment,
        history=history,
        transaction_log=log,
        judged=judged,
        ends=ends,
        problems=tuple(problems),
        evidence=_evidence(directory.root, place),
    )


def _mismatch(file: str, run: str, other: str, other_run: str) -> str:
    named = f"belongs to run {run}" if run else "names no run"
    return f"{file} {named}, but {other} belongs to run {other_run or 'without a name'}"


def _attempt(read: Callable[[], Content], problems: list[Problem], place: str, directory: Path) -> Content | None:
    try:
        return read()
    except KeyError as error:
        text = f"a file lacks the field {error}"
    except _UNFIT as error:
        text = str(error)
    problems.append(Problem(place=place, text=text.replace(f"{directory}/", "")))
    return None


def _evidence(directory: Path, place: str) -> tuple[EvidenceFile, ...]:
    prefix = f"{place}/" if place else ""
    return tuple(
        EvidenceFile(path=prefix + name + ("/" if (directory / name).is_dir() else ""), what=what)
        for name, what in CONTENTS
        if (directory / name).exists()
    )
