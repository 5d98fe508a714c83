"""GRP: committed offsets while the leadership of the log of groups changes."""

from __future__ import annotations

from functools import partial
from operator import eq

from chaos.cluster import GROUPS_TOPIC
from fixtures.clusters.observing.coordinators import partition_of
from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import THREE, needs, requirement, shares
from runner.protocol.toolkit.context import BrokerConnection, CaseContext, Sent
from runner.protocol.toolkit.groups import commit, commit_body
from runner.protocol.toolkit.responses import NoAnswerError
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.values import TopicPartition

#: Elections; commits that are sent before each of them without waiting; how many of those are answered by then.
MOVES, COMMITS_EACH, SETTLED = 6, 60, 10
COMMIT_VERSION = 7


@requirement("GRP-18")
@needs(THREE)
def test_acknowledged_offsets_survive_moves_of_their_coordinator(case: CaseContext) -> None:
    """An offset that a coordinator acknowledged is there after it, also if its successor was elected at that moment."""
    (at,) = case.topic()
    group = f"{case.name}-group"
    log = _log_of(case, group)
    acknowledged = refused = 0
    for first in range(1, MOVES * COMMITS_EACH, COMMITS_EACH):
        old = case.leader(log)
        new = case.brokers[(case.brokers.index(old) + 1) % len(case.brokers)]
        # Now it is preferred, and an election makes it the leader at once.
        replicas.put(case, log, new, *(each for each in case.brokers if each != new))
        codes = _commits_during_an_election(case, group, at, first, log)
        acknowledged = max([acknowledged, *(offset for offset, code in codes.items() if code == Code.NONE)])
        refused += sum(code != Code.NONE for code in codes.values())
        led = case.poll_until(partial(case.leader, log), partial(eq, new), within_s=replicas.MOVED_WITHIN_S)
        case.require("the next coordinator", led, new)
        seen = _offset(case, group, at)
        case.expect(f"the committed offset, {acknowledged} was acknowledged", seen, acknowledged, Relation.AT_LEAST)
        case.expect(f"the committed offset, {max(codes)} was the last one sent", seen, max(codes), Relation.AT_MOST)
    case.require("the highest acknowledged offset", acknowledged, (MOVES - 1) * COMMITS_EACH, Relation.AT_LEAST)
    case.require("commits that a move refused", refused, 1, Relation.AT_LEAST)


def _commits_during_an_election(
    case: CaseContext, group: str, at: TopicPartition, first: int, log: TopicPartition
) -> dict[int, int | None]:
    """Send rising offsets to the coordinator, and elect the preferred one in their middle; the code of each."""
    old = case.leader(log)
    connection = case.open_connection(old)
    offsets = range(first, first + COMMITS_EACH)
    sent = [_committing(case, group, at, offset, connection) for offset in offsets]
    codes = [_code(each) for each in sent[:SETTLED]]
    election = replicas.electing(case, log, by=old)
    codes += [_code(each) for each in sent[SETTLED:]]
    election.receive()  # answer dropped: the case requires commits that a move refused
    return dict(zip(offsets, codes, strict=True))


@requirement("GRP-18")
@needs(THREE)
@shares("isolated")
def test_a_superseded_coordinator_acknowledges_no_offset(case: CaseContext) -> None:
    """A coordinator that was cut off and replaced acknowledges no offset that its successor does not have."""
    asked = brokers.controller(case)
    alone, _ = (each for each in case.brokers if each != asked)
    (at,) = case.topic()
    group = _group_of(case, alone)
    log = _log_of(case, group)
    case.set_up("an offset that all have", partial(commit, case, group, {at: 1}))
    old = case.open_connection(alone)
    with brokers.isolated(case, alone):
        successor = brokers.elected(case, log, instead_of=alone)
        for offset in (2, 3, 4):
            body = commit_body(group, {at: offset})
            commits = partial(case.ask, "OffsetCommit", body, broker=successor, version=COMMIT_VERSION)
            case.set_up(f"offset {offset} to the successor", commits)
        # The old coordinator has it in memory and in its log, and must lose it: its log is cut to its successor's.
        late = _committing(case, group, at, 99, old)
    case.expect("the answer of the old coordinator", _code(late), Code.NONE, Relation.DIFFERS)
    case.expect("the committed offset", _offset(case, group, at), 4)
    replicas.lead(case, log, alone)
    case.expect("the committed offset, by the old coordinator again", _offset(case, group, at), 4)


def _committing(case: CaseContext, group: str, at: TopicPartition, offset: int, connection: BrokerConnection) -> Sent:
    """Send OffsetCommit, without waiting for the answer."""
    request = case.request(
        "OffsetCommit", commit_body(group, {at: offset}), connection=connection, version=COMMIT_VERSION
    )
    return case.send(request, connection=connection)


def _offset(case: CaseContext, group: str, at: TopicPartition) -> int | str:
    """The committed offset, with require_stable as consumers of exactly-once ask for it, where the release has that."""
    return case.inspect.offset(group, at, stable=case.since("2.5.0"))


def _code(sent: Sent) -> int | None:
    """The code of the answer; None if none came, as from a connection that was closed."""
    try:
        return sent.receive().code
    except NoAnswerError:
        return None


def _log_of(case: CaseContext, group: str) -> TopicPartition:
    """The partition of the log of groups that a group is in."""
    case.group_coordinator(group)
    count = len(case.client.metadata([GROUPS_TOPIC]).topics[GROUPS_TOPIC].partitions)
    return TopicPartition(GROUPS_TOPIC, partition_of(group, count))


def _group_of(case: CaseContext, broker: int) -> str:
    """A group that this broker coordinates; it is first made the leader of its log if needed."""
    group = f"{case.name}-group"
    log = _log_of(case, group)
    if case.leader(log) != broker:
        replicas.lead(case, log, broker)
    return group
