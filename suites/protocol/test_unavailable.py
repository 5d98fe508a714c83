"""COORD, ISO and GRP: answers of brokers that cannot know the answer yet, or cannot store a change.

The transaction log has too few replicas, a leader was just elected, or a group coordinator still loads. The cases keep
brokers in these states: they hold the Fetch requests of replicas on their links, or make a log slow to load.
"""

from __future__ import annotations

import struct
from functools import partial

from chaos.cluster import GROUPS_TOPIC, BrokerId, Link
from chaos.frames import FrameFilter, Hold
from fixtures.clusters.observing.coordinators import partition_of
from runner.protocol.toolkit import brokers, groups, replicas
from runner.protocol.toolkit.case import BOTH, THREE, needs, requirement, versions
from runner.protocol.toolkit.context import BrokerConnection, CaseContext, Sent
from runner.protocol.toolkit.coordinators import described, id_at, log_of, whole_log
from runner.protocol.toolkit.producer import ScriptedProducer, plain
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.tampering import into, tampered
from verification.checks.transaction_states import judge
from verification.scripts.script import Relation
from wire.client import Client
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.compression import Compression
from wire.records import encode
from wire.transaction_versions import TransactionVersion
from wire.values import Isolation, TopicPartition

#: A leader gives up a replica after replica.lag.time.max.ms (3 s), and checks in half of that.
SHRUNK_WITHIN_S = 20.0
#: How often an initialisation must fail.
ATTEMPTS = 3
#: Ids are spread over three partitions by their hashes.
NEIGHBOURS_TRIED = 40
EARLIEST, LATEST = -2, -1


@requirement("COORD-09")
@needs(THREE)
@versions(*BOTH)
def test_a_state_that_cannot_be_kept_is_not_taken(case: CaseContext) -> None:
    """Without enough replicas of the transaction log no state changes and no epoch is used; with them all goes on."""
    asked = brokers.controller(case)
    coordinator, leader = (each for each in case.brokers if each != asked)
    (at,) = replicas.placed(case, [leader, asked])
    owner = id_at(case, "owner", coordinator).writes(at, values=["a"])
    log = log_of(case, owner)
    idle, probe = _neighbours(case, log)
    idle.ready()
    known, claimed = [described(case, each) for each in (owner, idle)], idle.now
    links = into(coordinator, asked, leader)
    with tampered(case, FrameFilter(api="Fetch"), Hold(), *links) as fetches:
        fetches.met("a Fetch of each follower", *links)
        # The leader gives up a replica only if it lacks a record, such as this one, which waits for replicas.
        waiting = _initialises(case, probe, coordinator)
        look = partial(replicas.in_sync, case, log)
        alone = case.poll_until(look, lambda seen: seen == [coordinator], within_s=SHRUNK_WITHIN_S)
        case.require(f"the replicas in sync of {log}", alone, [coordinator])
        for _ in range(ATTEMPTS):
            case.expect_code("EndTxn(commit)", owner.end(commit=True), Code.COORDINATOR_NOT_AVAILABLE)
            case.expect_code("InitProducerId", idle.init(), Code.COORDINATOR_NOT_AVAILABLE)
        case.expect("the ids as they are described", [described(case, each) for each in (owner, idle)], known)
        case.expect("the markers", case.inspect.markers(at), [])
        case.expect("what a reader is given", case.inspect.committed(at), [])
    brokers.whole(case)
    case.expect_code("what waited for replicas", waiting.receive(), Code.NONE)
    case.expect("the ids with replicas again", [described(case, each) for each in (owner, idle)], known)
    case.expect_code("InitProducerId with replicas again", case.answered(idle.init), Code.NONE)
    case.expect("its id and epoch", (idle.now.id, idle.now.epoch), (claimed.id, claimed.epoch + 1))
    case.expect_code("EndTxn(commit) with replicas again", case.answered(partial(owner.end, commit=True)), Code.NONE)
    case.expect("the state", case.inspect.completed(owner.transactional_id), "CompleteCommit")
    case.expect("the markers", case.inspect.markers(at), [("commit", owner.now.id, owner.now.epoch)])
    case.expect("what a reader is given at last", case.inspect.committed(at), ["a"])
    own = [each for each in whole_log(case) if each.partition == log.partition]
    illegal = [str(each) for each in judge(own).illegal if each.entry.transactional_id.startswith(case.name)]
    case.expect("records that cannot follow what stands before them", illegal, [])


def _neighbours(case: CaseContext, log: TopicPartition) -> list[ScriptedProducer]:
    """Two producers whose ids are in this partition of the transaction log."""
    tried = [ScriptedProducer(case, f"{case.name}-neighbour-{number}") for number in range(NEIGHBOURS_TRIED)]
    found = [each for each in tried if log_of(case, each) == log][:2]
    case.require(f"ids in {log}", len(found), 2)
    return found


def _initialises(case: CaseContext, producer: ScriptedProducer, coordinator: int) -> Sent:
    """Send InitProducerId for the producer, without waiting for the answer."""
    connection = case.open_connection(coordinator)
    body = {"TransactionalId": producer.transactional_id, "TransactionTimeoutMs": producer.timeout_ms}
    return case.send(case.request("InitProducerId", body, connection=connection), connection=connection)


def latest(
    case: CaseContext, at: TopicPartition, *, version: int, timestamp: int = LATEST, isolation: int = 0
) -> Response:
    """Send one ListOffsets to the partition's leader."""
    place = {"PartitionIndex": at.partition, "CurrentLeaderEpoch": -1, "Timestamp": timestamp}
    body = {"ReplicaId": -1, "IsolationLevel": isolation, "Topics": [{"Name": at.topic, "Partitions": [place]}]}
    return case.ask("ListOffsets", body, broker=case.leader(at), version=version)


@requirement("ISO-12")
@needs(THREE)
def test_a_new_leader_does_not_guess_where_the_log_ends(case: CaseContext) -> None:
    """Until its high watermark has reached its epoch, a leader that was just elected names no latest offset."""
    old, new, far = case.brokers
    (at,) = replicas.placed(case, [old, new, far])
    plain(case, at, "a")
    replicas.put(case, at, new, old, far)
    case.require("the leader", case.leader(at), old)
    links = (_link(far, old), _link(old, new), _link(far, new))
    with tampered(case, FrameFilter(api="Fetch"), Hold(), *links) as fetches:
        fetches.met("a Fetch of the follower that lags", links[0])
        without_id = ScriptedProducer(case, None)
        batch = without_id.batch(at, ["b"], sequence=-1)
        case.require_code("a record that two replicas have", without_id.send_batch(at, batch, Acks=1))
        known = case.poll_until(lambda: _size(case, at, new), lambda seen: seen == _size(case, at, old), within_s=10)
        case.require("bytes of the log at the next leader", known, _size(case, at, old))
        told = latest(case, at, version=5)
        case.require_code("ListOffsets before the election", told)
        case.require("the latest offset before the election", told["Topics"][0]["Partitions"][0]["Offset"], 1)
        replicas.elected(case, at, new)
        # Metadata may name it before it knows that itself. Until then it answers that it is not the leader, as expected.
        known = case.poll_until(
            lambda: latest(case, at, version=5, timestamp=EARLIEST).code,
            lambda code: code != Code.NOT_LEADER_OR_FOLLOWER,
            within_s=10,
        )
        case.require("the next leader knows that it leads", known != Code.NOT_LEADER_OR_FOLLOWER, True)
        answers = _too_early(case, at)
        # Once it has given up both followers, its high watermark is the end of its log, and it may answer with that.
        case.require("replicas in sync meanwhile", len(replicas.in_sync(case, at)), 2, Relation.AT_LEAST)
        for what, answer, code in answers:
            case.expect_code(what, answer, code)
    for isolation in Isolation:
        ask = partial(latest, case, at, version=5, isolation=int(isolation))
        answer = case.poll_until(ask, lambda each: each.code == Code.NONE, within_s=SHRUNK_WITHIN_S)
        case.expect_code(f"ListOffsets at last, {isolation.name}", answer, Code.NONE)
        case.expect(f"the latest offset at last, {isolation.name}", answer["Topics"][0]["Partitions"][0]["Offset"], 2)
    brokers.whole(case)


def _too_early(case: CaseContext, at: TopicPartition) -> list[tuple[str, Response, Code]]:
    """Requests to a leader that cannot know yet where its log ends: name, answer and expected code."""
    unknown = ((5, Code.OFFSET_NOT_AVAILABLE), (4, Code.LEADER_NOT_AVAILABLE))
    asked = [
        (
            f"ListOffsets v{version}, latest, {level.name}",
            latest(case, at, version=version, isolation=int(level)),
            code,
        )
        for version, code in unknown
        for level in Isolation
    ]
    return [*asked, ("ListOffsets, earliest", latest(case, at, version=5, timestamp=EARLIEST), Code.NONE)]


def _link(source: int, target: int) -> Link:
    return Link(source=str(source), target=BrokerId(target))


def _size(case: CaseContext, at: TopicPartition, broker: int) -> int:
    """The length of a replica's log in bytes."""
    body = {"Topics": [{"Topic": at.topic, "Partitions": [at.partition]}]}
    found = case.client.call("DescribeLogDirs", body, broker=broker)["Results"][0]["Topics"]
    return int(found[0]["Partitions"][0]["PartitionSize"]) if found else 0


#: Committed offsets that a coordinator must load, which takes about half a second, also in later cases.
LOADED, PER_BATCH = 300_000, 20_000
#: Enough for some requests to arrive while it loads.
MOVES = 4
TAKEN_WITHIN_S = 60.0
#: Brokers accept records for internal topics only from clients with this name.
ADMINISTRATOR = "__admin_client"


@requirement("GRP-12")
@needs(THREE)
@versions(TransactionVersion.TV1)
def test_a_group_coordinator_that_loads_says_so(case: CaseContext) -> None:
    """While a group coordinator loads, TxnOffsetCommit gets a code that its version declares retriable."""
    (at,) = case.topic()
    group = f"{case.name}-group"
    count = len(case.client.metadata([GROUPS_TOPIC]).topics[GROUPS_TOPIC].partitions) or _made(case, group)
    log = TopicPartition(GROUPS_TOPIC, partition_of(group, count))
    case.set_up("an offset of the group", partial(groups.commit, case, group, {at: 3}))
    before, after = case.brokers[:2]
    replicas.lead(case, log, before)
    _fill(case, log, at)
    owner = ScriptedProducer(case, f"{case.name}-owner").ready()
    groups.joins(owner, group)
    newest = case.version_of("TxnOffsetCommit", case.connection(after))
    met: dict[int, set[int]] = {1: set(), 2: set(), newest: set()}
    for turn in range(MOVES):
        leader = (after, before)[turn % 2]
        replicas.put(case, log, leader, *(each for each in case.brokers if each != leader))
        connection = case.open_connection(leader)
        elected = replicas.electing(case, log, by=case.brokers[2])
        _taken(owner, group, at, connection, met)
        case.require_code("the election", elected.receive())
        if all(met.values()):
            break
    case.require("versions that were not answered while it loaded", [each for each in met if not met[each]], [])
    for version, codes in met.items():
        wanted = Code.COORDINATOR_NOT_AVAILABLE if version < 2 else Code.COORDINATOR_LOAD_IN_PROGRESS
        case.expect(f"the codes of v{version} while it loads", sorted(map(code_name, codes)), [code_name(wanted)])
    owner.ends(commit=True)
    case.expect("the committed offset", case.inspect.offset(group, at, stable=True), 7)


def _taken(
    owner: ScriptedProducer, group: str, at: TopicPartition, connection: BrokerConnection, met: dict[int, set[int]]
) -> None:
    """Commit an offset at one broker in all versions until it succeeds; collects the codes before that in `met`."""
    case = owner.case
    topic = {"Name": at.topic, "Partitions": [{"PartitionIndex": at.partition, "CommittedOffset": 7}]}
    identity = {"ProducerId": owner.now.id, "ProducerEpoch": owner.now.epoch}
    body = {"TransactionalId": owner.transactional_id, "GroupId": group, "Topics": [topic], **identity}
    expected = {int(Code.NONE), int(Code.NOT_COORDINATOR)}

    def ask() -> set[int]:
        codes = {
            version: case.ask("TxnOffsetCommit", body, connection=connection, version=version).code for version in met
        }
        for version, code in codes.items():
            met[version] |= {code} - expected
        return set(codes.values())

    taken = case.poll_until(ask, lambda codes: codes == {int(Code.NONE)}, within_s=TAKEN_WITHIN_S)
    case.require("the codes at last", sorted(map(code_name, taken)), [code_name(Code.NONE)])


def _made(case: CaseContext, group: str) -> int:
    """The number of partitions of the group coordinators' topic, once it exists."""
    case.group_coordinator(group)
    return len(case.client.metadata([GROUPS_TOPIC]).topics[GROUPS_TOPIC].partitions)


def _fill(case: CaseContext, log: TopicPartition, at: TopicPartition) -> None:
    """Write committed offsets into a coordinator's log, as after long use."""
    group, topic = b"of-long-ago", at.topic.encode()
    # OffsetCommitKey v1: group, topic, partition. OffsetCommitValue v1: offset, metadata, times of commit and expiry.
    key = struct.pack(f">hh{len(group)}sh{len(topic)}si", 1, len(group), group, len(topic), topic, at.partition)
    value = struct.pack(">hqhqq", 1, 5, 0, 0, 1 << 60)
    batch = encode([(key, value)] * PER_BATCH, compression=Compression.GZIP)
    client = Client(case.cluster.witness_bootstrap, case.client.definitions, client_id=ADMINISTRATOR)
    producer = ScriptedProducer(case, None)
    try:
        for _ in range(LOADED // PER_BATCH):
            body = producer.produce_body({log: batch})
            answer = client.call("Produce", body, 8, broker=case.leader(log))
            code = answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"]
            case.require("the code of records for the coordinator to load", code, 0)
    finally:
        client.close()
