"""Rows about client libraries: kafka-clients of the release under test, and librdkafka.

A library decides by itself what it asks of brokers, what it hides, and where its reader stands. So these cases call the
library, and look at its requests on the wire and at the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from chaos.cluster import BrokerId, Link
from chaos.frames import Delay, FrameFilter, Hold, Respond
from runner.protocol.toolkit.case import requirement, versions
from runner.protocol.toolkit.context import QUORUM_SINCE, CaseContext
from runner.protocol.toolkit.expected_codes import expect_fenced
from runner.protocol.toolkit.java_clients import (
    APP,
    POLLED_WITHIN_S,
    JavaConsumer,
    JavaProducer,
    java_admin,
    java_consumer,
    java_producer,
    outcome,
)
from runner.protocol.toolkit.librdkafka_clients import (
    DONE_WITHIN_S,
    delivered,
    ended,
    librdkafka_consumer,
    librdkafka_producer,
)
from runner.protocol.toolkit.producer import ScriptedProducer, plain, transactional
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.tampering import Tampered, tampered
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.compression import Compression
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

#: The time that a client tries to deliver a record. It gives a single request up after half of it.
DELIVERED_WITHIN_MS, GIVEN_UP_AFTER_MS = 2000, 1000
#: Longer than any wait of a client here: no transaction times out.
TIMEOUT_MS = 60_000
LATEST = -1  # librdkafka's OFFSET_END


@requirement("IDEMP-29")
def test_a_java_producer_without_settings_is_idempotent(case: CaseContext) -> None:
    """A Java producer that knows nothing but an address writes with a producer id and waits for all in-sync replicas."""
    (at,) = case.topic()
    with java_producer(case) as java:
        case.require("the record", outcome(java.sends(at, "a").get), "done")
        (batch,) = case.inspect.batches(at)
        case.expect("the producer id in the batch", batch.producer_id, 0, Relation.AT_LEAST)
        case.expect("the epoch and the sequence in the batch", [batch.producer_epoch, batch.base_sequence], [0, 0])
        # Clusters with ZooKeeper have no links on which requests could be looked at.
        if case.since(QUORUM_SINCE):
            _expect_all_replicas(case, java, at)


def _expect_all_replicas(case: CaseContext, java: JavaProducer, at: TopicPartition) -> None:
    """Claim that a producer asks for the acknowledgements of all in-sync replicas."""
    link = Link(source=APP, target=BrokerId(case.leader(at)))
    # Requests are only looked at: a tenth of a second is nothing to this client.
    with tampered(case, FrameFilter(api="Produce"), Delay(delay_s=0.1), link) as produced:
        case.require("another record", outcome(java.sends(at, "b").get), "done")
        produced.met("a Produce request", link)
        case.expect("the acknowledgements that it asks for", [body["Acks"] for body in produced.bodies()], [-1])


@requirement("ISO-08")
def test_aborted_records_stay_hidden_in_every_codec(case: CaseContext) -> None:
    """A reader under read_committed gets no record of an aborted batch, in whatever codec it was written."""
    places = dict(zip(Compression, case.topic(partitions=len(Compression)), strict=True))
    for codec, at in places.items():
        producer = transactional(case, codec.name)
        for word, commit in (("aborted", False), ("committed", True)):
            if case.transaction_version is TransactionVersion.TV1:
                case.set_up("the partition is added", partial(producer.add, at))
            values = [f"{word} {number}" for number in range(3)]
            case.set_up(f"{word} in {codec.name}", partial(producer.produce, at, values, compression=codec))
            producer.ends(commit=commit)
        written = [batch.compression for batch in case.inspect.batches(at) if not batch.control]
        case.require(f"{codec.name}: the codecs in the log", written, [codec, codec])
    with java_consumer(case) as java, librdkafka_consumer(case) as librdkafka:
        for codec, at in places.items():
            wanted, end = [f"committed {number}" for number in range(3)], case.inspect.end(at)
            case.require(f"{codec.name}: the end of the log", end, 8)
            case.expect(f"{codec.name}: what Java delivers", java.assigned(at).read_to(at, end), wanted)
            case.expect(f"{codec.name}: what librdkafka delivers", librdkafka.assigned(at, 0).read_to_end(), wanted)


@requirement("ISO-13")
def test_the_end_of_a_committed_reader_is_the_stable_offset(case: CaseContext) -> None:
    """The end, the seek to the end and the lag of a reader under read_committed end at the last stable offset."""
    (at,) = case.topic()
    for value in ("a", "b"):
        plain(case, at, value)
    producer = transactional(case, "open").writes(at, values=["c"])
    ends = [case.inspect.stable(at), case.inspect.end(at)]
    case.require("the stable offset and the end", ends, [2, 3])
    with java_consumer(case, max_poll_records=1) as java, librdkafka_consumer(case) as librdkafka:
        _expect_java_ends(case, java, at)
        case.expect("librdkafka: the lag behind its first record", librdkafka.assigned(at, 0).lag_after_one(at), 1)
        librdkafka.assigned(at, LATEST)
        case.expect("librdkafka: what it delivers from the end on", librdkafka.read_to_end(), [])
        producer.ends(commit=True)
        case.expect("librdkafka: what it delivers after the commit", librdkafka.read_to_end(), ["c"])
        case.expect("Java: what it delivers after the commit", java.read_to(at, 4), ["c"])


def _expect_java_ends(case: CaseContext, java: JavaConsumer, at: TopicPartition) -> None:
    """Claim where a Java reader sees the end, and leave it there."""
    place = java.place(at)
    case.expect("Java: the end", java.library.endOffsets(java.places(at)).get(place), 2)
    java.assigned(at)
    if case.since("3.0.0"):
        case.require("Java: the first poll", case.poll_until(java.polled, bool, within_s=POLLED_WITHIN_S), ["a"])
        lag = java.library.currentLag(place)
        case.expect("Java: the lag behind its first record", lag.isPresent() and lag.getAsLong(), 1)
    java.library.seekToEnd(java.places(at))
    case.expect("Java: the position after the seek to the end", java.library.position(place), 2)


@requirement("GRP-20")
def test_an_abort_does_not_rewind_a_java_reader(case: CaseContext) -> None:
    """After an abort a Java reader goes on behind the aborted input, until the application seeks back itself."""
    if not case.since("2.5.0"):
        raise NotApplicableError("a Java producer takes the metadata of a group from 2.5 on (KIP-447)")
    source, target = case.topic(partitions=2)
    group = f"{case.name}-group"
    plain(case, source, "first")
    settings = {"transactional_id": f"{case.name}-copier", "transaction_timeout_ms": TIMEOUT_MS}
    with java_consumer(case, group_id=group) as java, java_producer(case, **settings) as copier:
        java.assigned(source)
        case.require("the input", case.poll_until(java.polled, bool, within_s=POLLED_WITHIN_S), ["first"])
        copier.library.initTransactions()
        copier.library.beginTransaction()
        case.require("the output", outcome(copier.sends(target, "copied").get), "done")
        case.require("the offsets", outcome(lambda: copier.sends_offsets(java, {source: 1})), "done")
        case.require("the abort", outcome(copier.library.abortTransaction), "done")
        look = partial(case.inspect.offset, group, source, stable=True)
        left = case.poll_until(look, lambda seen: seen == -1, within_s=POLLED_WITHIN_S)
        case.require("the committed offset", left, -1)
        case.expect("the position after the abort", java.library.position(java.place(source)), 1)
        plain(case, source, "second")
        given = case.poll_until(java.polled, bool, within_s=POLLED_WITHIN_S)
        case.expect("what the next polls return", given, ["second"])
        java.library.seek(java.place(source), 0)
        case.expect(
            "what they return after a seek to the committed offset", java.read_to(source, 2), ["first", "second"]
        )
    case.expect("the output that is visible", case.inspect.committed(target), [])


@requirement("EXP-11")
def test_a_java_transaction_with_an_expired_record_cannot_commit(case: CaseContext) -> None:
    """If a record expires in a Java client, its transaction cannot commit but abort, and no record becomes visible."""
    kept, lost = case.topic(partitions=2)
    name = f"{case.name}-java"
    settings = {
        "transactional_id": name,
        "transaction_timeout_ms": TIMEOUT_MS,
        "delivery_timeout_ms": DELIVERED_WITHIN_MS,
        "request_timeout_ms": GIVEN_UP_AFTER_MS,
        "linger_ms": 0,
        "max_block_ms": int(DONE_WITHIN_S * 1000),
    }
    with _held_after_one(case, name, lost) as late, java_producer(case, **settings) as java:
        java.library.initTransactions()
        java.library.beginTransaction()
        case.require("the first record", outcome(java.sends(kept, "kept").get), "done")
        case.require("the second record", outcome(java.sends(lost, "lost").get), "TimeoutException")
        case.require("requests that were held", late.rule.count, 1, Relation.AT_LEAST)
        case.expect("the commit", outcome(java.library.commitTransaction), "done", Relation.DIFFERS)
        case.expect("the abort", outcome(java.library.abortTransaction), "done")
        late.released()
    _expect_hidden(case, name, kept, lost)


@requirement("EXP-11")
def test_a_librdkafka_transaction_with_an_expired_record_cannot_commit(case: CaseContext) -> None:
    """If a record expires in librdkafka, its transaction cannot commit but abort, and no record becomes visible."""
    kept, lost = case.topic(partitions=2)
    name = f"{case.name}-librdkafka"
    with _held_after_one(case, name, lost) as late:
        producer = librdkafka_producer(
            case,
            name,
            transaction_timeout_ms=TIMEOUT_MS,
            message_timeout_ms=DELIVERED_WITHIN_MS,
            socket_timeout_ms=GIVEN_UP_AFTER_MS,
        )
        producer.begin_transaction()
        case.require("the first record", delivered(producer, kept, "kept"), "done")
        case.require("the second record", delivered(producer, lost, "lost"), "_MSG_TIMED_OUT")
        case.require("requests that were held", late.rule.count, 1, Relation.AT_LEAST)
        case.expect("the commit", ended(partial(producer.commit_transaction, DONE_WITHIN_S)), "done", Relation.DIFFERS)
        case.expect("the abort", ended(partial(producer.abort_transaction, DONE_WITHIN_S)), "done")
        late.released()
    _expect_hidden(case, name, kept, lost)


@contextmanager
def _held_after_one(case: CaseContext, name: str, at: TopicPartition) -> Iterator[Tampered]:
    """Hold all Produce requests of a client but its first one.

    The link is prepared before the client connects: a client that must connect again might lose the time of its record.
    """
    produced = FrameFilter(api="Produce", transactional_id=name, skip=1)
    with tampered(case, produced, Hold(), Link(source=APP, target=BrokerId(case.leader(at)))) as late:
        yield late


def _expect_hidden(case: CaseContext, name: str, *places: TopicPartition) -> None:
    """Claim that the transaction is aborted, and that no record of it is visible."""
    # A client whose record expired may ask for its next epoch at once; then the id is Empty again.
    ended = ["CompleteAbort", "Empty"]
    case.expect("the state of the transaction", case.inspect.complete(name), ended, Relation.ONE_OF)
    markers = [kind for kind, _, _ in case.inspect.markers(places[0])]
    case.expect("the markers behind the first record", markers, ["abort"])
    for at in places:
        case.expect(f"what a reader is given of {at}", case.inspect.committed(at), [])


@requirement("ERR-04")
def test_a_java_producer_classifies_the_answers_of_brokers(case: CaseContext) -> None:
    """A Java producer repeats after a retriable code, only aborts after an abortable one, and ends after a fatal one."""
    (at,) = case.topic()
    with _transacting(case, "retriable") as java, _answered(case, "retriable", "Produce", Code.NOT_ENOUGH_REPLICAS):
        case.expect("retriable, for a record: the record", outcome(java.sends(at, "a").get), "done")
        case.expect("retriable, for a record: the commit", outcome(java.library.commitTransaction), "done")
    with _transacting(case, "abortable") as java:
        with _answered(case, "abortable", "Produce", Code.TRANSACTION_ABORTABLE):
            refused = outcome(java.sends(at, "b").get)
            case.expect("abortable, for a record: the record", refused, "TransactionAbortableException")
            commit = outcome(java.library.commitTransaction)
            case.expect("abortable, for a record: the commit", commit, "done", Relation.DIFFERS)
            case.expect("abortable, for a record: the abort", outcome(java.library.abortTransaction), "done")
        java.library.beginTransaction()
        case.expect("after the abort: the next record", outcome(java.sends(at, "c").get), "done")
        case.expect("after the abort: the next commit", outcome(java.library.commitTransaction), "done")
    for word, code in (("fatal", Code.PRODUCER_FENCED), ("abortable", Code.TRANSACTION_ABORTABLE)):
        name = f"{word}-at-the-end"
        with _transacting(case, name) as java, _answered(case, name, "EndTxn", code):
            case.require(f"{word}, for an abort: the record before", outcome(java.sends(at, "d").get), "done")
            abort = outcome(java.library.abortTransaction)
            case.expect(f"{word}, for an abort: the abort", abort, "done", Relation.DIFFERS)
            begin = outcome(java.library.beginTransaction)
            case.expect(f"{word}, for an abort: the next transaction", begin, "done", Relation.DIFFERS)
    case.expect("what a reader is given", case.inspect.committed(at), ["a", "c"])


@contextmanager
def _transacting(case: CaseContext, name: str) -> Iterator[JavaProducer]:
    """A Java producer with an open transaction."""
    with java_producer(case, transactional_id=f"{case.name}-{name}", transaction_timeout_ms=TIMEOUT_MS) as java:
        java.library.initTransactions()
        java.library.beginTransaction()
        yield java


@contextmanager
def _answered(case: CaseContext, name: str, api: str, code: Code) -> Iterator[None]:
    """Answer one request of a producer with a code in place of its broker, which never sees it."""
    asked = FrameFilter(api=api, transactional_id=f"{case.name}-{name}", count=1)
    links = [Link(source=APP, target=BrokerId(each)) for each in case.brokers]
    with tampered(case, asked, Respond(error_code=code), *links) as answered:
        yield
        case.require(f"{name}: requests that were answered with {code.name}", answered.rule.count, 1)


@requirement("ADM-07")
@versions(TransactionVersion.TV1, TransactionVersion.TV2)
def test_an_administrator_ends_a_transaction_by_its_id(case: CaseContext) -> None:
    """Admin.forceTerminateTransaction aborts the open transaction of an id and fences its producer (KIP-939)."""
    (at,) = case.topic()
    owner = transactional(case).writes(at, values=["undecided"])
    name = str(owner.transactional_id)
    case.require("the state before", case.inspect.state(name), "Ongoing")
    with java_admin(case) as admin:
        case.expect("the call", outcome(admin.forceTerminateTransaction(name).result().get), "done")
    # The request initialises the id once more when the transaction is aborted.
    case.expect("the state", case.inspect.completed(name), "Empty")
    case.expect("the markers", [kind for kind, _, _ in case.inspect.markers(at)], ["abort"])
    end = case.inspect.end(at)
    case.expect_code("the producer's next batch", owner.produce(at, ["late"]), Code.INVALID_PRODUCER_EPOCH)
    expect_fenced(case, "the producer's EndTxn(commit)", owner.end(commit=True))
    case.expect("the end of the log", case.inspect.end(at), end)
    case.expect("what a reader is given", case.inspect.committed(at), [])
    successor = ScriptedProducer(case, name).ready().writes(at, values=["next"])
    successor.ends(commit=True)
    case.expect("what a reader is given of a successor", case.inspect.committed(at), ["next"])
