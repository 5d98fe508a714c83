"""FENCE: of several instances of one transactional id only the one that was initialised last may act."""

from __future__ import annotations

from functools import partial
from operator import eq

from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import BOTH, EXPIRING, HASTY, THREE, generations, needs, requirement, shares
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.expected_codes import expect_fenced
from runner.protocol.toolkit.producer import UNKNOWN, ScriptedProducer, transactional
from runner.protocol.toolkit.timing import ROLL_MS, SEGMENT_MS, SOON_S, TIMEOUT_MS, expiry_can_be_seen
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.records import encode
from wire.transaction_versions import Generation
from wire.values import TopicPartition

ROUNDS = 4


def successor(stage: Stage) -> ScriptedProducer:
    """The next instance, initialised: whatever was before is fenced."""
    return ScriptedProducer(stage, f"{stage.name}-owner").ready()


def expect_powerless(stage: Stage, zombie: ScriptedProducer, at: TopicPartition, group: str) -> None:
    """Claim that every request of an older instance is refused, but for InitProducerId, which has cases of its own."""
    stage.expect_code("Produce", zombie.produce(at, ["zombie"]), Code.INVALID_PRODUCER_EPOCH)
    expect_fenced(stage, "AddPartitionsToTxn", zombie.add(at))
    expect_fenced(stage, "AddOffsetsToTxn", zombie.add_offsets(group))
    answer = zombie.commit_offsets(group, {at: 99})
    stage.expect_code("TxnOffsetCommit", answer, Code.INVALID_PRODUCER_EPOCH)
    for commit in (True, False):
        expect_fenced(stage, f"EndTxn, commit {commit}", zombie.copy().end(commit=commit))


@requirement("FENCE-01")
@generations(*BOTH)
def test_an_idle_zombie_is_powerless(stage: Stage) -> None:
    """An instance without a transaction can do nothing once a newer one is initialised."""
    (at,) = stage.topic()
    group = f"{stage.name}-group"
    stage.group_coordinator(group)
    zombie = transactional(stage)
    lawful = successor(stage)
    expect_powerless(stage, zombie, at, group)
    if stage.since("2.5.0"):
        answer = zombie.copy().init(continues=zombie.now)
        expect_fenced(stage, "InitProducerId with its id and epoch", answer)
    stage.expect("the end of the log", stage.see.end(at), 0)
    lawful.writes(at, values=["b"]).ends(commit=True)
    stage.expect("what readers are given", stage.see.committed(at), ["b"])


@requirement("FENCE-01", "FENCE-02")
@generations(*BOTH)
def test_a_zombie_does_not_touch_its_successors_transaction(stage: Stage) -> None:
    """An instance with a transaction open loses it, and can do nothing to the transaction of a newer one."""
    (at,) = stage.topic()
    group = f"{stage.name}-group"
    stage.group_coordinator(group)
    zombie = transactional(stage).writes(at, values=["undecided"])
    lawful = successor(stage).writes(at, values=["b"])
    end = stage.see.end(at)
    expect_powerless(stage, zombie, at, group)
    stage.expect("the end of the log", stage.see.end(at), end)
    stage.expect_code("the successor's next batch", lawful.produce(at, ["c"]), Code.NONE)
    lawful.ends(commit=True, claim=True)
    stage.expect("what readers are given", stage.see.committed(at), ["b", "c"])
    stage.expect("the aborted transactions", stage.see.aborted(at), [(zombie.now.id, 0)])
    stage.expect("the committed offset", stage.see.offset(group, at), -1)


@requirement("FENCE-01", "TXN-05")
@generations(*BOTH)
def test_a_zombie_that_continues_leaves_its_successors_transaction_open(stage: Stage) -> None:
    """InitProducerId with an older instance's id and epoch is fenced while its successor has a transaction open."""
    (at,) = stage.topic()
    zombie = transactional(stage)
    lawful = successor(stage).writes(at, values=["b"])
    expect_fenced(stage, "InitProducerId with the id and epoch of the zombie", zombie.init(continues=zombie.now))
    answer = lawful.produce(at, ["c"])
    stage.expect_code("the successor's next batch", answer, Code.NONE)
    stage.expect_code("the successor's EndTxn(commit)", lawful.end(commit=True), Code.NONE)
    stage.see.complete(lawful.transactional_id)
    stage.expect("what readers are given", stage.see.committed(at), ["b", "c"])


@requirement("FENCE-06", "FENCE-02")
@generations(*BOTH)
def test_an_administrator_fences(stage: Stage) -> None:
    """The request of Admin.fenceProducers aborts what is open and fences the instance."""
    (at,) = stage.topic()
    group = f"{stage.name}-group"
    stage.group_coordinator(group)
    zombie = transactional(stage).writes(at, values=["undecided"])
    administrator = ScriptedProducer(stage, f"{stage.name}-owner", timeout_ms=1)
    answer = administrator.init()
    stage.expect_code("InitProducerId during the transaction", answer, Code.CONCURRENT_TRANSACTIONS)
    stage.set_up("InitProducerId afterwards", administrator.init)
    stage.expect("the markers", [kind for kind, _, _ in stage.see.markers(at)], ["abort"])
    stage.expect("what readers are given", stage.see.committed(at), [])
    expect_powerless(stage, zombie, at, group)
    lawful = successor(stage).writes(at, values=["b"]).ends(commit=True)
    stage.expect("what readers are given of a newer instance", stage.see.committed(at), ["b"])
    stage.expect("its id", lawful.now.id, zombie.now.id)


@requirement("FENCE-07")
@generations(Generation.TV1)
def test_a_timeout_fences(stage: Stage) -> None:
    """A producer whose transaction was aborted on timeout can neither add to it nor commit it."""
    (at,) = stage.topic()
    zombie = transactional(stage, timeout_ms=TIMEOUT_MS).writes(at)
    stage.until(lambda: stage.see.markers(at), bool, within_s=SOON_S)
    aborted(stage, at, zombie)
    stage.expect_code("Produce", zombie.produce(at, ["zombie"]), Code.INVALID_PRODUCER_EPOCH)
    expect_fenced(stage, "AddPartitionsToTxn", zombie.add(at))
    for commit in (True, False):
        expect_fenced(stage, f"EndTxn, commit {commit}", zombie.end(commit=commit))
    stage.expect("what readers are given", stage.see.committed(at), [])
    successor(stage).writes(at, values=["b"]).ends(commit=True)
    stage.expect("what readers are given of a newer instance", stage.see.committed(at), ["b"])


@requirement("FENCE-09")
@generations(*BOTH)
def test_of_two_rivals_the_last_one_wins(stage: Stage) -> None:
    """Two instances that take the transactional id from each other: only the one that has it last commits."""
    (at,) = stage.topic()
    first = transactional(stage)
    rival = first.copy()
    for number in range(ROUNDS):
        first.writes(at, values=[f"loser {number}"])
        rival.ready().writes(at, values=[f"winner {number}"])
        expect_fenced(stage, f"the loser's EndTxn(commit), round {number}", first.end(commit=True))
        answer = first.produce(at, ["late"])
        stage.expect_code(f"the loser's next batch, round {number}", answer, Code.INVALID_PRODUCER_EPOCH)
        stage.expect_code(f"the winner's EndTxn(commit), round {number}", rival.end(commit=True), Code.NONE)
        stage.set_up("the loser is initialised again", first.init)
    stage.expect("what readers are given", stage.see.committed(at), [f"winner {number}" for number in range(ROUNDS)])


@requirement("FENCE-03")
@generations(*BOTH)
@needs(THREE)
def test_a_new_leader_refuses_the_older_epoch(stage: Stage) -> None:
    """A new leader of the partition refuses the older epoch as the one before did."""
    (at,) = stage.topic()
    zombie = transactional(stage).writes(at, values=["undecided"])
    lawful = successor(stage)
    old_leader = stage.leader(at)
    replicas.lead(stage, at, next(each for each in stage.brokers if each != old_leader))
    _expect_refused(stage, zombie, at)
    lawful.writes(at, values=["b"]).ends(commit=True)
    stage.expect("what readers are given", stage.see.committed(at), ["b"])


@requirement("FENCE-03")
@shares("stopped", "crashed")
def test_a_restarted_leader_refuses_the_older_epoch(stage: Stage) -> None:
    """A leader that was stopped, and one that was killed, refuses the older epoch when it is back."""
    (at,) = stage.topic()
    zombie = transactional(stage).writes(at, values=["undecided"])
    lawful = successor(stage)
    for away in (brokers.stopped, brokers.crashed):
        with away(stage, stage.leader(at)):
            pass
        _expect_refused(stage, zombie, at)
    lawful.writes(at, values=["b"]).ends(commit=True, claim=True)
    stage.expect("what readers are given", stage.see.committed(at), ["b"])


def _expect_refused(stage: Stage, zombie: ScriptedProducer, at: TopicPartition) -> None:
    """Claim that nothing of an older epoch is appended, be it a beginning or the next batch."""
    end = stage.see.end(at)
    for sequence in (0, 1):
        answer = stage.answered(partial(zombie.produce, at, ["zombie"], sequence=sequence))
        stage.expect_code(f"a batch of the older epoch at {sequence}", answer, Code.INVALID_PRODUCER_EPOCH)
    stage.expect("the end of the log", stage.see.end(at), end)


@requirement("FENCE-05")
@generations(*BOTH)
@needs(EXPIRING)
def test_a_forgotten_zombie_is_refused_by_the_coordinator(stage: Stage) -> None:
    """When the partition has forgotten an old epoch, its batch is still refused and not appended."""
    expiry_can_be_seen(stage)
    at, elsewhere = stage.topic(partitions=2)
    zombie = transactional(stage).writes(at, values=["undecided"])
    # Ids expire here as soon as producers do, but for those that have a transaction open.
    lawful = successor(stage).writes(elsewhere, values=["b"])
    end = stage.see.end(at)
    known = stage.until(lambda: _producers(stage, at), lambda seen: not seen, within_s=SOON_S)
    stage.require("the producers that the leader remembers", known, [])
    stage.require("the successor's transaction", stage.see.state(str(lawful.transactional_id)), "Ongoing")
    _expect_refused(stage, zombie, at)
    stage.expect("the last stable offset", stage.see.stable(at), end)
    lawful.ends(commit=True, claim=True)
    stage.expect("what readers are given of the successor", stage.see.committed(elsewhere), ["b"])


def _producers(stage: Stage, at: TopicPartition) -> list[int]:
    return [each["ProducerId"] for each in stage.see.producers(at)]


@requirement("FENCE-04")
@generations(*BOTH)
@needs(HASTY)
@shares("crashed")
def test_the_cleaner_keeps_the_epoch(stage: Stage) -> None:
    """Compaction keeps what carries the newer epoch, and a leader that has nothing but the log reads it there."""
    (at,) = stage.topic(
        cleanup_policy="compact", min_cleanable_dirty_ratio="0.0", segment_ms=SEGMENT_MS, delete_retention_ms="0"
    )
    zombie = transactional(stage)
    if stage.generation is Generation.TV1:
        stage.set_up("the partition is added", lambda: zombie.add(at))
    stage.require_code("a record with a key", zombie.send_batch(at, keyed("undecided", zombie)))
    successor(stage)
    newer = aborted(stage, at, zombie)
    # A record from beyond the segment's time rolls it, and what lies before can be cleaned: first the aborted record,
    # then all but the last of the cleaned copies. A marker may go in the pass after the one that emptied its
    # transaction (KIP-534).
    roll(stage, at)
    left = stage.until(lambda: "undecided" in stage.see.values(at), lambda seen: not seen, within_s=SOON_S)
    stage.require("whether the aborted record is left", left, False)
    for _ in range(ROUNDS):
        roll(stage, at)
    copies = stage.until(lambda: stage.see.values(at).count("same"), partial(eq, 2), within_s=SOON_S)
    stage.require("copies of a record that was written again and again, one of them not to be cleaned yet", copies, 2)
    epochs = [each.producer_epoch for each in stage.see.batches(at) if each.producer_id == zombie.now.id]
    stage.expect("the newest epoch that is left in the log", max(epochs, default=-1), newer)
    late = partial(zombie.send_batch, at, keyed("zombie", zombie, sequence=1))
    stage.expect_code("a batch of the older epoch", late(), Code.INVALID_PRODUCER_EPOCH)
    leader = stage.leader(at)
    with brokers.crashed(stage, leader):
        for path in brokers.snapshots(brokers.files(stage, leader, at)):
            path.unlink()
    stage.expect_code("the same after a restart without snapshots", stage.answered(late), Code.INVALID_PRODUCER_EPOCH)


def aborted(stage: Stage, at: TopicPartition, zombie: ScriptedProducer) -> int:
    """Ground: the zombie's transaction was aborted, once, in a newer epoch; which. How much newer others claim (TXN-03)."""
    markers = stage.see.markers(at)
    stage.require("the markers and their ids", [each[:2] for each in markers], [("abort", zombie.now.id)])
    stage.require("the epoch of the marker", markers[0][2], zombie.now.epoch + 1, Relation.AT_LEAST)
    return int(markers[0][2])


def keyed(word: str, producer: ScriptedProducer | None, *, sequence: int = 0, timestamp_ms: int | None = None) -> bytes:
    """A batch with one record whose key and value are the same: a compacted topic takes no other."""
    who = UNKNOWN if producer is None else producer.now
    return encode(
        [(word.encode(), word.encode())],
        timestamp_ms=timestamp_ms,
        producer_id=who.id,
        producer_epoch=who.epoch,
        base_sequence=-1 if producer is None else sequence,
        transactional=producer is not None,
    )


def roll(stage: Stage, at: TopicPartition) -> None:
    """Set up: a plain record, so late that it begins another segment."""
    newest_ms = max(batch.max_timestamp_ms for batch in stage.see.batches(at))
    batch = keyed("same", None, timestamp_ms=newest_ms + ROLL_MS)
    stage.require_code("a record that begins a segment", ScriptedProducer(stage, None).send_batch(at, batch))
