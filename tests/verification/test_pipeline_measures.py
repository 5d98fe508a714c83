"""Pipeline measures count outputs by the samples of their ends, and interrupted work by the log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.verification.test_coverage import fault
from tests.verification.test_fault_measures import sample, told
from verification.coverage import coverage, pipeline_measures
from verification.evidence.capture_reader import LogRow
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.experiment import EFFECT, ExperimentTopic, Floor
from verification.vocabulary.history import Entry, Phase
from verification.vocabulary.quiescent_state import PartitionEnd


def piped(*entries: Entry, end: int = 0) -> RunEvidence:
    """A run with samples, whose output ends at an offset."""
    run = told(*entries)
    ends = tuple(
        PartitionEnd(topic=topic, partition=0, start=0, high_watermark=at, last_stable_offset=at)
        for topic, at in (("out", end), ("in", 900))
    )
    return replace(run, captures=replace(run.captures, ends=ends))


SAMPLES = (
    sample(1, 50, 40),
    sample(2.9, 90, 70),
    sample(3.5, 200, 150),
    sample(4.9, 300, 260),
    sample(5.1, 500, 500),
    sample(2, 800, 800, topic="in"),
    replace(sample(4.95), high_watermark=-1, last_stable_offset=-1),
)


def test_outputs_are_counted_before_the_first_fault_and_after_the_last_heal() -> None:
    """Inputs do not count, and neither does what was not yet decided, or a look that no leader answered."""
    run = piped(fault(3, 5), *SAMPLES, end=600)
    assert pipeline_measures.copied_before(run) == {"out": 70}
    assert pipeline_measures.copied_after(run) == {"out": 600 - 260}
    assert pipeline_measures.copied_after(piped(fault(3, None), *SAMPLES, end=600)) == {"out": 0}


def test_without_a_fault_everything_was_copied_before_it() -> None:
    """And after the last heal, of which there is none, too."""
    run = piped(*SAMPLES, end=600)
    assert pipeline_measures.copied_before(run) == {"out": 500}
    assert pipeline_measures.copied_after(run) == {"out": 600}


AFTER = Phase(name="after-window", began_ns=5_000_000_000, ended_ns=9_000_000_000)


@pytest.mark.parametrize(
    ("offset", "entries", "count"),
    [
        (800, (AFTER, *SAMPLES), 1),
        (799, (AFTER, *SAMPLES), 0),
        (-1, (AFTER, *SAMPLES), 0),
        # What was fed later may be left.
        (800, (AFTER, *SAMPLES, sample(5.2, 950, 950, topic="in")), 1),
        (800, SAMPLES, 0),
        (800, (AFTER, *SAMPLES[:4]), 0),
    ],
)
def test_a_pipeline_has_caught_up_with_what_was_there_before_the_after_window(
    offset: int, entries: tuple[Entry, ...], count: int
) -> None:
    """Neither does a run without an after-window, or without a look at its input, say that it did."""
    assert pipeline_measures.caught_up(told(*entries, offset=offset)) == {"in partition 0": count}


def with_rows(run: RunEvidence, count: int) -> RunEvidence:
    """The same run with a table of a database."""
    table = ExperimentTopic(name="rows", partitions=1, replication=1, min_in_sync=1, reference="value", shape=EFFECT)
    experiment = replace(run.experiment, topics=(*run.experiment.topics, table), pipeline=0)
    end = PartitionEnd(topic="rows", partition=0, start=0, high_watermark=count, last_stable_offset=count)
    return replace(run, experiment=experiment, captures=replace(run.captures, ends=(*run.captures.ends, end)))


def test_rows_of_a_database_are_outputs() -> None:
    """They count like offsets of topics, and for themselves; a look at a database that was down does not count."""
    rows = [sample(1, 30, 30, topic="rows"), sample(2, -1, -1, topic="rows"), sample(4, 45, 45, topic="rows")]
    run = with_rows(piped(fault(3, 5), *SAMPLES, *rows, end=600), 100)
    assert pipeline_measures.copied_before(run) == {"out": 70, "rows": 30}
    assert pipeline_measures.copied_after(run) == {"out": 600 - 260, "rows": 100 - 45}
    assert pipeline_measures.copied_before(with_rows(piped(fault(3, 5), *SAMPLES, end=600), 0)) == {
        "out": 70,
        "rows": 0,
    }


def test_records_that_came_again_are_those_beyond_the_rows() -> None:
    """In the last looks at topics of the group, and in no other topic."""
    own = [
        sample(8, 40, 40, topic="g-relayed"),
        sample(9, 70, 70, topic="g-relayed"),
        replace(sample(9, 50, 50, topic="g-relayed"), partition=1),
        sample(9, 500, 500, topic="other"),
    ]
    assert pipeline_measures.redelivered(with_rows(piped(*SAMPLES, *own), 100)) == 70 + 50 - 100
    # A topic that is written in transactions has markers, too: the count of the pipeline itself has none.
    counted = sample(9, 103, 103, topic="g-deliveries")
    assert pipeline_measures.redelivered(with_rows(piped(*SAMPLES, *own, counted), 100)) == 3
    assert pipeline_measures.redelivered(piped(*SAMPLES)) == 0


class Log:
    """Rows of the log by the producers of a process."""

    def producer_rows(self, process: int, operation: int) -> tuple[LogRow, ...]:
        rows: tuple[LogRow, ...] = (
            (0, 0, 1, None, 7, 0, 0, 0),
            (0, 0, 2, "commit", None, None, None, 0),
            (0, 0, 3, None, 7, 0, 1, 0),
            (0, 0, 4, "abort", None, None, None, 1),
        )
        return rows if (process, operation) == (7, 0) else ()

    def topic_rows(self, capture: str) -> dict[int, int]:
        """Committed records by topic: more outputs than inputs."""
        return {0: 930, 1: 900} if capture == "committed" else {}


@pytest.mark.parametrize(("fan_out", "count"), [(1, 30), (2, -870), (None, 0)])
def test_outputs_beyond_those_of_each_input_were_copied_again(fan_out: int | None, count: int) -> None:
    """Where nothing says how many outputs each input must have, none was."""
    run = piped(fault(3, 5))
    run = replace(run, capture_reader=Log(), experiment=replace(run.experiment, fan_out=fan_out))  # type: ignore[arg-type]
    assert pipeline_measures.copied_again(run) == count


@pytest.mark.parametrize(("process", "count"), [(7, 1), (6, 0), (None, 0)])
def test_an_interrupted_copy_is_an_abort_of_the_pipeline(process: int | None, count: int) -> None:
    """Aborts of the feeder are none of the pipeline's."""
    run = piped(fault(3, 5))
    run = replace(run, capture_reader=Log(), experiment=replace(run.experiment, pipeline=process))  # type: ignore[arg-type]
    assert pipeline_measures.interrupted_copies(run) == count


def test_each_kill_must_have_met_work() -> None:
    """The one that met least counts; where no outputs were looked at, nothing is claimed."""
    steps = [replace(fault(at, at + 1, step=at), met=met) for at, met in ((3, 40), (5, 0), (7, None))]
    measured = coverage.MEASURES["met_work"].item(piped(*steps), Floor(name="met_work", need=1))
    assert measured is not None
    assert (measured.have, measured.text.endswith("(least: step 5)")) == (0, True)
    assert coverage.MEASURES["met_work"].item(piped(steps[-1]), Floor(name="met_work", need=1)) is None


@pytest.mark.parametrize(("fan_out", "count"), [(1, 1), (None, 0)])
def test_a_pipeline_that_was_stopped_early_is_not_drained(fan_out: int | None, count: int) -> None:
    """Then nothing says how many outputs each input must have."""
    run = piped(fault(3, 5))
    assert pipeline_measures.drained(replace(run, experiment=replace(run.experiment, fan_out=fan_out))) == count
