"""GRP: offsets that follow a transaction, together with other commits, deletions and expiry."""

from __future__ import annotations

from functools import partial

from runner.protocol.toolkit.case import BOTH, HASTY, needs, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.groups import commit, fetch_offsets, joins, offsets_of, pends
from runner.protocol.toolkit.producer import ScriptedProducer
from wire.codes import ErrorCode as Code
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

#: The last version of OffsetCommit with a retention time (KIP-211).
RETENTION_VERSION = 4
EXPIRED_WITHIN_S = 30.0
#: `offset.metadata.max.bytes` is 4096.
OVERSIZED = "x" * 5000


def group_and_producer(
    case: CaseContext, *, partitions: int = 1
) -> tuple[str, tuple[TopicPartition, ...], ScriptedProducer]:
    """A new group, the partitions that it reads, and a producer."""
    producer = ScriptedProducer(case, f"{case.name}-id").ready()
    return f"{case.name}-group", case.topic(partitions), producer


def commits(case: CaseContext, group: str, offsets: dict[TopicPartition, int]) -> None:
    """Set up: commit offsets without a transaction."""
    case.set_up("the offsets are committed", partial(commit, case, group, offsets))


def claim(case: CaseContext, what: str, group: str, at: TopicPartition, offset: int) -> None:
    """Claim that no offset is pending on a partition, and its committed offset."""
    answer = fetch_offsets(case, group, [at], stable=True)
    case.expect_code(f"{what}: OffsetFetch with require_stable", answer, Code.NONE)
    case.expect(f"{what}: the committed offset", offsets_of(answer), {str(at): offset})


@requirement("GRP-01", "GRP-02")
@versions(*BOTH)
def test_a_pending_offset_is_invisible(case: CaseContext) -> None:
    """A pending offset is not returned, and a request for stable offsets gets an error for that partition only."""
    group, (first, second), producer = group_and_producer(case, partitions=2)
    commits(case, group, {first: 5, second: 6})
    pends(producer, group, {first: 9})
    answer = fetch_offsets(case, group, [first, second], stable=False)
    case.expect("the codes without require_stable", answer.codes, {str(first): 0, str(second): 0})
    case.expect("the offsets without require_stable", offsets_of(answer), {str(first): 5, str(second): 6})
    answer = fetch_offsets(case, group, [first, second], stable=True)
    unstable = int(Code.UNSTABLE_OFFSET_COMMIT)
    case.expect("the codes with require_stable", answer.codes, {str(first): unstable, str(second): 0})
    case.expect("the offset of the other partition", offsets_of(answer)[str(second)], 6)
    producer.ends(commit=False)


@requirement("GRP-03")
@versions(*BOTH)
def test_a_decided_offset_is_in_force_at_once(case: CaseContext) -> None:
    """Right after the completion a committed offset is returned; an aborted one leaves the value before it."""
    group, (at,), producer = group_and_producer(case)
    commits(case, group, {at: 5})
    for offset, commit_it, expected in ((9, True, 9), (12, False, 9), (14, True, 14)):
        pends(producer, group, {at: offset})
        producer.ends(commit=commit_it)
        claim(case, f"{offset} is {'committed' if commit_it else 'aborted'}", group, at, expected)


@requirement("GRP-10")
@versions(TransactionVersion.TV1)
def test_offsets_need_the_group_in_the_transaction(case: CaseContext) -> None:
    """TxnOffsetCommit of a group that was not added to the transaction is refused, and nothing is pending."""
    group, (at,), producer = group_and_producer(case)
    case.set_up("the group's coordinator is ready", partial(commit, case, group, {at: 5}))
    highest = case.version_of("TxnOffsetCommit", case.connection(case.group_coordinator(group)))
    for version in range(3, highest + 1):
        answer = producer.commit_offsets(group, {at: 9}, version=version)
        # KIP-890: v4 is the first version with TRANSACTION_ABORTABLE.
        code = Code.TRANSACTION_ABORTABLE if version >= 4 else Code.INVALID_TXN_STATE
        case.expect_code(f"without a transaction, v{version}", answer, code)
        claim(case, f"v{version}", group, at, 5)
    other = f"{group}-other"
    joins(producer, other)
    answer = producer.commit_offsets(other, {at: 9})
    case.expect_code("with the group in the transaction", answer, Code.NONE)
    producer.ends(commit=True)
    claim(case, "the other group", other, at, 9)


@requirement("GRP-11")
@versions(*BOTH)
def test_offsets_of_a_foreign_identity(case: CaseContext) -> None:
    """TxnOffsetCommit with a wrong epoch, producer id or transactional id is refused, and nothing is pending."""
    group, (at,), producer = group_and_producer(case)
    zombie = producer.copy()
    producer.ready()
    joins(producer, group)
    case.set_up("the group's coordinator is ready", partial(commit, case, group, {at: 5}))
    live = producer.now.epoch
    send = partial(producer.commit_offsets, group, {at: 9})
    case.expect_code("a lower epoch", send(epoch=zombie.now.epoch), Code.INVALID_PRODUCER_EPOCH)
    claim(case, "a lower epoch", group, at, 5)
    case.expect_code("a higher epoch", send(epoch=live + 1), Code.INVALID_PRODUCER_EPOCH)
    claim(case, "a higher epoch", group, at, 5)
    answer = send(ProducerId=producer.now.id + 1_000_000)
    case.expect_code("a wrong producer id", answer, Code.INVALID_PRODUCER_ID_MAPPING)
    answer = send(TransactionalId=f"{case.name}-nobody")
    case.expect_code("an unknown transactional id", answer, Code.INVALID_PRODUCER_ID_MAPPING)
    claim(case, "a foreign identity", group, at, 5)
    case.expect_code("its own identity", send(), Code.NONE)
    producer.ends(commit=True)
    claim(case, "its own identity", group, at, 9)


@requirement("GRP-13")
def test_oversized_metadata_of_a_plain_commit(case: CaseContext) -> None:
    """Metadata that is too large fails its own partition, and no partition has anything pending afterwards."""
    group, places, _ = group_and_producer(case, partitions=10)
    topics = [
        {
            "Name": places[0].topic,
            "Partitions": [
                {"PartitionIndex": index, "CommittedOffset": 7, "CommittedMetadata": OVERSIZED if index == 5 else ""}
                for index in range(10)
            ],
        }
    ]
    case.set_up("the group's coordinator is ready", partial(commit, case, f"{group}-other", {places[0]: 1}))
    answer = commit(case, group, {}, Topics=topics)
    large = int(Code.OFFSET_METADATA_TOO_LARGE)
    case.expect("the codes", answer.codes, {str(at): large if at.partition == 5 else 0 for at in places})
    answer = fetch_offsets(case, group, places, stable=True)
    case.expect("the codes of OffsetFetch with require_stable", answer.codes, {str(at): 0 for at in places})
    case.expect("the offsets", offsets_of(answer), {str(at): -1 if at.partition == 5 else 7 for at in places})


@requirement("GRP-13")
@versions(*BOTH)
def test_oversized_metadata_in_a_transaction(case: CaseContext) -> None:
    """Metadata that is too large fails its own partitions; the others are committed, all of them."""
    # Every second one of forty, because the order of a hash table decided which others were lost up to 3.7.0.
    group, places, producer = group_and_producer(case, partitions=40)
    partitions = [
        {"PartitionIndex": index, "CommittedOffset": 7, "CommittedMetadata": OVERSIZED if index % 2 else ""}
        for index in range(40)
    ]
    joins(producer, group)
    case.set_up("the group's coordinator is ready", partial(commit, case, f"{group}-other", {places[0]: 1}))
    answer = producer.commit_offsets(group, {}, Topics=[{"Name": places[0].topic, "Partitions": partitions}])
    large = int(Code.OFFSET_METADATA_TOO_LARGE)
    case.expect("the codes", answer.codes, {str(at): large if at.partition % 2 else 0 for at in places})
    producer.ends(commit=True)
    answer = fetch_offsets(case, group, places, stable=True)
    case.expect("the codes of OffsetFetch with require_stable", answer.codes, {str(at): 0 for at in places})
    case.expect("the offsets", offsets_of(answer), {str(at): -1 if at.partition % 2 else 7 for at in places})


@requirement("GRP-14")
@versions(*BOTH)
def test_the_last_commit_in_the_log_wins(case: CaseContext) -> None:
    """If plain and transactional commits mix, the one that was written last is in force, not the one decided last."""
    group, (at,), producer = group_and_producer(case)
    other = ScriptedProducer(case, f"{case.name}-other").ready()
    commits(case, group, {at: 5})
    pends(producer, group, {at: 9})
    producer.ends(commit=True)
    claim(case, "transactional after plain", group, at, 9)
    pends(producer, group, {at: 12})
    commits(case, group, {at: 3})
    producer.ends(commit=True)
    claim(case, "plain while a transactional one was pending", group, at, 3)
    pends(producer, group, {at: 15})
    pends(other, group, {at: 17})
    other.ends(commit=True)
    case.expect(
        "two pending, the later one decided: unstable",
        case.inspect.offset(group, at, stable=True),
        "UNSTABLE_OFFSET_COMMIT",
    )
    case.expect("two pending, the later one decided: in force", case.inspect.offset(group, at), 17)
    producer.ends(commit=True)
    claim(case, "two pending, the earlier one decided last", group, at, 17)


@requirement("GRP-15")
@needs(HASTY)
@versions(*BOTH)
def test_offsets_do_not_expire_under_a_transaction(case: CaseContext) -> None:
    """Expiry leaves a pending offset alone, and the committed one of its partition as well."""
    group, (first, second), producer = group_and_producer(case, partitions=2)
    pends(producer, group, {first: 9})
    expiring = partial(commit, case, group, {first: 5, second: 5}, version=RETENTION_VERSION, RetentionTimeMs=1)
    case.set_up("offsets that expire at once", expiring)
    gone = case.poll_until(
        lambda: case.inspect.offset(group, second), lambda seen: seen == -1, within_s=EXPIRED_WITHIN_S
    )
    case.require("the other partition's offset has expired", gone, -1)
    pending = case.inspect.offset(group, first, stable=True)
    case.expect("the pending offset", pending, "UNSTABLE_OFFSET_COMMIT")
    case.expect("the committed offset under it", case.inspect.offset(group, first), 5)
    producer.ends(commit=False)
    gone = case.poll_until(
        lambda: case.inspect.offset(group, first), lambda seen: seen == -1, within_s=EXPIRED_WITHIN_S
    )
    case.require("once nothing is pending it has expired, too", gone, -1)


@requirement("GRP-15")
@needs(HASTY)
@versions(*BOTH)
def test_a_group_is_not_deleted_under_a_transaction(case: CaseContext) -> None:
    """A group whose only offsets are pending is not deleted, so that the commit of the transaction brings them."""
    group, (at,), producer = group_and_producer(case)
    witness, broker = f"{group}-witness", case.group_coordinator(group)
    pends(producer, group, {at: 9})
    # Another group at the same broker may be deleted. Once it is gone, the broker has checked the first one, too.
    body = partial(commit, case, witness, {at: 5}, version=RETENTION_VERSION, RetentionTimeMs=1)
    case.require("one broker cares for both groups", case.group_coordinator(witness), broker)
    for turn in (1, 2):
        case.set_up(f"an offset that expires at once, {turn}", body)
        gone = case.poll_until(
            lambda: case.inspect.offset(witness, at), lambda seen: seen == -1, within_s=EXPIRED_WITHIN_S
        )
        case.require(f"it has expired, {turn}", gone, -1)
    producer.ends(commit=True)
    claim(case, "the transaction is committed", group, at, 9)


@requirement("GRP-16")
@versions(*BOTH)
def test_a_deleted_offset_stays_deleted(case: CaseContext) -> None:
    """An offset that OffsetDelete removed while one was pending is not brought back by the marker."""
    group, (first, second), producer = group_and_producer(case, partitions=2)
    commits(case, group, {first: 5, second: 6})
    pends(producer, group, {first: 9})
    topics = [{"Name": first.topic, "Partitions": [{"PartitionIndex": first.partition}]}]
    answer = case.ask("OffsetDelete", {"GroupId": group, "Topics": topics}, broker=case.group_coordinator(group))
    case.require_code("the offset is deleted", answer)
    claim(case, "while the transaction is open", group, first, -1)
    producer.ends(commit=True)
    claim(case, "after the commit", group, first, -1)
    claim(case, "the other partition", group, second, 6)


@requirement("GRP-16")
@versions(*BOTH)
def test_a_deleted_group_stays_deleted(case: CaseContext) -> None:
    """The offsets of a group that DeleteGroups removed while one was pending are not brought back by the marker."""
    group, (at,), producer = group_and_producer(case)
    commits(case, group, {at: 5})
    pends(producer, group, {at: 9})
    answer = case.ask("DeleteGroups", {"GroupsNames": [group]}, broker=case.group_coordinator(group))
    case.require_code("the group is deleted", answer)
    claim(case, "while the transaction is open", group, at, -1)
    producer.ends(commit=True)
    claim(case, "after the commit", group, at, -1)
