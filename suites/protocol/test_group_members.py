"""GRP: the members that may commit a group's offsets in a transaction, in groups of both protocols and without one."""

from __future__ import annotations

from runner.protocol.toolkit.case import BOTH, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.groups import (
    ClassicMember,
    ConsumerMember,
    commit,
    commits_by_id,
    fetch_offsets,
    has_ids,
    joins,
    member_fields,
    offsets_of,
)
from runner.protocol.toolkit.producer import ScriptedProducer
from wire.codes import ErrorCode as Code
from wire.values import TopicPartition


def group_in_transaction(
    case: CaseContext, *, partitions: int = 1
) -> tuple[str, tuple[TopicPartition, ...], ScriptedProducer]:
    """A new group, the partitions that it reads, and a producer whose transaction includes the group."""
    group = f"{case.name}-group"
    places = case.topic(partitions)
    producer = ScriptedProducer(case, f"{case.name}-id").ready()
    joins(producer, group)
    return group, places, producer


def nothing_pending(case: CaseContext, group: str, at: TopicPartition) -> None:
    """Claim that no refused offset is pending."""
    answer = fetch_offsets(case, group, [at], stable=True)
    case.expect_code("OffsetFetch with require_stable after the refusals", answer, Code.NONE)
    case.expect("the committed offset after the refusals", offsets_of(answer), {str(at): -1})


@requirement("GRP-05")
@versions(*BOTH)
def test_a_stale_member_is_refused(case: CaseContext) -> None:
    """Offsets of a generation or a member that the group does not have are refused; those of the member are taken."""
    group, (at,), producer = group_in_transaction(case)
    member = ClassicMember(case, group, at.topic).stable()
    for generation in (member.generation - 1, member.generation + 1):
        answer = producer.commit_offsets(group, {at: 9}, **member.identity(generation=generation))
        case.expect_code(f"generation {generation} instead of {member.generation}", answer, Code.ILLEGAL_GENERATION)
    answer = producer.commit_offsets(group, {at: 9}, **member.identity(member="nobody"))
    case.expect_code("an unknown member", answer, Code.UNKNOWN_MEMBER_ID)
    nothing_pending(case, group, at)
    answer = producer.commit_offsets(group, {at: 9}, **member.identity())
    case.expect_code("the member itself", answer, Code.NONE)
    producer.ends(commit=True)
    case.expect("the committed offset", case.inspect.offset(group, at, stable=True), 9)


@requirement("GRP-05")
@versions(*BOTH)
def test_a_replaced_static_member_is_refused(case: CaseContext) -> None:
    """Offsets of a static member that another one with its instance id has replaced are refused."""
    group, (at,), producer = group_in_transaction(case)
    replaced = ClassicMember(case, group, at.topic, instance="static").stable()
    member = ClassicMember(case, group, at.topic, instance="static").joined()
    case.require("the ids of both differ", member.id == replaced.id, False)
    answer = producer.commit_offsets(group, {at: 9}, **replaced.identity())
    case.expect_code("the replaced member", answer, Code.FENCED_INSTANCE_ID)
    nothing_pending(case, group, at)
    answer = producer.commit_offsets(group, {at: 9}, **member.identity())
    case.expect_code("the member in its place", answer, Code.NONE)
    producer.ends(commit=True)
    case.expect("the committed offset", case.inspect.offset(group, at, stable=True), 9)


@requirement("GRP-06")
@versions(*BOTH)
def test_a_group_that_does_not_exist(case: CaseContext) -> None:
    """Offsets with a generation for a group that does not exist are refused, and the group is not created."""
    group, (at,), producer = group_in_transaction(case)
    ClassicMember(case, f"{group}-other", at.topic).joined()  # the group's coordinator is ready
    answer = producer.commit_offsets(group, {at: 9}, **member_fields(case, 1, "nobody"))
    # A coordinator before 4.0 looks for the member first, a later one for the group.
    code = Code.ILLEGAL_GENERATION if case.since("4.0.0") else Code.UNKNOWN_MEMBER_ID
    case.expect_code("a generation of no group", answer, code)
    if has_ids(case):
        answer = commits_by_id(producer, group, at, 9, **member_fields(case, 1, "nobody"))
        case.expect_code("a generation of no group, v6", answer, Code.GROUP_ID_NOT_FOUND)
    nothing_pending(case, group, at)
    producer.ends(commit=False)


@requirement("GRP-07")
@versions(*BOTH)
def test_offsets_without_member_data_are_taken(case: CaseContext) -> None:
    """Offsets without member data are accepted for a group with live members: no member is fenced."""
    group, (at,), producer = group_in_transaction(case)
    ClassicMember(case, group, at.topic).stable()
    answer = producer.commit_offsets(group, {at: 9}, **member_fields(case, -1, ""))
    case.expect_code("no member, generation −1", answer, Code.NONE)
    case.expect("it is pending", case.inspect.offset(group, at, stable=True), "UNSTABLE_OFFSET_COMMIT")
    producer.ends(commit=True)
    case.expect("the committed offset", case.inspect.offset(group, at, stable=True), 9)


@requirement("GRP-09")
@versions(*BOTH)
def test_offsets_during_a_rebalance(case: CaseContext) -> None:
    """A transactional commit is accepted while the group completes a rebalance, in which a plain one is refused."""
    group, (at,), producer = group_in_transaction(case)
    member = ClassicMember(case, group, at.topic).joined()
    identity = member_fields(case, member.generation, member.id, api="OffsetCommit")
    plain = commit(case, group, {at: 5}, **identity)
    case.expect_code("OffsetCommit", plain, Code.REBALANCE_IN_PROGRESS)
    answer = producer.commit_offsets(group, {at: 9}, **member.identity())
    case.expect_code("TxnOffsetCommit", answer, Code.NONE)
    producer.ends(commit=True)
    case.expect("the committed offset", case.inspect.offset(group, at, stable=True), 9)


@requirement("GRP-08")
@versions(*BOTH)
def test_a_stale_epoch_of_a_consumer_group_is_refused(case: CaseContext) -> None:
    """In a group of the consumer protocol a member commits offsets of the partitions that it owns at the named epoch."""
    group, places, producer = group_in_transaction(case, partitions=2)
    member, other = consumer_pair(case, group, places[0].topic)
    (kept,), (lost,) = member.partitions, other.partitions
    at = {index: TopicPartition(places[0].topic, index) for index in (kept, lost)}
    stale = member_fields(case, member.epoch - 1, member.id)
    answer = producer.commit_offsets(group, {at[lost]: 9}, **stale)
    case.expect_code("an older epoch, for what was given away", answer, Code.ILLEGAL_GENERATION)
    answer = producer.commit_offsets(group, {at[kept]: 9, at[lost]: 9}, **stale)
    case.expect_code("an older epoch, for both", answer, Code.ILLEGAL_GENERATION)
    if has_ids(case):
        answer = commits_by_id(producer, group, at[lost], 9, **stale)
        case.expect_code("an older epoch, v6", answer, Code.STALE_MEMBER_EPOCH)
    answer = producer.commit_offsets(group, {at[kept]: 9}, **member_fields(case, member.epoch + 1, member.id))
    case.expect_code("an epoch to come", answer, Code.ILLEGAL_GENERATION)
    answer = producer.commit_offsets(group, {at[kept]: 9}, **member_fields(case, member.epoch, "nobody"))
    case.expect_code("an unknown member", answer, Code.UNKNOWN_MEMBER_ID)
    for each in at.values():
        nothing_pending(case, group, each)
    answer = producer.commit_offsets(group, {at[kept]: 9}, **stale)
    # KIP-1251: the kept partition was assigned to it at the epoch that it names.
    code = Code.NONE if case.since("4.3.0") else Code.ILLEGAL_GENERATION
    case.expect_code("an older epoch, for what it has kept", answer, code)
    answer = producer.commit_offsets(group, {at[kept]: 10}, **member_fields(case, member.epoch, member.id))
    case.expect_code("the member at its epoch", answer, Code.NONE)
    producer.ends(commit=True)
    case.expect("the committed offset", case.inspect.offset(group, at[kept], stable=True), 10)


def consumer_pair(case: CaseContext, group: str, topic: str) -> tuple[ConsumerMember, ConsumerMember]:
    """Set up: a member that owned both partitions and has given one to another member."""
    member, other = ConsumerMember(case, group, topic), ConsumerMember(case, group, topic)

    def owns(owner: ConsumerMember, count: int) -> int:
        """Send heartbeats of both until `owner` has `count` partitions; returns how many it has."""

        def beat() -> int:
            for each in (member, other):
                if each is owner or each.epoch > 0:
                    each.heartbeat()  # answer dropped: a refused one gives no partitions, and those are required
            return len(owner.partitions)

        return int(case.poll_until(beat, lambda seen: seen == count, within_s=15))

    case.require("partitions of the first member", owns(member, 2), 2)
    epoch = member.epoch
    case.require("partitions of the second member", owns(other, 1), 1)
    case.require("partitions that the first one has kept", owns(member, 1), 1)
    case.require("the epoch has risen by one", member.epoch, epoch + 1)
    return member, other
