"""ERR: the error codes for each version of a request, the versions that are served, and codes that are never sent."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from fixtures.clusters.given.cluster import GivenCluster
from runner.protocol.toolkit.case import BOTH, requirement, versions
from runner.protocol.toolkit.context import BrokerConnection, CaseContext
from runner.protocol.toolkit.fetching import write_marker
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.timing import short, timed_out
from verification.scripts.script import Relation
from verification.vocabulary.verdict import NOT_IMPLEMENTED
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.primitives import Raw
from wire.request import Request, decode_response
from wire.schema import Body, span
from wire.values import TopicPartition

#: Produce 13 and later name topics by id.
NAMED_MAX = 12
UNDEFINED = 99
#: The requests that exactly-once is made of.
REQUESTS = (
    "Produce",
    "Fetch",
    "ListOffsets",
    "FindCoordinator",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
    "OffsetCommit",
    "OffsetFetch",
    "DescribeProducers",
    "DescribeTransactions",
    "ListTransactions",
)
#: Requests that came with a release under test.
BEGUN = {"DescribeProducers": "2.8.0", "DescribeTransactions": "3.0.0", "ListTransactions": "3.0.0"}
#: The number of strange requests: enough for every pair of strange values in each API to occur a few times.
STRANGE_EACH = 40


def offered(case: CaseContext, api: str, *, first: int = 0, last: int = 0x7FFF) -> range:
    """The versions of an API, between two, that the broker offers and the client can encode."""
    connection = case.client.connection()
    lowest, highest = connection.versions.get(case.client.definitions.api_key(api), (0, -1))
    known = case.client.definitions.versions(f"{api}Request")
    return range(max(first, lowest, known[0]), min(last, highest, known[-1]) + 1)


@requirement("ERR-02")
def test_abortable_goes_only_to_versions_that_know_it(case: CaseContext) -> None:
    """A partition or group outside the transaction gets 120 from Produce v11 and TxnOffsetCommit v4 on, and 48 below."""
    added, at = case.topic(partitions=2)
    producer = ScriptedProducer(case, f"{case.name}-owner").ready()
    # One addition at v3 opens the transaction. Neither the partition nor the group is in it.
    case.set_up("another partition is added", lambda: producer.add(added))
    for version in offered(case, "Produce", first=3, last=11):
        wanted = Code.TRANSACTION_ABORTABLE if version >= 11 else Code.INVALID_TXN_STATE
        case.expect_code(f"a batch at v{version}", producer.produce(at, ["a"], version=version), wanted)
    for version in offered(case, "TxnOffsetCommit", last=4):
        wanted = Code.TRANSACTION_ABORTABLE if version >= 4 else Code.INVALID_TXN_STATE
        answer = producer.commit_offsets(case.name, {at: 1}, version=version)
        case.expect_code(f"an offset at v{version}", answer, wanted)
    case.expect("the log", case.inspect.values(at), [])
    case.set_up("the abort", lambda: producer.end(commit=False, version=3))
    case.inspect.complete(producer.transactional_id)


@requirement("ERR-03")
def test_fenced_goes_only_to_versions_that_know_it(case: CaseContext) -> None:
    """A producer that was replaced gets 90 where a version knows that code, 47 below, and 47 from every Produce."""
    (at,) = case.topic()
    zombie = ScriptedProducer(case, f"{case.name}-owner").ready().writes(at)
    successor = zombie.copy().ready()
    case.require("the successor's epoch", successor.now.epoch, zombie.now.epoch, Relation.DIFFERS)
    told: dict[str, tuple[int, int, Callable[[int], Response]]] = {
        "InitProducerId": (3, 4, lambda version: zombie.copy().init(continues=zombie.now, version=version)),
        "AddPartitionsToTxn": (0, 2, lambda version: zombie.add(at, version=version)),
        "AddOffsetsToTxn": (0, 2, lambda version: zombie.add_offsets(case.name, version=version)),
        "EndTxn": (0, 2, lambda version: zombie.end(commit=True, version=version)),
    }
    for api, (first, since, ask) in told.items():
        # AddPartitionsToTxn v4 and later are for brokers only, and v6 of InitProducerId is not released.
        for version in offered(case, api, first=first, last=3 if api == "AddPartitionsToTxn" else 5):
            wanted = Code.PRODUCER_FENCED if version >= since else Code.INVALID_PRODUCER_EPOCH
            case.expect_code(f"{api} v{version}", ask(version), wanted)
    for version in offered(case, "Produce", first=3, last=NAMED_MAX):
        answer = zombie.produce(at, ["z"], version=version)
        case.expect_code(f"Produce v{version}", answer, Code.INVALID_PRODUCER_EPOCH)
    case.expect("the log", case.inspect.values(at), ["a"])


@requirement("ERR-05")
def test_advertised_versions_are_those_of_the_release(case: CaseContext) -> None:
    """ApiVersions lists, for every request it lists, the versions that the release defines and no unstable one."""
    versions, definitions = case.client.connection().versions, case.defined
    advertised: dict[str, list[int]] = {}
    defined: dict[str, list[int]] = {}
    for api in definitions.apis():
        if not definitions.versions(f"{api}Request"):
            continue  # defined once, and served no more
        key = definitions.api_key(api)
        text = definitions.source(f"{api}Request", definitions.latest(f"{api}Request"))
        if key in versions:
            first, last = span(text["validVersions"])
            advertised[api] = list(versions[key])
            defined[api] = [first, last - bool(text.get("latestVersionUnstable"))]
    begun = {api for api, since in BEGUN.items() if not case.since(since)}
    missing = sorted(set(REQUESTS) - begun - set(advertised))
    if isinstance(case.cluster, GivenCluster):
        _expect_of_another_make(case, missing, advertised, defined)
        return
    if case.since("4.0.0"):
        # Listed from 0 for the sake of librdkafka, which would not compress otherwise (KAFKA-18659), and not served.
        defined["Produce"][0] = 0
    case.expect("the requests of exactly-once that are missing", missing, [])
    strange = {api: each for api, each in advertised.items() if each != defined[api]}
    case.expect("ranges that are others than defined", strange, {})


def _expect_of_another_make(
    case: CaseContext, missing: list[str], advertised: dict[str, list[int]], defined: dict[str, list[int]]
) -> None:
    """A broker that may be of another make may serve less than the release, and versions that older releases define."""
    above = {api: each for api, each in advertised.items() if each[1] > defined[api][1]}
    case.expect("ranges that exceed the defined ones", above, {})
    fewer = [api for api, (first, last) in advertised.items() if first > defined[api][0] or last < defined[api][1]]
    if lacking := [*missing, *(f"some versions of {api}" for api in fewer)]:
        raise NotApplicableError(f"{NOT_IMPLEMENTED}: {', '.join(lacking)}")


@requirement("ERR-05")
def test_an_unknown_version_of_api_versions_is_answered(case: CaseContext) -> None:
    """ApiVersions of an unknown version is answered with 35 in the form of v0, and the connection stays usable."""
    connection = case.open_connection(case.brokers[0])
    request = _undefined(case, "ApiVersions", UNDEFINED)
    begun = case.recording.begin("ApiVersions", UNDEFINED, connection.name, request.body)
    frame = connection.wire.receive_bytes(connection.wire.send(request))
    answer = case.recording.answered(begun, decode_response(case.client.definitions, "ApiVersions", 0, frame)[1])
    case.expect("its code", code_name(answer["ErrorCode"]), code_name(Code.UNSUPPORTED_VERSION))
    own = [[each["MinVersion"], each["MaxVersion"]] for each in answer["ApiKeys"] if each["ApiKey"] == 18]
    case.expect("its own range in it", own, [list(connection.wire.versions[18])])
    answer = case.ask("Metadata", {"Topics": []}, connection=connection, version=4)
    case.expect("the brokers by the same connection", len(answer["Brokers"]), len(case.brokers))


@requirement("ERR-05")
def test_an_unsupported_version_harms_only_its_connection(case: CaseContext) -> None:
    """A version that is not served closes the connection of the request, and has no other effect."""
    producer = ScriptedProducer(case, f"{case.name}-owner").ready()
    (at,) = case.topic()
    producer.writes(at)
    broker = case.coordinator(str(producer.transactional_id))
    unserved = {"EndTxn": UNDEFINED, "InitProducerId": UNDEFINED, "AddPartitionsToTxn": UNDEFINED, "Produce": UNDEFINED}
    if case.since("4.0.0"):
        unserved |= {"Fetch": 3, "ListOffsets": 0}
    for api, version in [*unserved.items(), *(("Produce", each) for each in range(3) if "Fetch" in unserved)]:
        connection, other = case.open_connection(broker), case.open_connection(broker)
        answer = case.send(_undefined(case, api, version), connection=connection).receive()
        case.expect(f"the answer to {api} v{version}", answer.body, None)
        case.expect("its connection is closed", connection.wire.closed, True)
        answer = case.ask("Metadata", {"Topics": []}, connection=other, version=4)
        case.expect("the brokers by another connection", len(answer["Brokers"]), len(case.brokers))
    producer.ends(commit=True)
    case.expect("what a reader is given", case.inspect.committed(at), ["a"])


@requirement("ERR-01")
@versions(*BOTH)
def test_strange_requests_are_refused_for_a_reason(case: CaseContext) -> None:
    """Requests with strange ids, epochs, partitions and versions are never answered with an unspecified error."""
    producer = short(case, "owner")
    (at,) = case.topic()
    producer.writes(at)
    connection = case.open_connection(case.coordinator(str(producer.transactional_id)))
    dice = random.Random("strange requests")
    unspecified: list[str] = []
    unanswered: list[str] = []
    for api, body in _strange(case, producer, at, dice):
        if api in BEGUN and not case.since(BEGUN[api]):
            continue
        version = dice.choice(offered(case, api, last=case.version_of(api, connection)))
        if version < 3 and api == "Produce":
            version = 3
        answer = _asked(case, api, body, version, connection)
        if answer.body is None:
            unanswered.append(f"exchange {answer.exchange}: {api} v{version}: {answer.error}")
            connection = case.open_connection(connection.broker)
        elif Code.UNKNOWN_SERVER_ERROR in answer.codes.values():
            # Stated at once, so that a later failure of the script does not lose it.
            unspecified.append(f"exchange {answer.exchange}: {api} v{version}")
            case.expect("answers with an unspecified error so far", unspecified, [])
    case.expect("answers with an unspecified error", unspecified, [])
    case.require("requests that were not answered at all", unanswered, [])
    producer.ready()
    case.expect("the state of the owner in the end", case.inspect.completed(producer.transactional_id), "Empty")


@requirement("ERR-01")
def test_markers_for_nobody_are_refused_for_a_reason(case: CaseContext) -> None:
    """A marker with an unknown producer id, epoch or partition is not answered with an unspecified error."""
    (at,) = case.topic()
    producer = ScriptedProducer(case, f"{case.name}-owner").ready().writes(at).ends(commit=True)
    sound: dict[str, Any] = {
        "id": producer.now.id,
        "epoch": producer.now.epoch,
        "coordinator": 0,
        "topic": at.topic,
        "partition": 0,
    }
    strange: dict[str, tuple[int | str, ...]] = {
        "id": (-1, -2, 1 << 50),
        "epoch": (-1, 0x7FFF),
        "coordinator": (-1, 1 << 30),
        "topic": ("", "nowhere"),
        "partition": (-1, 9),
    }
    for what, values in strange.items():
        for value in values:
            told = sound | {what: value}
            answer = write_marker(
                case,
                TopicPartition(told["topic"], told["partition"]),
                producer_id=told["id"],
                epoch=told["epoch"],
                coordinator_epoch=told["coordinator"],
                broker=case.leader(at),
                # The last version that does not name a transaction version.
                version=1,
            )
            seen = ", ".join(map(code_name, answer.codes.values()))
            unspecified = code_name(Code.UNKNOWN_SERVER_ERROR)
            case.expect(f"a marker whose {what} is {value or 'empty'}", seen, unspecified, Relation.DIFFERS)


@requirement("ERR-06")
@versions(*BOTH)
def test_a_batch_after_the_timeout_can_be_recovered_from(case: CaseContext) -> None:
    """After a timeout a batch gets the fencing code, on a partition that was written as on one only added."""
    written, added = case.topic(partitions=2)
    producer = short(case, "late").writes(written)
    # In TV2 a client adds nothing itself, but the request is still served.
    case.set_up("another partition is added", lambda: producer.add(added))
    case.require("the state", timed_out(case, producer), "CompleteAbort")
    case.expect_code("where it wrote", producer.produce(written, ["b"]), Code.INVALID_PRODUCER_EPOCH)
    case.expect_code("where it did not", producer.produce(added, ["b"]), Code.INVALID_PRODUCER_EPOCH)
    logs = [case.inspect.values(written), case.inspect.values(added)]
    case.expect("the logs", logs, [["a"], []])


def _undefined(case: CaseContext, api: str, version: int) -> Request:
    """An empty request at a version that is not served."""
    return Request.of(case.client.definitions, api, version, Raw(b""), header_version=2 if version == UNDEFINED else 1)


def _asked(case: CaseContext, api: str, body: Body, version: int, connection: BrokerConnection) -> Response:
    """Send one strange request, with the fields of its version."""
    message = case.client.definitions.message(f"{api}Request", version).codec
    names = {field.name for field in message.fields}
    return case.ask(
        api, {name: value for name, value in body.items() if name in names}, connection=connection, version=version
    )


def _strange(
    case: CaseContext, producer: ScriptedProducer, at: TopicPartition, dice: random.Random
) -> Iterator[tuple[str, Body]]:
    """Requests in which each value may be strange; a seed always gives the same requests."""
    now, name = producer.now, producer.transactional_id
    for number in range(STRANGE_EACH):
        epoch = dice.choice([now.epoch, now.epoch, now.epoch + 1, -1, -2, 0x7FFE, 0x7FFF])
        identity = {
            "TransactionalId": dice.choice([name, name, f"{case.name}-nobody", ""]),
            "ProducerId": dice.choice([now.id, now.id, now.id + 1, 1 << 50, -1, -2]),
            "ProducerEpoch": epoch,
        }
        topic = dice.choice([at.topic, at.topic, f"{case.name}-nowhere", ""])
        index = dice.choice([0, 0, 1, -1])
        group = dice.choice([case.name, ""])
        places = [{"Name": topic, "Partitions": [index]}]
        offset = {
            "PartitionIndex": index,
            "CommittedOffset": dice.choice([0, -1, -2, 1 << 60]),
            "CommittedMetadata": "",
        }
        batch = producer.batch(
            TopicPartition(topic, index),
            sequence=dice.choice([0, 1, -1, 0x7FFF_FFFF]),
            epoch=epoch,
            transactional=dice.choice([True, True, False]),
        )
        yield "InitProducerId", identity | {"TransactionTimeoutMs": dice.choice([1000, 0, -1, 900_001])}
        yield (
            "AddPartitionsToTxn",
            {f"V3AndBelow{key}": value for key, value in (identity | {"Topics": places}).items()},
        )
        yield "AddOffsetsToTxn", identity | {"GroupId": group}
        yield "TxnOffsetCommit", identity | {"GroupId": group, "Topics": [{"Name": topic, "Partitions": [offset]}]}
        yield "EndTxn", identity | {"Committed": number % 2 == 0}
        yield "DescribeTransactions", {"TransactionalIds": [identity["TransactionalId"]]}
        yield "DescribeProducers", {"Topics": [{"Name": topic, "PartitionIndexes": [index]}]}
        records = {"Index": index, "Records": batch}
        yield (
            "Produce",
            {
                "TransactionalId": identity["TransactionalId"],
                "Acks": -1,
                "TimeoutMs": 1000,
                "TopicData": [{"Name": topic, "PartitionData": [records]}],
            },
        )
