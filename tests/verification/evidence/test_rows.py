"""Rows of evidence that follow from the experiment: whether brokers forgot producers, how long transactions may be open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.planted import sequences
from tests.support.planted.files import write
from verification.evidence.rows import all_rows, small_rows
from verification.evidence.run_evidence import read_run
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly


@pytest.mark.parametrize(
    ("expiration_s", "found"), [(0.0, {Anomaly.BROKEN_SEQUENCE}), (3600.0, {Anomaly.BROKEN_SEQUENCE}), (0.02, set())]
)
def test_sequences_are_judged_in_runs_that_no_broker_forgets(
    expiration_s: float, found: set[Anomaly], tmp_path: Path
) -> None:
    """A producer that brokers forgot may begin with any number, after as little time as the experiment says."""
    plant, _ = sequences.number_skipped("story")
    plant.experiment = replace(plant.experiment, producer_expiration_s=expiration_s)
    run = read_run(write(plant, tmp_path / "run"))
    assert {each.anomaly for each in judge_rows(all_rows(run))} == found


@pytest.mark.parametrize(("timeout_s", "rows_s"), [(0.0, 60), (6.5, 6.5)])
def test_transactions_may_be_open_as_long_as_the_experiment_says(
    timeout_s: float, rows_s: float, tmp_path: Path
) -> None:
    """Where the experiment says nothing, transactions have the timeout that Kafka's clients have by default."""
    plant, _ = sequences.number_skipped("story")
    plant.experiment = replace(plant.experiment, transaction_timeout_s=timeout_s)
    (row,) = small_rows(read_run(write(plant, tmp_path / "run")))["runs"]
    assert row["transaction_timeout_ns"] == rows_s * 10**9
