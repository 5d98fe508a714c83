"""The message codec follows the definitions exactly."""

from __future__ import annotations

import importlib
import io
import pickle
import pkgutil
import struct
import time
from contextlib import suppress
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.wire_definitions import bodies, definition_jars, definitions, every_message
from wire.codes import ErrorCode
from wire.errors import BrokerError, DefinitionError, FieldError, ProtocolError, TruncatedError, VersionError
from wire.messages import Definitions, carried
from wire.primitives import Raw
from wire.request import Request, decode_request, decode_response
from wire.schema import UNKNOWN_TAGS

quick = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


def fetch_body(**partition: Any) -> dict[str, Any]:
    return {
        "MaxWaitMs": 5,
        "MinBytes": 1,
        "Topics": [{"Topic": "orders", "Partitions": [{"Partition": 1, "FetchOffset": 7, **partition}]}],
    }


def test_every_message_round_trips_at_its_defaults() -> None:
    """Every version of every request and response in the jars can be written and read back unchanged."""
    messages = every_message()
    assert len(messages) > 500
    for name, version in messages:
        codec = definitions().message(name, version).codec
        written = definitions().encode(name, version, {})
        assert definitions().decode(name, version, written) == codec.default(), (name, version)
        assert definitions().encode(name, version, codec.default()) == written, (name, version)


@quick
@given(data=st.data())
def test_any_value_round_trips(data: st.DataObject) -> None:
    """Any body that fits a definition comes back equal, at any version of any message."""
    name, version = data.draw(st.sampled_from(every_message()))
    body = data.draw(bodies(definitions().message(name, version).codec))
    written = definitions().encode(name, version, body)
    assert definitions().decode(name, version, written) == body


@quick
@given(data=st.data(), noise=st.binary(max_size=200))
def test_garbage_is_refused_with_a_protocol_error(data: st.DataObject, noise: bytes) -> None:
    """Arbitrary bytes either decode or raise ProtocolError, whatever lengths they declare."""
    name, version = data.draw(st.sampled_from(every_message()))
    with suppress(ProtocolError):
        read = definitions().decode(name, version, noise)
        definitions().encode(name, version, read)


@quick
@given(data=st.data())
def test_every_truncation_is_noticed(data: st.DataObject) -> None:
    """A message cut off anywhere is a ProtocolError, never a shorter message."""
    name, version = data.draw(st.sampled_from(every_message()))
    written = definitions().encode(name, version, data.draw(bodies(definitions().message(name, version).codec)))
    if written:
        cut = data.draw(st.integers(0, len(written) - 1))
        with pytest.raises(ProtocolError):
            definitions().decode(name, version, written[:cut])


@cache
def kafka_python_messages() -> dict[str, Any]:
    """Message classes of kafka-python by the definition's name."""
    found: dict[str, Any] = {}
    for package in ("admin", "consumer", "producer", "metadata"):
        root = importlib.import_module(f"kafka.protocol.{package}")
        for info in pkgutil.iter_modules(root.__path__):
            module = importlib.import_module(f"kafka.protocol.{package}.{info.name}")
            found |= {name: thing for name, thing in vars(module).items() if name.endswith(("Request", "Response"))}
    return found


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # kafka-python's way to its own definitions
@quick
@given(data=st.data())
def test_kafka_python_reads_and_writes_the_same_bytes(data: st.DataObject) -> None:
    """An independent codec takes our bytes for the same message: it writes them back unchanged."""
    theirs = dict(kafka_python_messages())
    assert {"FetchRequest", "ProduceResponse", "EndTxnRequest", "MetadataResponse"} <= theirs.keys()
    del theirs["ApiVersionsResponse"]  # it takes any refusal for one in v0
    pairs = [(name, v) for name, v in every_message() if name in theirs and v in range(*_span(theirs[name]))]
    name, version = data.draw(st.sampled_from(pairs))
    written = definitions().encode(name, version, data.draw(bodies(definitions().message(name, version).codec)))
    read = theirs[name].decode(written, version=version)
    read.with_header()  # some of its classes cannot be written again without
    assert read.encode() == written, (name, version)


def _span(message: Any) -> tuple[int, int]:
    first, last = message.valid_versions
    return first, last + 1


KIO_APIS = {
    "add_offsets_to_txn": "AddOffsetsToTxnRequest",
    "add_partitions_to_txn": "AddPartitionsToTxnRequest",
    "describe_transactions": "DescribeTransactionsRequest",
    "end_txn": "EndTxnRequest",
    "fetch": "FetchRequest",
    "find_coordinator": "FindCoordinatorRequest",
    "init_producer_id": "InitProducerIdRequest",
    "list_offsets": "ListOffsetsRequest",
    "list_transactions": "ListTransactionsRequest",
    "metadata": "MetadataRequest",
    "offset_fetch": "OffsetFetchRequest",
    "txn_offset_commit": "TxnOffsetCommitRequest",
    "write_txn_markers": "WriteTxnMarkersRequest",
}


@quick
@given(data=st.data())
def test_kio_reads_and_writes_the_same_bytes(data: st.DataObject) -> None:
    """A second independent codec agrees on the requests of the transaction protocol, at every version it has."""
    from kio.schema.index import schema_name_map
    from kio.serial import entity_reader, entity_writer
    from kio.static.constants import EntityType

    module = data.draw(st.sampled_from(sorted(KIO_APIS)))
    name = KIO_APIS[module]
    version = data.draw(st.sampled_from(sorted(set(schema_name_map[module]) & set(definitions().versions(name)))))
    path, _, kind = schema_name_map[module][version][EntityType.request].partition(":")
    entity = getattr(importlib.import_module(path), kind)
    written = definitions().encode(
        name, version, data.draw(bodies(definitions().message(name, version).codec, tame=True))
    )
    read, consumed = entity_reader(entity)(written, 0)
    assert consumed == len(written)
    again = io.BytesIO()
    entity_writer(entity)(again, read)
    assert again.getvalue() == written, (name, version)


def test_end_txn_v5_is_these_bytes() -> None:
    """A flexible request with its header has exactly the bytes of the protocol guide."""
    body = {"TransactionalId": "t", "ProducerId": 1, "ProducerEpoch": 2, "Committed": True}
    request = Request.of(definitions(), "EndTxn", 5, body, client_id="c", correlation_id=9)
    header = struct.pack(">hhih", 26, 5, 9, 1) + b"c" + b"\x00"
    content = header + b"\x02t" + struct.pack(">qhb", 1, 2, 1) + b"\x00"
    assert request.frame == struct.pack(">i", len(content)) + content
    seen, read = decode_request(definitions(), "EndTxn", 5, request.frame[4:])
    assert (seen["ClientId"], seen["CorrelationId"], read) == ("c", 9, body)


def test_classic_and_flexible_forms_differ_where_they_should() -> None:
    """The same body has long lengths in a classic version, compact ones and tag sections in a flexible one."""
    body = fetch_body()
    classic, flexible = (definitions().encode("FetchRequest", version, body) for version in (11, 12))
    assert struct.pack(">h", 6) + b"orders" in classic
    assert b"\x07orders" in flexible
    assert definitions().decode("FetchRequest", 11, classic)["Topics"][0]["Topic"] == "orders"


def test_error_paths_name_the_field() -> None:
    """A value that does not fit is refused with the message, the version and the whole path of the field."""
    with pytest.raises(
        FieldError, match=r"FetchRequest v12, Topics\[0\]\.Partitions\[0\]\.FetchOffset: 'x' is not of type int64"
    ):
        definitions().encode("FetchRequest", 12, fetch_body(FetchOffset="x"))
    with pytest.raises(FieldError, match=r"Partitions\[0\]\.Offset: no such field; there are"):
        definitions().encode("FetchRequest", 12, fetch_body(Offset=3))
    with pytest.raises(FieldError, match="MaxWaitMs: 2147483648 does not fit int32"):
        definitions().encode("FetchRequest", 12, {**fetch_body(), "MaxWaitMs": 2**31})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ProducerEpoch", True),
        ("ProducerId", 1.0),
        ("Committed", 1),
        ("TransactionalId", None),
        ("TransactionalId", b"t"),
        ("TransactionalId", "\ud800"),
        ("TransactionalId", "x" * 40_000),
    ],
)
def test_values_of_another_type_are_refused(field: str, value: object) -> None:
    """No silent conversion: a bool is no number, a number no bool, bytes no string, null only where it is allowed."""
    with pytest.raises(FieldError, match=field):
        definitions().encode("EndTxnRequest", 5, {field: value})


def test_a_field_of_another_version_is_refused_unless_it_changes_nothing() -> None:
    """A field that the version lacks passes when it is ignorable or holds its default, and is refused otherwise."""
    known = definitions()
    plain = {"TransactionalId": "t", "TransactionTimeoutMs": 1}
    assert known.encode("InitProducerIdRequest", 2, {**plain, "ProducerId": -1}) == known.encode(
        "InitProducerIdRequest", 2, plain
    )
    with pytest.raises(FieldError, match="KeyType: not in this version"):
        known.encode("FindCoordinatorRequest", 0, {"Key": "g", "KeyType": 1})
    assert known.encode("FetchRequest", 4, {**fetch_body(), "RackId": "r"}) == known.encode(
        "FetchRequest", 4, fetch_body()
    )


def test_unknown_tags_survive() -> None:
    """Tagged fields that no definition knows are kept and written again, in the order of their tags."""
    body = {"TransactionalId": "t", UNKNOWN_TAGS: {9: b"nine", 3: b"three"}}
    written = definitions().encode("EndTxnRequest", 5, body)
    assert written.endswith(b"\x02\x03\x05three\x09\x04nine")
    assert definitions().decode("EndTxnRequest", 5, written)[UNKNOWN_TAGS] == {3: b"three", 9: b"nine"}


def test_a_structure_that_may_be_null_is_preceded_by_a_byte() -> None:
    """A nullable structure is -1, or 1 and its fields; any negative byte means null, as in Kafka's own reader."""
    topics = {"Topics": [], "ResponsePartitionLimit": 1}
    name = "DescribeTopicPartitionsRequest"
    absent = definitions().encode(name, 0, {**topics, "Cursor": None})
    present = definitions().encode(name, 0, {**topics, "Cursor": {"TopicName": "t", "PartitionIndex": 2}})
    assert absent == b"\x01\x00\x00\x00\x01\xff\x00"
    assert present == b"\x01\x00\x00\x00\x01\x01\x02t\x00\x00\x00\x02\x00\x00"
    assert definitions().decode(name, 0, absent.replace(b"\xff", b"\x80"))["Cursor"] is None
    assert definitions().decode(name, 0, present)["Cursor"] == {"TopicName": "t", "PartitionIndex": 2}


def test_tags_out_of_order_are_refused() -> None:
    """A tag that repeats or goes back is a violation of KIP-482."""
    written = definitions().encode("EndTxnRequest", 5, {UNKNOWN_TAGS: {3: b"a", 9: b"b"}})
    with pytest.raises(ProtocolError, match="tag 3 after tag 3"):
        definitions().decode("EndTxnRequest", 5, written.replace(b"\x09\x01b", b"\x03\x01b"))


def test_tagged_fields_at_their_default_are_left_out() -> None:
    """A tagged field at its default takes no bytes."""
    silent = definitions().encode("FetchRequest", 12, {**fetch_body(), "ClusterId": None})
    spoken = definitions().encode("FetchRequest", 12, {**fetch_body(), "ClusterId": "c"})
    assert silent == definitions().encode("FetchRequest", 12, fetch_body())
    assert silent.endswith(b"\x01\x01\x00")  # no forgotten topics, no rack, no tags
    assert spoken.endswith(b"\x01\x01\x01\x00\x02\x02c")
    assert definitions().decode("FetchRequest", 12, spoken)["ClusterId"] == "c"


def test_a_declared_length_is_held_against_what_is_there() -> None:
    """A huge length is refused before anything of its size is allocated."""
    started = time.process_time()
    for lie in (0x7FFFFFFF, 1 << 20):
        with pytest.raises(TruncatedError, match=f"length {lie} declared"):
            definitions().decode("FetchResponse", 4, struct.pack(">ii", 0, lie) + b"\x00" * 100)
    with pytest.raises(TruncatedError):
        definitions().decode("EndTxnRequest", 5, b"\xff\xff\xff\xff\x0f" + b"\x00" * 20)
    assert time.process_time() - started < 1


def test_left_over_bytes_are_refused() -> None:
    """Bytes behind a message are refused."""
    written = definitions().encode("EndTxnRequest", 5, {})
    with pytest.raises(ProtocolError, match="3 bytes too many after EndTxnRequest v5"):
        definitions().decode("EndTxnRequest", 5, written + b"abc")


def test_bytes_behind_a_response_are_refused_but_for_metadata() -> None:
    """Librdkafka's mock cluster sends one after Metadata, and could not be tried otherwise."""
    body = definitions().encode("MetadataResponse", 12, {"ControllerId": 3})
    frame = struct.pack(">i", 7) + b"\x00" + body
    assert decode_response(definitions(), "Metadata", 12, frame + b"\x00") == decode_response(
        definitions(), "Metadata", 12, frame
    )
    with pytest.raises(TruncatedError):
        decode_response(definitions(), "Metadata", 12, frame[:-1])
    ended = struct.pack(">i", 7) + b"\x00" + definitions().encode("EndTxnResponse", 5, {})
    with pytest.raises(ProtocolError, match="1 bytes too many after EndTxnResponse v5"):
        decode_response(definitions(), "EndTxn", 5, ended + b"\x00")


def test_raw_bytes_take_the_place_of_anything() -> None:
    """Malformed requests can be built: a field, a structure or the body as raw bytes, at undefined versions."""
    known = definitions()
    assert known.encode("EndTxnRequest", 5, {"TransactionalId": Raw(b"\xff\xff")}).startswith(b"\xff\xff")
    assert b"JUNK" in known.encode("FetchRequest", 12, {"Topics": [Raw(b"JUNK")]})
    request = Request.of(known, "EndTxn", 99, Raw(b"anything"), header_version=2)
    assert request.frame.endswith(b"anything")
    assert request.frame[4:8] == struct.pack(">hh", 26, 99)


def test_a_request_is_the_same_bytes_every_time() -> None:
    """A request keeps its frame, correlation id included, also through pickling; two requests never share an id."""
    one, two = (Request.of(definitions(), "EndTxn", 5, {"ProducerId": 3}) for _ in range(2))
    assert one.correlation_id != two.correlation_id
    assert pickle.loads(pickle.dumps(one)).frame == one.frame  # noqa: S301 - our own bytes


def test_an_unanswered_produce_says_so() -> None:
    """Produce with Acks 0 gets no answer, and the request knows it."""
    assert not Request.of(definitions(), "Produce", 9, {"Acks": 0}).answered
    assert Request.of(definitions(), "Produce", 9, {"Acks": -1}).answered


def test_api_versions_is_answered_with_the_oldest_header() -> None:
    """The response header of ApiVersions has no tag section even where the body is flexible (KIP-511)."""
    body = definitions().encode("ApiVersionsResponse", 3, {"ErrorCode": 0})
    assert decode_response(definitions(), "ApiVersions", 3, struct.pack(">i", 5) + body)[0] == 5
    body = definitions().encode("EndTxnResponse", 3, {})
    assert decode_response(definitions(), "EndTxn", 3, struct.pack(">i", 6) + b"\x00" + body)[0] == 6


def test_unknown_names_and_versions_are_one_sentence() -> None:
    """An API or version that no jar has is named, with the versions that there are."""
    with pytest.raises(VersionError, match="EndTxnRequest has no version 77, only 0 to "):
        definitions().encode("EndTxnRequest", 77, {})
    with pytest.raises(DefinitionError, match="no API is called Nonsense"):
        definitions().api_key("Nonsense")
    with pytest.raises(DefinitionError, match="no message is called Nonsense"):
        definitions().decode("Nonsense", 0, b"")


def test_a_file_that_is_no_jar_is_refused(tmp_path: Any) -> None:
    """A missing or damaged jar is a DefinitionError that names the file."""
    damaged = tmp_path / "kafka-clients.jar"
    damaged.write_bytes(b"not a zip")
    for path in (damaged, tmp_path / "missing.jar"):
        with pytest.raises(DefinitionError, match=path.name):
            Definitions.load(path)
    with pytest.raises(DefinitionError, match="no jar"):
        Definitions.load()


def test_definitions_travel_to_other_processes() -> None:
    """Definitions pickle as their jars' names, so that workers elsewhere can use them."""
    copy = pickle.loads(pickle.dumps(definitions()))  # noqa: S301 - our own bytes
    assert copy.encode("EndTxnRequest", 5, {}) == definitions().encode("EndTxnRequest", 5, {})


def test_dropped_versions_come_from_the_older_jar() -> None:
    """Versions that Kafka 4.0 dropped can still be spoken, and uuids are uuids."""
    assert definitions().encode("WriteTxnMarkersRequest", 0, {"Markers": []}) == b"\x00\x00\x00\x00"
    assert definitions().versions("ProduceRequest")[0] == 0
    found = definitions().decode("MetadataResponse", 12, definitions().encode("MetadataResponse", 12, {"Topics": [{}]}))
    assert found["Topics"][0]["TopicId"] == UUID(int=0)


def test_error_codes_have_their_names() -> None:
    """Codes are named as Kafka names them, and one from the future stays a number."""
    assert [ErrorCode(code).name for code in (-1, 47, 90, 120)] == [
        "UNKNOWN_SERVER_ERROR",
        "INVALID_PRODUCER_EPOCH",
        "PRODUCER_FENCED",
        "TRANSACTION_ABORTABLE",
    ]
    error = pickle.loads(pickle.dumps(BrokerError(9999, "Fetch of t-0")))  # noqa: S301 - our own bytes
    assert (error.code, error.error, str(error)) == (9999, None, "Fetch of t-0: the broker answered error(9999)")


def test_definitions_are_carried_where_no_jar_is() -> None:
    """As texts of a few thousand characters they define their APIs as the jars do, and no others."""
    apis = ("ApiVersions", "Fetch")
    texts = carried(*definition_jars(), apis=apis)
    assert texts == carried(*definition_jars(), apis=apis)
    assert all(len(text) < 40_000 for text in texts)
    there = pickle.loads(pickle.dumps(Definitions.load(*texts)))  # noqa: S301 - our own
    assert there.apis() == sorted(apis)
    for name in (
        "RequestHeader",
        "ResponseHeader",
        *(f"{api}{kind}" for api in apis for kind in ("Request", "Response")),
    ):
        assert there.versions(name) == definitions().versions(name)
        for version in there.versions(name):
            assert there.source(name, version) == definitions().source(name, version)
    with pytest.raises(DefinitionError, match=r"no API is called Metadata in carried definitions$"):
        there.api_key("Metadata")
    with pytest.raises(DefinitionError, match="cannot read message definitions from carried definitions"):
        Definitions.load(texts[0][:-40])
    with pytest.raises(DefinitionError, match=r"cannot read message definitions from nowhere\.jar"):
        carried("nowhere.jar", apis=apis)
