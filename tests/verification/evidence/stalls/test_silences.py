"""Silences: when a metric of a leader hides a last stable offset that stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.planted import silences
from tests.support.planted.cases import CASES
from tests.support.planted.files import write
from verification.evidence.run_evidence import read_run
from verification.evidence.stalls.silences import described, excuse, rows
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

PLANTED = [name for name in CASES if hasattr(silences, name)]
UNKNOWN = "the metric is not known for all of that time"


@pytest.mark.parametrize("name", PLANTED)
def test_the_files_say_what_was_planted(name: str, tmp_path: Path) -> None:
    """Both judges decide from the same facts, which are all in the history."""
    plant, _ = CASES[name]("a1b2c3d4e5f6")
    assert rows(read_run(write(plant, tmp_path / "run"))) == plant.rows["silences"]


def test_without_metrics_nothing_is_said(tmp_path: Path) -> None:
    """An offset that stands is then another matter."""
    plant, _ = CASES["clean"]("a1b2c3d4e5f6")
    assert rows(read_run(write(plant, tmp_path / "run"))) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"stated": 1.0}, "the metric said so"),
        ({"stated": None}, UNKNOWN),
        ({"stood_ms": 14_999}, "it stood for less than 15 s"),
        ({"stood_ms": 15_000}, ""),
    ],
)
def test_only_a_metric_that_says_0_all_the_time_is_silent(change: dict[str, Any], why: str) -> None:
    """The second judge decides the same."""
    row = silences.row_of(**change)
    assert excuse(row) == why
    honest = CASES["clean"]("planted")[0].rows
    found = [] if why else [RawViolation(anomaly=Anomaly.SILENT_METRIC, topic_index=0, partition=0, offset=0)]
    assert judge_rows({**honest, "silences": [row]}) == found


def test_the_finding_says_how_long_and_which_broker() -> None:
    """In one sentence."""
    assert described(silences.row_of()) == (
        "the last stable offset stood below the high watermark for 18 s, and LastStableOffsetLag of its leader, broker 1, "
        "was 0 all the time"
    )
