"""A violation of an upgrade names stage, levels, and release and role of each node; so KB-10 and KB-12 are recognised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.planted.files import write
from tests.support.planted.histories import Planted
from verification.checks.transaction_log import late_completions, refused_producers
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.evidence.stalls import late_completions as late
from verification.evidence.transaction_log_file import LogHeader, LogRange, TransactionLog
from verification.evidence.transaction_log_rows import rows, undisturbed_ms, wall_clock_ns
from verification.judge.circumstances import circumstances, shown
from verification.known_bugs.signatures.recognise import recognise
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Action, FaultRecord, Operation, Outcome, Phase, Sample
from verification.vocabulary.transaction_log import TOPIC, Entry, State
from verification.vocabulary.violations import RawViolation

S = 1_000_000_000
#: The coordinator's partition of the transaction log, and the run's own two partitions.
LOG_PARTITION = 2
HELD, FREE = "a-0", "b-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A commit is decided at 12 s and completed at 24 s; node 2 was rolled at 3 s, the next step strikes at 23 s.

    The defaults are the known bug: node 2 coordinates, node 3 leads the partition whose LSO stands. Looks are (seconds,
    last stable offset, high watermark) of that partition.
    """

    source: str = "4.1.2"
    target: str = "4.2.0"
    coordinator: int = 2
    leader: int = 3
    places: frozenset[str] = frozenset({HELD, FREE})
    looks: tuple[tuple[float, int, int], ...] = ((12.5, 4, 9), (15, 4, 9), (22, 4, 12))
    completed_s: float | None = 24.0


def _step(number: int, struck_s: float, over_s: float, **changes: object) -> FaultRecord:
    step = FaultRecord(
        step=number,
        fault="RollNext",
        description="",
        target="",
        began_ns=int(struck_s * S),
        struck_ns=int(struck_s * S),
        confirmed_ns=int(over_s * S),
        healed_ns=int(over_s * S),
    )
    return replace(step, **changes)  # type: ignore[arg-type]


def _sample(topic: str, partition: int, at_s: float, leader: int, stable: int = -1, high: int = -1) -> Sample:
    return Sample(
        at_ns=int(at_s * S),
        topic=topic,
        partition=partition,
        leader=leader,
        high_watermark=high,
        last_stable_offset=stable,
    )


def told(story: Story, root: Path) -> RunEvidence:
    """The evidence of a story."""
    planted = Planted(run="story", now=12 * S - 500_000_000)
    client = planted.client("tx-0")
    operation, _ = planted.transaction(client, ((0, 0), (1, 0)))
    planted.entries += [
        Phase(name="await steady", began_ns=0, ended_ns=2 * S),
        Phase(name="roll 1 of 3", began_ns=2 * S, ended_ns=20 * S),
        Phase(name="roll 2 of 3", began_ns=20 * S, ended_ns=30 * S),
        _step(0, 3, 8, stage="roll 1 of 3", releases={"2": story.target}),
        _step(1, 23, 26, stage="roll 2 of 3", releases={"3": story.target}),
        _sample(TOPIC, LOG_PARTITION, 1, story.coordinator),
        *(_sample("a", 0, at_s, story.leader, stable, high) for at_s, stable, high in story.looks),
        *(_sample("b", 0, at_s, 1, 7, 7) for at_s in (13, 18)),
    ]
    plant = planted.finish()
    nodes = dict.fromkeys(("1", "2", "3"), story.source)
    versions = {"feature metadata.version": "27"}
    plant.experiment = replace(plant.experiment, release=story.target, nodes=nodes, versions=versions)
    directory = write(plant, root)
    run = read_run(directory)
    zero_ms = (wall_clock_ns(run) or 0) // 1_000_000
    assert operation.decided_ns is not None

    def entry(number: int, state: State, at_s: float) -> Entry:
        over = state in (State.EMPTY, State.COMPLETE_COMMIT)
        return Entry(
            partition=LOG_PARTITION,
            offset=number,
            transactional_id="tx-0",
            state=state,
            places=frozenset() if over else story.places,
            began_ms=zero_ms + 11_000,
            appended_ms=zero_ms + round(at_s * 1_000),
        )

    entries = [entry(0, State.EMPTY, 1), entry(1, State.ONGOING, 11), entry(2, State.PREPARE_COMMIT, 12)]
    if story.completed_s is not None:
        entries.append(entry(3, State.COMPLETE_COMMIT, story.completed_s))
    header = LogHeader(run="story", ranges=(LogRange(partition=LOG_PARTITION, start=0, end=9),), new_ids=("tx-0",))
    return replace(run, transaction_log=TransactionLog(header=header, entries=tuple(entries)))


def found(story: Story, root: Path) -> tuple[RunEvidence, list[RawViolation]]:
    """A story, and what the check of its transaction log finds."""
    evidence = told(story, root / "run")
    return evidence, list(late_completions(rows(evidence)))


def test_a_commit_that_no_marker_followed_is_named_with_both_roles(tmp_path: Path) -> None:
    """The text has release and node of coordinator and leader, the stage, the other nodes and the feature levels."""
    evidence, (violation,) = found(Story(), tmp_path)
    assert (violation.anomaly, violation.topic_index) == (Anomaly.STUCK_LSO, -1)
    assert recognise(evidence, [violation]) == "KB-10"
    example = shown(evidence, late.with_operation(evidence, violation))
    assert (example.process, example.operation) == (0, 1), "the operation that asked for the commit"
    assert example.detail == (
        "coordinator 4.2.0 on broker 2, leader 4.1.2 on broker 3, in stage roll 1 of 3; "
        "nodes 1 4.1.2, 2 4.2.0, 3 4.1.2; metadata.version 27; "
        "PrepareCommit of tx-0, with a-0, b-0: not completed, and the LSO of a-0 stood, for 9.5 s in which every node was "
        "up and no fault stood"
    )
    around = example.circumstances
    assert around is not None
    assert (around.stage, around.coordinator, around.leaders) == ("roll 1 of 3", 2, (3,))
    assert around.releases == {"1": "4.1.2", "2": "4.2.0", "3": "4.1.2"}
    assert around.levels == {"metadata.version": 27}


@pytest.mark.parametrize(
    "story",
    [
        Story(completed_s=None),
        Story(source="4.0.2"),
        Story(looks=((11.5, 4, 9), (12.5, 4, 9), (16.6, 4, 9), (17, 5, 9))),
    ],
)
def test_a_decision_that_holds_back_readers_is_late(story: Story, tmp_path: Path) -> None:
    """Also one that is never completed, and one that held back readers for little longer than the bound."""
    _, violations = found(story, tmp_path)
    assert len(violations) == 1


@pytest.mark.parametrize(
    "story",
    [
        Story(target="4.2.1"),
        Story(coordinator=1),
        Story(leader=2),
        Story(source="4.2.0"),
    ],
)
def test_a_near_miss_is_a_finding_without_the_name(story: Story, tmp_path: Path) -> None:
    """Another release or role is something else than the known bug."""
    evidence, violations = found(story, tmp_path)
    assert len(violations) == 1
    assert recognise(evidence, violations) is None


@pytest.mark.parametrize(
    "story",
    [
        Story(completed_s=16.4),
        Story(looks=((12.5, 4, 9), (14, 5, 9), (17, 5, 9), (22, 6, 12))),
        Story(looks=((12.5, 4, 9), (15, 9, 9), (17, 4, 9), (20, 4, 12))),
        Story(looks=((12.5, 4, 9), (25, 4, 9))),
        Story(looks=((5, 4, 9), (13, 4, 9))),
        Story(places=frozenset({FREE})),
    ],
)
def test_what_holds_back_nobody_for_long_is_no_finding(story: Story, tmp_path: Path) -> None:
    """The bound counts from look to look, after the decision and before the completion, with every node up."""
    assert found(story, tmp_path)[1] == []


def test_in_a_run_without_nodes_of_two_releases_nothing_counts(tmp_path: Path) -> None:
    """Such a run is judged at quiescence. With stages it still has circumstances, without releases."""
    evidence, _ = found(Story(), tmp_path)
    lost = RawViolation(anomaly=Anomaly.LOST_WRITE, process=0, operation=1, topic_index=0, partition=0, offset=0)
    levels = replace(evidence, experiment=replace(evidence.experiment, nodes={}))
    assert (undisturbed_ms(levels), list(late_completions(rows(levels)))) == ((), [])
    around = circumstances(replace(levels, transaction_log=None), lost)
    assert around is not None
    assert around.text == "in stage roll 1 of 3; metadata.version 27"
    entries = tuple(each for each in levels.history.entries if not isinstance(each, FaultRecord))
    ordinary = replace(levels, history=replace(levels.history, entries=entries))
    assert circumstances(ordinary, lost) is None


def test_after_a_fault_nothing_counts_until_the_next_step_begins(tmp_path: Path) -> None:
    """A broker that was crashed is still starting when its fault is healed; an operation is over once it is confirmed."""
    evidence = told(Story(), tmp_path / "run")
    crash = _step(9, 13, 14, fault="CrashBroker", confirmed_ns=13 * S + 1, healed_ns=14 * S)
    entries = (*evidence.history.entries, crash)
    crashed = replace(evidence, history=replace(evidence.history, entries=entries))
    zero_ms = (wall_clock_ns(evidence) or 0) // 1_000_000
    windows = [[(each - zero_ms) / 1_000 for each in window] for window in undisturbed_ms(crashed)]
    assert windows == [[0, 3], [8, 13], [23, 23], [26, 30]]
    assert list(late_completions(rows(crashed))) == []
    elsewhere = replace(evidence, experiment=replace(evidence.experiment, runtime="external"))
    assert undisturbed_ms(elsewhere) == (), "brokers may have another clock"


def test_other_findings_have_the_time_of_their_operation(tmp_path: Path) -> None:
    """A lost record names the leader of its partition then; a violation without a time has no circumstances."""
    evidence = told(Story(), tmp_path / "run")
    lost = RawViolation(
        anomaly=Anomaly.LOST_WRITE, process=0, operation=1, index=0, topic_index=0, partition=0, detail="gone"
    )
    around = circumstances(evidence, lost)
    assert around is not None
    assert around.text.startswith("coordinator 4.2.0 on broker 2, in stage roll 1 of 3; nodes 1 4.1.2, 2 4.2.0")
    unknown = replace(lost, process=None, operation=None)
    assert (circumstances(evidence, unknown), shown(evidence, unknown).detail) == (None, "gone")


def refused(story: Story, root: Path, *, code: int = 13) -> tuple[RunEvidence, list[RawViolation]]:
    """A story whose producer has six operations from 11 s on that fail, and what the check of producers finds."""
    evidence = told(story, root / "run")
    failed = [
        Operation(
            process=0,
            operation=10 + number,
            action=Action.TRANSACTION,
            outcome=Outcome.FAIL,
            stage="produce",
            invoked_ns=(11 + number) * S,
            completed_ns=(12 + number) * S - 1,
            transactional_id="tx-0",
            error_code=code,
        )
        for number in range(6)
    ]
    evidence = replace(evidence, history=replace(evidence.history, entries=(*evidence.history.entries, *failed)))
    return evidence, list(refused_producers(rows(evidence)))


#: Node 2 leads with the bug, and node 1 coordinates.
REFUSES = Story(source="3.5.2", target="3.7.0", coordinator=1, leader=2)


def test_a_producer_that_an_older_coordinator_cannot_verify_is_named_with_both_roles(tmp_path: Path) -> None:
    """The last operation stands for the series."""
    evidence, (violation,) = refused(REFUSES, tmp_path)
    assert (violation.anomaly, violation.operation_key) == (Anomaly.STRANDED_PRODUCER, (0, 15))
    assert recognise(evidence, [violation]) == "KB-12"
    detail = shown(evidence, violation).detail
    assert detail.startswith(
        "coordinator 3.5.2 on broker 1, leader 3.5.2 on broker 1, leader 3.7.0 on broker 2, in stage roll 1"
    )
    assert detail.endswith(
        "all 6 operations of process 0 failed for 6.0 s in which every node was up and no fault stood"
    )


@pytest.mark.parametrize(
    ("story", "code"),
    [
        (replace(REFUSES, target="3.7.2"), 13),
        (replace(REFUSES, source="3.6.2"), 13),
        (replace(REFUSES, source="3.6.0 migrating", target="3.6.0 KRaft"), 13),
        (replace(REFUSES, coordinator=2), 13),
        (replace(REFUSES, leader=3), 13),
        (REFUSES, 7),
    ],
)
def test_another_refused_producer_has_no_name(story: Story, code: int, tmp_path: Path) -> None:
    """Another release, role or answer is something else than the known bug."""
    evidence, violations = refused(story, tmp_path, code=code)
    assert len(violations) == 1
    assert recognise(evidence, violations) is None
