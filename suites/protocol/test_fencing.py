"""FENCE: of several instances of one transactional id only the one that was initialised last may act."""

from __future__ import annotations

from functools import partial
from operator import eq

from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import BOTH, EXPIRING, HASTY, THREE, needs, requirement, shares, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.expected_codes import expect_fenced
from runner.protocol.toolkit.inspector import ending
from runner.protocol.toolkit.producer import UNKNOWN, ScriptedProducer, transactional
from runner.protocol.toolkit.timing import ROLL_MS, SEGMENT_MS, SOON_S, TIMEOUT_MS, expiry_can_be_seen
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.records import encode
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

ROUNDS = 4
#: As Admin.fenceProducers has it since 3.7.1 and 3.8.0. A coordinator gives up an entry that is not replicated within the
#: transaction timeout: 1 ms, as before, was always too short for brokers with TLS on a slow machine (KAFKA-16047).
ADMIN_TIMEOUT_MS = 30_000


def successor(case: CaseContext) -> ScriptedProducer:
    """The next instance, initialised, so that all earlier ones are fenced."""
    return ScriptedProducer(case, f"{case.name}-owner").ready()


def expect_powerless(case: CaseContext, zombie: ScriptedProducer, at: TopicPartition, group: str) -> None:
    """Claim that every request of an older instance is refused; InitProducerId has its own cases."""
    case.expect_code("Produce", zombie.produce(at, ["zombie"]), Code.INVALID_PRODUCER_EPOCH)
    expect_fenced(case, "AddPartitionsToTxn", zombie.add(at))
    expect_fenced(case, "AddOffsetsToTxn", zombie.add_offsets(group))
    answer = zombie.commit_offsets(group, {at: 99})
    case.expect_code("TxnOffsetCommit", answer, Code.INVALID_PRODUCER_EPOCH)
    for commit in (True, False):
        expect_fenced(case, f"EndTxn, {ending(commit=commit)}", zombie.copy().end(commit=commit))


@requirement("FENCE-01")
@versions(*BOTH)
def test_an_idle_zombie_is_powerless(case: CaseContext) -> None:
    """An instance without a transaction can do nothing once a newer one is initialised."""
    (at,) = case.topic()
    group = f"{case.name}-group"
    case.group_coordinator(group)
    zombie = transactional(case)
    newer = successor(case)
    expect_powerless(case, zombie, at, group)
    if case.since("2.5.0"):
        answer = zombie.copy().init(continues=zombie.now)
        expect_fenced(case, "InitProducerId with its id and epoch", answer)
    case.expect("the end of the log", case.inspect.end(at), 0)
    newer.writes(at, values=["b"]).ends(commit=True)
    case.expect("what readers are given", case.inspect.committed(at), ["b"])


@requirement("FENCE-01", "FENCE-02")
@versions(*BOTH)
def test_a_zombie_does_not_touch_its_successors_transaction(case: CaseContext) -> None:
    """An instance with a transaction open loses it, and can do nothing to the transaction of a newer one."""
    (at,) = case.topic()
    group = f"{case.name}-group"
    case.group_coordinator(group)
    zombie = transactional(case).writes(at, values=["undecided"])
    newer = successor(case).writes(at, values=["b"])
    end = case.inspect.end(at)
    expect_powerless(case, zombie, at, group)
    case.expect("the end of the log", case.inspect.end(at), end)
    case.expect_code("the successor's next batch", newer.produce(at, ["c"]), Code.NONE)
    newer.ends(commit=True, claim=True)
    case.expect("what readers are given", case.inspect.committed(at), ["b", "c"])
    case.expect("the aborted transactions", case.inspect.aborted(at), [(zombie.now.id, 0)])
    case.expect("the committed offset", case.inspect.offset(group, at), -1)


@requirement("FENCE-01", "TXN-05")
@versions(*BOTH)
def test_a_zombie_that_continues_leaves_its_successors_transaction_open(case: CaseContext) -> None:
    """InitProducerId with an older instance's id and epoch is fenced while its successor has a transaction open."""
    (at,) = case.topic()
    zombie = transactional(case)
    newer = successor(case).writes(at, values=["b"])
    expect_fenced(case, "InitProducerId with the id and epoch of the zombie", zombie.init(continues=zombie.now))
    answer = newer.produce(at, ["c"])
    case.expect_code("the successor's next batch", answer, Code.NONE)
    case.expect_code("the successor's EndTxn(commit)", newer.end(commit=True), Code.NONE)
    case.inspect.complete(newer.transactional_id)
    case.expect("what readers are given", case.inspect.committed(at), ["b", "c"])


@requirement("FENCE-06", "FENCE-02")
@versions(*BOTH)
def test_an_administrator_fences(case: CaseContext) -> None:
    """The request of Admin.fenceProducers aborts the open transaction and fences the instance."""
    (at,) = case.topic()
    group = f"{case.name}-group"
    case.group_coordinator(group)
    zombie = transactional(case).writes(at, values=["undecided"])
    administrator = ScriptedProducer(case, f"{case.name}-owner", timeout_ms=ADMIN_TIMEOUT_MS)
    answer = administrator.init()
    case.expect_code("InitProducerId during the transaction", answer, Code.CONCURRENT_TRANSACTIONS)
    case.set_up("InitProducerId afterwards", administrator.init)
    case.expect("the markers", [kind for kind, _, _ in case.inspect.markers(at)], ["abort"])
    case.expect("what readers are given", case.inspect.committed(at), [])
    expect_powerless(case, zombie, at, group)
    newer = successor(case).writes(at, values=["b"]).ends(commit=True)
    case.expect("what readers are given of a newer instance", case.inspect.committed(at), ["b"])
    case.expect("its id", newer.now.id, zombie.now.id)


@requirement("FENCE-07")
@versions(TransactionVersion.TV1)
def test_a_timeout_fences(case: CaseContext) -> None:
    """A producer whose transaction was aborted on timeout can neither add to it nor commit it."""
    (at,) = case.topic()
    zombie = transactional(case, timeout_ms=TIMEOUT_MS).writes(at)
    # answer dropped: the markers are required next
    case.poll_until(lambda: case.inspect.markers(at), bool, within_s=SOON_S)
    aborted(case, at, zombie)
    # Its marker is there before its coordinator has completed it, if they are different brokers.
    case.inspect.complete(zombie.transactional_id)
    case.expect_code("Produce", zombie.produce(at, ["zombie"]), Code.INVALID_PRODUCER_EPOCH)
    expect_fenced(case, "AddPartitionsToTxn", zombie.add(at))
    for commit in (True, False):
        expect_fenced(case, f"EndTxn, {ending(commit=commit)}", zombie.end(commit=commit))
    case.expect("what readers are given", case.inspect.committed(at), [])
    successor(case).writes(at, values=["b"]).ends(commit=True)
    case.expect("what readers are given of a newer instance", case.inspect.committed(at), ["b"])


@requirement("FENCE-09")
@versions(*BOTH)
def test_of_two_rivals_the_last_one_wins(case: CaseContext) -> None:
    """Two instances that take the transactional id from each other: only the one that has it last commits."""
    (at,) = case.topic()
    first = transactional(case)
    rival = first.copy()
    for number in range(ROUNDS):
        first.writes(at, values=[f"loser {number}"])
        rival.ready().writes(at, values=[f"winner {number}"])
        expect_fenced(case, f"the loser's EndTxn(commit), round {number}", first.end(commit=True))
        answer = first.produce(at, ["late"])
        case.expect_code(f"the loser's next batch, round {number}", answer, Code.INVALID_PRODUCER_EPOCH)
        case.expect_code(f"the winner's EndTxn(commit), round {number}", rival.end(commit=True), Code.NONE)
        case.set_up("the loser is initialised again", first.init)
    case.expect("what readers are given", case.inspect.committed(at), [f"winner {number}" for number in range(ROUNDS)])


@requirement("FENCE-03")
@versions(*BOTH)
@needs(THREE)
def test_a_new_leader_refuses_the_older_epoch(case: CaseContext) -> None:
    """A new leader of the partition refuses the older epoch as the one before did."""
    (at,) = case.topic()
    zombie = transactional(case).writes(at, values=["undecided"])
    newer = successor(case)
    old_leader = case.leader(at)
    replicas.lead(case, at, next(each for each in case.brokers if each != old_leader))
    _expect_refused(case, zombie, at)
    newer.writes(at, values=["b"]).ends(commit=True)
    case.expect("what readers are given", case.inspect.committed(at), ["b"])


@requirement("FENCE-03")
@shares("stopped", "crashed")
def test_a_restarted_leader_refuses_the_older_epoch(case: CaseContext) -> None:
    """A leader that was stopped, and one that was killed, refuses the older epoch when it is back."""
    (at,) = case.topic()
    zombie = transactional(case).writes(at, values=["undecided"])
    newer = successor(case)
    for away in (brokers.stopped, brokers.crashed):
        with away(case, case.leader(at)):
            pass
        _expect_refused(case, zombie, at)
    newer.writes(at, values=["b"]).ends(commit=True, claim=True)
    case.expect("what readers are given", case.inspect.committed(at), ["b"])


def _expect_refused(case: CaseContext, zombie: ScriptedProducer, at: TopicPartition) -> None:
    """Claim that no batch of an older epoch is appended, neither a first nor a next one."""
    end = case.inspect.end(at)
    for sequence in (0, 1):
        answer = case.answered(partial(zombie.produce, at, ["zombie"], sequence=sequence))
        case.expect_code(f"a batch of the older epoch at {sequence}", answer, Code.INVALID_PRODUCER_EPOCH)
    case.expect("the end of the log", case.inspect.end(at), end)


@requirement("FENCE-05")
@versions(*BOTH)
@needs(EXPIRING)
def test_a_forgotten_zombie_is_refused_by_the_coordinator(case: CaseContext) -> None:
    """When the partition has forgotten an old epoch, its batch is still refused and not appended."""
    expiry_can_be_seen(case)
    at, elsewhere = case.topic(partitions=2)
    zombie = transactional(case).writes(at, values=["undecided"])
    # Ids expire here as soon as producers do, except those with an open transaction.
    newer = successor(case).writes(elsewhere, values=["b"])
    end = case.inspect.end(at)
    known = case.poll_until(lambda: _producers(case, at), lambda seen: not seen, within_s=SOON_S)
    case.require("the producers that the leader remembers", known, [])
    case.require("the successor's transaction", case.inspect.state(str(newer.transactional_id)), "Ongoing")
    _expect_refused(case, zombie, at)
    case.expect("the last stable offset", case.inspect.stable(at), end)
    newer.ends(commit=True, claim=True)
    case.expect("what readers are given of the successor", case.inspect.committed(elsewhere), ["b"])


def _producers(case: CaseContext, at: TopicPartition) -> list[int]:
    return [each["ProducerId"] for each in case.inspect.producers(at)]


@requirement("FENCE-04")
@versions(*BOTH)
@needs(HASTY)
@shares("crashed")
def test_the_cleaner_keeps_the_epoch(case: CaseContext) -> None:
    """Compaction keeps a record or marker of the newer epoch, and a leader with nothing but the log reads it there."""
    (at,) = case.topic(
        cleanup_policy="compact", min_cleanable_dirty_ratio="0.0", segment_ms=SEGMENT_MS, delete_retention_ms="0"
    )
    zombie = transactional(case)
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("the partition is added", lambda: zombie.add(at))
    case.require_code("a record with a key", zombie.send_batch(at, keyed("undecided", zombie)))
    successor(case)
    newer = aborted(case, at, zombie)
    # A record later than the segment's time rolls it. Everything before can then be cleaned: first the aborted record,
    # then all copies of a key but the last. A marker may be removed in the pass after its transaction became empty
    # (KIP-534).
    roll(case, at)
    left = case.poll_until(lambda: "undecided" in case.inspect.values(at), lambda seen: not seen, within_s=SOON_S)
    case.require("whether the aborted record is left", left, False)
    for _ in range(ROUNDS):
        roll(case, at)
    copies = case.poll_until(lambda: case.inspect.values(at).count("same"), partial(eq, 2), within_s=SOON_S)
    case.require("copies of a record that was written again and again, one of them not to be cleaned yet", copies, 2)
    epochs = [each.producer_epoch for each in case.inspect.batches(at) if each.producer_id == zombie.now.id]
    case.expect("the newest epoch that is left in the log", max(epochs, default=-1), newer)
    late = partial(zombie.send_batch, at, keyed("zombie", zombie, sequence=1))
    case.expect_code("a batch of the older epoch", late(), Code.INVALID_PRODUCER_EPOCH)
    leader = case.leader(at)
    with brokers.crashed(case, leader):
        for path in brokers.snapshots(brokers.files(case, leader, at)):
            path.unlink()
    case.expect_code("the same after a restart without snapshots", case.answered(late), Code.INVALID_PRODUCER_EPOCH)


def aborted(case: CaseContext, at: TopicPartition, zombie: ScriptedProducer) -> int:
    """Precondition: the zombie's transaction was aborted once, in a newer epoch, which is returned.

    Other cases claim by how much it is newer (TXN-03).
    """
    markers = case.inspect.markers(at)
    case.require("the markers and their ids", [each[:2] for each in markers], [("abort", zombie.now.id)])
    case.require("the epoch of the marker", markers[0][2], zombie.now.epoch + 1, Relation.AT_LEAST)
    return int(markers[0][2])


def keyed(word: str, producer: ScriptedProducer | None, *, sequence: int = 0, timestamp_ms: int | None = None) -> bytes:
    """A batch with one record that has a key, as a compacted topic requires; its value is the same."""
    identity = UNKNOWN if producer is None else producer.now
    return encode(
        [(word.encode(), word.encode())],
        timestamp_ms=timestamp_ms,
        producer_id=identity.id,
        producer_epoch=identity.epoch,
        base_sequence=-1 if producer is None else sequence,
        transactional=producer is not None,
    )


def roll(case: CaseContext, at: TopicPartition) -> None:
    """Set up: write a plain record, so late that it begins another segment."""
    newest_ms = max(batch.max_timestamp_ms for batch in case.inspect.batches(at))
    batch = keyed("same", None, timestamp_ms=newest_ms + ROLL_MS)
    case.require_code("a record that begins a segment", ScriptedProducer(case, None).send_batch(at, batch))
