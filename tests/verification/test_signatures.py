"""A known bug is named by evidence: the whole signature, or no name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from chaos.faults.late_duplicate import answered_late
from tests.support.planted import coordinating
from tests.support.planted.files import write
from tests.support.planted.histories import Planted
from verification.evidence.rows import all_rows
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.judge.primary_findings import attribute
from verification.known_bugs.signatures.recognise import recognise
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import NO_LEADER, UNSEEN, FaultRecord, Operation, Outcome, Sample
from verification.vocabulary.violations import RawViolation
from wire.values import TopicPartition

S = 1_000_000_000
MARKED, UNMARKED = (0, 0), (1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How a transaction lost a marker; the defaults are the known bug itself."""

    leaderless: tuple[float, float | None] | None = (-1.0, 3.0)
    where: tuple[int, int] = UNMARKED
    state: str = "Empty"
    release: str = "4.3.1"
    adopted: bool = False
    leader: int = NO_LEADER


def _sample(planted: Planted, place: tuple[int, int], at_ns: int, leader: int) -> Sample:
    topic = planted.topics[place[0]].name
    return Sample(at_ns=at_ns, topic=topic, partition=place[1], leader=leader, high_watermark=-1, last_stable_offset=-1)


def told(story: Story, root: Path) -> RunEvidence:
    """The evidence of a story; leaderless times are seconds after the commit was asked for."""
    planted = Planted(run="story")
    client = planted.client("tx-0")
    operation, _ = planted.transaction(client, (MARKED, UNMARKED), decision=None)
    planted.mark(client, MARKED, "commit")
    if story.adopted:
        planted.transaction(client, (UNMARKED,))
    if story.leaderless is not None:
        decided = operation.decided_ns or 0
        began, ended = story.leaderless
        planted.entries.append(_sample(planted, story.where, decided - 30 * S, 1))
        planted.entries.append(_sample(planted, story.where, decided + int(began * S), story.leader))
        if ended is not None:
            planted.entries.append(_sample(planted, story.where, decided + int(ended * S), 2))
    plant = planted.finish()
    plant.rows["coordinator_states"].append(
        {"run": "story", "producer_id": client.producer_id, "state": story.state, "transactional_id": "tx-0"}
    )
    directory = write(plant, root)
    text = directory.experiment.read_text().replace('"release": "4.3.1"', f'"release": "{story.release}"')
    directory.experiment.write_text(text)
    return read_run(directory)


def name_of(evidence: RunEvidence) -> dict[Anomaly, str | None]:
    """Which known bug each finding of a run is named after."""
    attributed = attribute(judge_rows(all_rows(evidence)))
    return {anomaly: recognise(evidence, violations) for anomaly, violations in attributed.primary.items()}


@pytest.mark.parametrize(
    "story",
    [
        Story(),
        Story(leaderless=(-1.0, None)),
        Story(leaderless=(0.4, 3.0)),
        Story(leaderless=(5.0, 7.0)),
        Story(state="CompleteCommit"),
        Story(adopted=True),
    ],
)
def test_the_whole_signature_names_the_bug(story: Story, tmp_path: Path) -> None:
    """Leaderless when the end was asked for or shortly after, no marker of its own, nothing open at the coordinator."""
    found = Anomaly.DECIDED_LATE if story.adopted else Anomaly.HUNG_TRANSACTION
    assert name_of(told(story, tmp_path / "run")) == {found: "KB-16"}


@pytest.mark.parametrize(
    "story",
    [
        Story(leaderless=None),
        Story(leaderless=(-9.0, -1.0)),
        Story(leaderless=(20.0, 25.0)),
        Story(where=MARKED),
        Story(where=(1, 1)),
        Story(leader=1),
        Story(leader=UNSEEN),
        Story(release="4.2.1"),
        Story(release="an external service"),
    ],
)
def test_a_near_miss_stays_unnamed(story: Story, tmp_path: Path) -> None:
    """Without a leaderless spell at that time, on that partition, on an affected release, there is no name.

    A leader that is paused and does not answer is no leaderless spell, and neither is a moment without any broker.
    """
    assert name_of(told(story, tmp_path / "run")) == {Anomaly.HUNG_TRANSACTION: None}


def test_a_running_coordinator_is_another_matter(tmp_path: Path) -> None:
    """While the coordinator is still at it nothing hangs, and the standing LSO is not the known bug."""
    assert name_of(told(Story(state="PrepareCommit"), tmp_path / "run")) == {Anomaly.STUCK_LSO: None}


def test_one_violation_without_the_signature_takes_the_name_away(tmp_path: Path) -> None:
    """A finding is named only when every violation in it is explained: one stranger must not hide among them."""
    evidence = told(Story(), tmp_path / "run")
    (known,) = attribute(judge_rows(all_rows(evidence))).primary[Anomaly.HUNG_TRANSACTION]
    stranger = RawViolation(anomaly=Anomaly.HUNG_TRANSACTION, topic_index=0, partition=1, offset=0)
    assert recognise(evidence, (known,)) == "KB-16"
    assert recognise(evidence, (known, stranger)) is None
    assert recognise(evidence, ()) is None


@pytest.mark.parametrize("change", [lambda each: each.operation + 1, lambda each: each.operation])
def test_only_the_transaction_itself_is_named(change: Callable[[Operation], int], tmp_path: Path) -> None:
    """The same place under another operation's name is not the known bug."""
    evidence = told(Story(adopted=True), tmp_path / "run")
    first = next(each for each in evidence.history.of(Operation) if each.decided_ns is not None)
    violation = RawViolation(anomaly=Anomaly.DECIDED_LATE, process=0, operation=change(first))
    assert (recognise(evidence, (violation,)) == "KB-16") is (violation.operation == first.operation)


HELD = "held 1 Produce v10 request on app→1"
#: As the fault itself writes it.
LATE = answered_late(HELD, (120,), {})
OUT_OF_ORDER = "Fatal error: Local: Fatal error: Broker: Broker received an out of order sequence number"


def stranded(
    root: Path,
    *,
    proof: str = LATE,
    reason: str = OUT_OF_ORDER,
    target: str = "tx-0",
    release: str = "4.3.1",
    at_s: int = 0,
) -> RunEvidence:
    """A producer that ended fatally, `at_s` seconds after a request of its own had arrived late."""
    planted = Planted(run="story", survival_claimed=True)
    client = planted.client("tx-0")
    planted.transaction(client, (MARKED,))
    confirmed_ns = planted.tick()
    told, _ = planted.transaction(client, (MARKED,), outcome=Outcome.FAIL, decision="abort")
    planted.entries.append(
        FaultRecord(
            step=0,
            fault="LateDuplicate",
            description="",
            target=target,
            began_ns=1,
            confirmed_ns=confirmed_ns - at_s * S,
            proof=proof,
            healed_ns=confirmed_ns + S,
        )
    )
    plant = planted.finish()
    plant.retell(told, fatal=True, stage="produce", decided_ns=None, error_code=-150, error_reason=reason)
    directory = write(plant, root)
    text = directory.experiment.read_text().replace('"release": "4.3.1"', f'"release": "{release}"')
    directory.experiment.write_text(text)
    return read_run(directory)


def late(code: int, offset: int, partition: int = 0) -> str:
    """The proof of a request that was answered with a code and an offset on a partition of topic a."""
    return answered_late(HELD, (code,), {TopicPartition(topic="a", partition=partition): offset})


#: The first transaction's record is at offset 0, its marker at 1.
@pytest.mark.parametrize(
    "proof",
    [
        *(answered_late(HELD, (code,), {}) for code in (19, 48, 120)),
        late(120, -1),
        late(0, 0),
    ],
)
def test_a_refused_duplicate_is_named(proof: str, tmp_path: Path) -> None:
    """A producer whose late request was not appended, and which is then refused as out of order, has met KB-17."""
    assert name_of(stranded(tmp_path / "run", proof=proof)) == {Anomaly.STRANDED_PRODUCER: "KB-17"}


@pytest.mark.parametrize(
    "change",
    [
        {"proof": answered_late(HELD, (47,), {})},
        {"proof": answered_late(HELD, (0,), {})},
        {"proof": late(0, 2)},
        {"proof": late(0, 0, partition=1)},
        {"proof": HELD},
        {"reason": "Fatal error: Broker: Producer attempted an operation with an old epoch"},
        {"target": "tx-1"},
        {"at_s": -20},
        {"release": "3.5.2"},
    ],
    ids=[
        "fenced",
        "place unknown",
        "appended",
        "appended elsewhere",
        "never arrived",
        "another answer",
        "of another client",
        "arrived afterwards",
        "release",
    ],
)
def test_another_fatal_error_stays_unnamed(change: dict[str, Any], tmp_path: Path) -> None:
    """Without a refusal of that producer's own late request before it, or with another error, there is no name."""
    assert name_of(stranded(tmp_path / "run", **change)) == {Anomaly.STRANDED_PRODUCER: None}


UNSUPPORTED = "Unexpected error in TxnOffsetCommitResponse: The version of API is not supported."


def lowered(
    root: Path, *, levels: tuple[int, ...] = (0,), reason: str = UNSUPPORTED, code: int = -150, after: bool = False
) -> RunEvidence:
    """A producer that ended fatally around changes of transaction.version, which was 2; `after` them it began."""
    planted = Planted(run="story", survival_claimed=True)
    client = planted.client("tx-0")
    planted.transaction(client, (MARKED,))

    def fatal() -> Operation:
        return planted.transaction(client, (MARKED,), outcome=Outcome.FAIL, decision="abort")[0]

    told = None if after else fatal()
    for step, level in enumerate(levels):
        # Each change is some milliseconds, within the operation or before it.
        at_ns = planted.tick() if told is None or told.completed_ns is None else told.invoked_ns + step + 1
        planted.entries.append(
            FaultRecord(
                step=step,
                fault="SetFeatureLevel",
                description="",
                target="",
                began_ns=at_ns,
                struck_ns=at_ns,
                applied_ns=at_ns,
                confirmed_ns=at_ns,
                healed_ns=at_ns,
                levels={"transaction.version": level},
            )
        )
    told = fatal() if told is None else told
    plant = planted.finish()
    plant.retell(told, fatal=True, stage="offsets", decided_ns=None, error_code=code, error_reason=reason)
    directory = write(plant, root)
    experiment = json.loads(directory.experiment.read_text())
    experiment["versions"] |= {"feature transaction.version": "2"}
    directory.experiment.write_text(json.dumps(experiment))
    return read_run(directory)


@pytest.mark.parametrize(
    "change",
    [{}, {"after": True}, {"levels": (1,)}, {"levels": (1, 0)}, {"levels": (0, 1)}, {"reason": "", "code": 35}],
)
def test_a_producer_that_a_lowered_transaction_version_ends_is_named(change: dict[str, Any], tmp_path: Path) -> None:
    """It was answered with UNSUPPORTED_VERSION while, or after, the level was lowered."""
    assert name_of(lowered(tmp_path / "run", **change)) == {Anomaly.STRANDED_PRODUCER: "KB-40"}


@pytest.mark.parametrize(
    "change",
    [
        {"levels": ()},
        {"levels": (2,)},
        {"levels": (0, 2), "after": True},
        {"reason": OUT_OF_ORDER},
    ],
    ids=["not lowered", "the same level", "raised again before", "another answer"],
)
def test_without_a_lowered_level_that_answer_stays_unnamed(change: dict[str, Any], tmp_path: Path) -> None:
    """The answer alone has many causes, and so has a fatal error under a lowered level."""
    assert name_of(lowered(tmp_path / "run", **change)) == {Anomaly.STRANDED_PRODUCER: None}


def repeated(
    root: Path, *, timed_out: int | None = -192, later: int = 1, transactional_id: str | None = None
) -> RunEvidence:
    """A record that a producer appended twice, the second time in the epoch `later`, after another one had timed out."""
    planted = Planted(run="story")
    client = planted.client(transactional_id)
    planted.plain(client, (MARKED,))
    planted.plain(client, (UNMARKED,), outcome=Outcome.INFO)
    planted.operations[-1] = replace(planted.operations[-1], error_code=timed_out, producer_epoch=0)
    _, (first, *_) = planted.plain(client, (MARKED, UNMARKED))
    planted.operations[-1] = replace(planted.operations[-1], producer_epoch=1)
    client.epoch = later
    planted.append(client, MARKED, first["_value"], transactional=False)
    return read_run(write(planted.finish(), root))


def test_a_record_repeated_in_a_later_epoch_is_named(tmp_path: Path) -> None:
    """A copy in each of two epochs, after another record of the producer had timed out: librdkafka's limit (KB-41)."""
    assert name_of(repeated(tmp_path / "run"))[Anomaly.DUPLICATE] == "KB-41"


@pytest.mark.parametrize(
    "change", [{"timed_out": None}, {"timed_out": -185}, {"later": 0}, {"transactional_id": "tx-0"}]
)
def test_another_duplicate_stays_unnamed(change: dict[str, Any], tmp_path: Path) -> None:
    """Two copies in one epoch are the broker's doing, and transactions have no such limit."""
    assert name_of(repeated(tmp_path / "run", **change))[Anomaly.DUPLICATE] is None


def issued_twice(root: Path, *, release: str = "3.6.0", mode: str = "ZooKeeper") -> RunEvidence:
    """The evidence of a migration after which another transactional id has the producer id of the first one."""
    plant, _ = coordinating.issued_twice("story")
    directory = write(plant, root)
    experiment = json.loads(directory.experiment.read_text())
    experiment |= {"release": release, "nodes": {"1": f"{release} {mode}"}}
    directory.experiment.write_text(json.dumps(experiment))
    return read_run(directory)


def test_a_producer_id_that_a_migration_issues_again_is_named(tmp_path: Path) -> None:
    """The log has it for two transactional ids, and the cluster began with ZooKeeper (KB-42)."""
    assert name_of(issued_twice(tmp_path / "run"))[Anomaly.ILLEGAL_TRANSITION] == "KB-42"


@pytest.mark.parametrize("change", [{"release": "3.9.2"}, {"release": ""}, {"mode": "KRaft"}])
def test_a_producer_id_of_two_owners_has_no_name_elsewhere(change: dict[str, Any], tmp_path: Path) -> None:
    """Another release has the fix, and a cluster that did not migrate has another defect."""
    assert name_of(issued_twice(tmp_path / "run", **change))[Anomaly.ILLEGAL_TRANSITION] is None


def test_another_illegal_step_of_a_migration_stays_unnamed(tmp_path: Path) -> None:
    """It is the coordinator's own."""
    plant, _ = coordinating.decided_twice("story")
    directory = write(plant, tmp_path / "run")
    experiment = json.loads(directory.experiment.read_text()) | {"release": "3.6.0", "nodes": {"1": "3.6.0 ZooKeeper"}}
    directory.experiment.write_text(json.dumps(experiment))
    assert name_of(read_run(directory))[Anomaly.ILLEGAL_TRANSITION] is None
