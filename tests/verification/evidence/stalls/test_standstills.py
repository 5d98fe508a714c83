"""Standstills: when a pipeline is to blame for nothing being committed, and how the finding says it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.planted import standstills
from tests.support.planted.cases import CASES
from tests.support.planted.copies import IN
from tests.support.planted.files import write
from tests.verification.test_coverage import fault
from verification.evidence.run_evidence import read_run
from verification.evidence.stalls.standstills import described, excuse, rows
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

PLANTED = [name for name in CASES if hasattr(standstills, name)]
SLOW = "clients were too slow at that time: the machine may have been"
SOON = "the last fault was healed, or the last instance started, within 90 s"


@pytest.mark.parametrize("name", PLANTED)
def test_the_files_say_what_was_planted(name: str, tmp_path: Path) -> None:
    """Both judges decide from the same facts, which are all in the history."""
    plant, _ = CASES[name]("a1b2c3d4e5f6")
    (planted,) = plant.rows["standstills"]
    (read,) = rows(read_run(write(plant, tmp_path / "run")))
    assert read == {**planted, "pace": pytest.approx(planted["pace"], abs=0.01)}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"moved": 1}, "its outputs moved"),
        ({"waiting": 0}, "no input waited"),
        ({"undisturbed_ms": 89_999}, SOON),
        ({"undisturbed_ms": 90_000}, ""),
        ({"pace": 0.3}, SLOW),
        ({"pace": 0.34}, ""),
        ({"pace": None}, SLOW),
    ],
)
def test_only_a_pipeline_without_an_excuse_is_blamed(change: dict[str, Any], why: str) -> None:
    """Everything else that explains it is named, and the second judge blames in the same cases."""
    row = standstills.row_of(**change)
    assert excuse(row) == why
    honest = CASES["clean"]("planted")[0].rows
    found = [] if why else [RawViolation(anomaly=Anomaly.NO_PROGRESS, topic_index=IN, partition=0, offset=0)]
    assert judge_rows({**honest, "standstills": [row]}) == found


def test_a_fault_that_was_not_healed_is_an_excuse(tmp_path: Path) -> None:
    """One that was healed long ago is none, and neither is a run without a pipeline judged so."""
    plant, _ = standstills.stalled("a1b2c3d4e5f6")
    run = read_run(write(plant, tmp_path / "run"))
    for healed_s, why in ((5, ""), (None, SOON)):
        struck = replace(run, history=replace(run.history, entries=(*run.history.entries, fault(3, healed_s))))
        (row,) = rows(struck)
        assert excuse(row) == why
    assert rows(replace(run, experiment=replace(run.experiment, pipeline=None))) == []


def test_the_finding_says_how_long_how_many_and_who() -> None:
    """In one sentence."""
    assert described(standstills.row_of(instances=2)) == (
        "for the last 90 s before the inputs ended no output was committed, though 4 offsets of committed inputs had waited "
        "for as long; 2 instances ran, and the last fault or start was 130 s before"
    )
