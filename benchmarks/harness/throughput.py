"""Measures how fast records are captured and judged, compared with a plain consumer that only reads them.

The ordinary workload writes the records through the ordinary drivers, so the evidence is that of a run: operations,
acknowledgements, and the records of two live observers, in addition to the log. Only the pace differs: transactions are
large and no fault is injected, so that a million records do not take half an hour.

Then three things take turns, several times: one process reads every record with a plain consumer; Spark captures the
log, the read_uncommitted delivery and the read_committed delivery; the judge judges. Each record counts once, although
capture and judge see it up to five times: in three captures and in the evidence of two observers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.harness.judging import judged
from benchmarks.measuring.errors import WorthlessJudgementError
from benchmarks.measuring.ratio import Ratio, Unit
from fixtures.clients.plain_reader import read_all
from fixtures.waiting import await_until
from fixtures.workloads import OrderFanOut
from runner.resources import ScenarioLane
from runner.scenarios.phases import quiesce
from runner.scenarios.scenario import THREE_BROKERS, Scenario
from runner.scenarios.scenario_run import ScenarioRun
from verification.spark.capture import capture
from verification.vocabulary.experiment import Floor
from verification.vocabulary.verdict import ScenarioVerdict

#: The first round warms Spark up, the second is like a further scenario of a run. Both are in the spread.
ROUNDS = 3
#: The aim: the records are written in this time, if the machine can do it.
FILL_S = 40.0
#: The rate of clients of an ordinary scenario on two busy cores. Writing may be that slow, not slower.
SLOWEST_PER_S = 2_000
#: Connecting and initialising, on top of the time for writing.
FILL_SLACK_S = 60.0
#: Large transactions, because commits and requests cost the same for any number of records.
RECORDS_PER_TRANSACTION = 2_000
#: A margin, because records of failed operations do not count.
MARGIN = 1.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputRound:
    """Seconds for the same records."""

    reading_s: float
    capture_s: float
    judging_s: float


def measure(lane: ScenarioLane, say: Callable[[str], None], *, records: int) -> tuple[Ratio, ...]:
    """Write, then read, capture and judge by turns. Raises WorthlessJudgementError, and the errors of a run."""
    lane.spark()
    scenario_run = ScenarioRun(_scenario(records), lane)
    lane.console.follow("bench", scenario_run.status)
    try:
        began = time.monotonic()
        _fill(scenario_run, records)
        written = sum(end.high_watermark - end.start for end in scenario_run.captures.ends)
        say(f"{records} records wanted: {written} offsets written and quiescent in {time.monotonic() - began:.0f} s")
        rounds, count = [], 0
        for number in range(1, ROUNDS + 1):
            each, count = _round(scenario_run)
            rounds.append(each)
            say(
                f"round {number} of {ROUNDS}, {count} records: read in {each.reading_s:.1f} s, "
                f"captured in {each.capture_s:.1f} s, judged PASS in {each.judging_s:.1f} s"
            )
    finally:
        lane.console.unfollow("bench")
        scenario_run.close()
    return _ratios(rounds, count)


def _ratios(rounds: list[ThroughputRound], count: int) -> tuple[Ratio, ...]:
    def ratio(subject: str, seconds: Callable[[ThroughputRound], float]) -> Ratio:
        return Ratio(
            subject=f"{subject} of {count} records",
            against="a plain consumer that reads them",
            unit=Unit.RECORDS_PER_S,
            pairs=tuple((count / seconds(each), count / each.reading_s) for each in rounds),
        )

    return (
        ratio("capture", lambda each: each.capture_s),
        ratio("judgement", lambda each: each.judging_s),
        ratio("capture and judgement", lambda each: each.capture_s + each.judging_s),
    )


def _scenario(records: int) -> Scenario:
    return Scenario(
        name="bench/throughput",
        test_name="",
        claim="Without faults every committed transaction is visible as a whole and no aborted one is.",
        requirements=("TXN-16", "TXN-25", "ISO-02", "ISO-05"),
        cluster=THREE_BROKERS,
        workload=OrderFanOut(
            partitions=4,
            records_per_transaction=RECORDS_PER_TRANSACTION,
            plain_ratio=0.02,
            rate=max(SLOWEST_PER_S, round(records / FILL_S)),
        ),
        # With these floors, PASS means that every record was acknowledged and that some transactions were aborted.
        floors=(Floor(name="records", need=records), Floor(name="aborted", need=1)),
    )


def _fill(scenario_run: ScenarioRun, records: int) -> None:
    """The phases of a run without faults, until everything is written, quiescent and pinned."""
    within_s = FILL_SLACK_S + records / SLOWEST_PER_S
    with scenario_run.phase("set up"):
        scenario_run.set_up()
    with scenario_run.phase("write"):
        scenario_run.start_workload()
        await_until(
            lambda: scenario_run.workload.progress().records >= records * MARGIN,
            f"{records} acknowledged records",
            timeout_s=within_s,
            last=lambda: str(scenario_run.workload.progress()),
        )
    quiesce(scenario_run, drain_within_s=within_s)
    scenario_run.pin()
    # The evidence is complete. Everything that follows is repeated on it.
    scenario_run.recorder.seal()


def _round(scenario_run: ScenarioRun) -> tuple[ThroughputRound, int]:
    """Read, capture and judge once; the times, and the number of records that all of them saw."""
    began = time.monotonic()
    read = read_all(
        scenario_run.cluster.witness_bootstrap,
        {(end.topic, end.partition): (end.start, end.high_watermark) for end in scenario_run.captures.ends},
    )
    read_at = time.monotonic()
    capture(scenario_run.lane.spark(), scenario_run.directory, **scenario_run.capture_arguments())
    captured_at = time.monotonic()
    verdict, judging_s = judged(scenario_run.lane, scenario_run.directory)
    require_all(verdict, read)
    return ThroughputRound(reading_s=read_at - began, capture_s=captured_at - read_at, judging_s=judging_s), read


def require_all(verdict: ScenarioVerdict, read: int) -> None:
    """Raise WorthlessJudgementError unless the judge had every record that the plain consumer received."""
    counts = dict(verdict.counts)
    if counts["uncommitted"] != read or counts["log"] < read or not 0 < counts["committed"] < read:
        raise WorthlessJudgementError(
            f"A plain consumer received {read} records, but {counts['uncommitted']} were judged as delivered, "
            f"{counts['committed']} of them committed, and {counts['log']} are in the log."
        )
