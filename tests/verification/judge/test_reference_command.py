"""`python -m verification --reference`: the exit code follows the evidence, with plain Python and without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.planted import copies, files, writes
from tests.support.planted.histories import Plant
from verification.__main__ import main
from verification.vocabulary.experiment import Experiment, Floor
from verification.vocabulary.verdict import ExitCode

CLEAN = writes.clean("clean")[0]
LOST = writes.lost_transaction("lost")[0]


def judged(plant: Plant, root: Path, **changes: object) -> int:
    """The exit code for a planted history whose experiment is changed."""
    experiment: Experiment = replace(plant.experiment, **changes)  # type: ignore[arg-type]
    directory = files.write(replace(plant, experiment=experiment), root)
    return main(["--reference", str(directory.root)])


def test_a_clean_history_is_conformant_and_a_lost_record_is_not(tmp_path: Path) -> None:
    """0 and 1."""
    assert judged(CLEAN, tmp_path / "clean") == ExitCode.CONFORMANT
    assert judged(LOST, tmp_path / "lost") == ExitCode.VIOLATION


def test_too_little_is_inconclusive_also_when_nothing_is_found(tmp_path: Path) -> None:
    """A floor that was not reached is 2; an unknown floor is our error, 5."""
    floor = Floor(name="transactions", need=10**6)
    assert judged(CLEAN, tmp_path / "few", floors=(floor,)) == ExitCode.INCONCLUSIVE
    assert judged(CLEAN, tmp_path / "odd", floors=(replace(floor, name="wishes"),)) == ExitCode.ENVIRONMENT


@pytest.mark.parametrize(
    ("plant", "code"), [(LOST, ExitCode.INCONCLUSIVE), (CLEAN, ExitCode.ENVIRONMENT)], ids=["detected", "missed"]
)
def test_a_control_alone_says_nothing_about_a_subject(plant: Plant, code: ExitCode, tmp_path: Path) -> None:
    """A detected control decides nothing about a subject; a missed one is an error."""
    assert judged(plant, tmp_path / "control", control_expects=("lost-write",)) == code


def test_a_duplicate_is_what_at_least_once_allows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The claim is in scenario.json, so that the evidence alone decides: a duplicate passes with it, a loss does not."""
    twice, lost = (case("copied")[0] for case in (copies.copied_twice, copies.offset_ahead))
    assert judged(twice, tmp_path / "exactly") == ExitCode.VIOLATION
    assert capsys.readouterr().out.endswith(": 2 duplicate\n")
    assert judged(twice, tmp_path / "again", semantics="at-least-once") == ExitCode.CONFORMANT
    assert capsys.readouterr().out.endswith(": nothing; 2 duplicates, which at-least-once allows\n")
    assert judged(lost, tmp_path / "lost", semantics="at-least-once") == ExitCode.VIOLATION
