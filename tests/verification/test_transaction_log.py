"""The transaction log's decoder."""

from __future__ import annotations

import struct
from functools import cache

import pytest

from fixtures.clusters.locks.releases import Release, definition_jars, fetch_release
from verification.checks.transaction_states import judge
from verification.vocabulary.transaction_log import Entry, State, UnfitTransactionLogError, read
from wire.messages import Definitions
from wire.records import Batch, decode, encode
from wire.schema import Body

VALUE: Body = {
    "ProducerId": 7,
    "ProducerEpoch": 3,
    "TransactionTimeoutMs": 60_000,
    "TransactionStatus": 2,
    "TransactionPartitions": [{"Topic": "orders", "PartitionIds": [0, 2]}, {"Topic": "bills", "PartitionIds": [1]}],
    "TransactionLastUpdateTimestampMs": 1_700_000_000_500,
    "TransactionStartTimestampMs": 1_700_000_000_000,
}
APPENDED_MS = 1_700_000_000_600
EXPECTED = Entry(
    partition=1,
    offset=0,
    transactional_id="shop",
    state=State.PREPARE_COMMIT,
    producer_id=7,
    epoch=3,
    timeout_ms=60_000,
    places=frozenset({"orders-0", "orders-2", "bills-1"}),
    began_ms=1_700_000_000_000,
    updated_ms=1_700_000_000_500,
    appended_ms=APPENDED_MS,
)
KEY = b"\x00\x00\x00\x04shop"


@cache
def definitions(release: str = "4.3.1") -> Definitions:
    return Definitions.load(*definition_jars(fetch_release(Release.parse(release))))


def logged(*records: tuple[bytes, bytes | None]) -> list[Batch]:
    return list(decode(encode(records, timestamp_ms=APPENDED_MS)))


def value(version: int, **fields: object) -> bytes:
    body = {name: fields.get(name, each) for name, each in (VALUE | fields).items()}
    return struct.pack(">h", version) + definitions().encode("TransactionLogValue", version, body)


@pytest.mark.parametrize("version", [0, 1])
def test_both_versions_are_read(version: int) -> None:
    """Version 0 and the flexible version 1 of a value give the same entry."""
    assert list(read(logged((KEY, value(version))), 1, definitions())) == [EXPECTED]


def test_a_value_of_version_0_byte_by_byte() -> None:
    """The bytes of version 0, written by hand, give the entry: the definitions are the format of the log."""
    by_hand = (
        struct.pack(">hqhib", 0, 7, 3, 60_000, 2)
        + struct.pack(">i", 2)
        + struct.pack(">h6sii i", 6, b"orders", 2, 0, 2)
        + struct.pack(">h5sii", 5, b"bills", 1, 1)
        + struct.pack(">qq", 1_700_000_000_500, 1_700_000_000_000)
    )
    assert list(read(logged((KEY, by_hand)), 1, definitions())) == [EXPECTED]


def test_tagged_fields_are_read() -> None:
    """The next producer id and the client's protocol are tagged fields; unknown tags are passed over."""
    written = value(1, NextProducerId=12, ClientTransactionVersion=2, _tagged={77: b"later"})
    (entry,) = read(logged((KEY, written)), 1, definitions())
    assert (entry.next_producer_id, entry.client_version) == (12, 2)


def test_older_definitions_read_newer_values() -> None:
    """A release that does not know the newest tagged fields reads the rest."""
    (entry,) = read(logged((KEY, value(1, NextProducerEpoch=4))), 1, definitions("3.9.2"))
    assert entry == EXPECTED


def test_a_tombstone_is_an_entry() -> None:
    """A record without a value says that the coordinator forgot the id."""
    (entry,) = read(logged((KEY, None)), 0, definitions())
    assert entry.state is State.DEAD


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (b"", value(0)),
        (b"\x00\x09\x00\x04shop", value(0)),
        (KEY[:-1], value(0)),
        (KEY, b""),
        (KEY, b"\x00\x02" + value(1)[2:]),
        (KEY, value(1)[:-9]),
        (KEY, value(0) + b"\x00"),
        (KEY, value(0, TransactionStatus=8)),
    ],
)
def test_unreadable_records_are_refused(key: bytes, body: bytes) -> None:
    """A record of another version, cut or too long, is an error that names its place, never a guess."""
    with pytest.raises(UnfitTransactionLogError, match="__transaction_state-5@0"):
        list(read(logged((key, body)), 5, definitions()))


# -- bytes of real brokers: an id that is initialised, commits a transaction on one partition, and aborts another --

CAPTURED = {
    "3.9.2": (
        "0000000d33663637363338302d64756d70",
        [
            "0000000000000000000a00000000ea6000ffffffff000001a1ff406096ffffffffffffffff",
            "0000000000000000000a00000000ea600100000001000a33663637363338302d310000000100000000000001a1ff406099000001a1ff406099",
            "0000000000000000000a00000000ea600200000001000a33663637363338302d310000000100000000000001a1ff4060a5000001a1ff406099",
            "0000000000000000000a00000000ea600400000000000001a1ff4060a7000001a1ff406099",
            "0000000000000000000a00000000ea600100000001000a33663637363338302d310000000100000000000001a1ff40611b000001a1ff40611b",
            "0000000000000000000a00000000ea600300000001000a33663637363338302d310000000100000000000001a1ff4062b2000001a1ff40611b",
            "0000000000000000000a00000000ea600500000000000001a1ff4062c7000001a1ff40611b",
        ],
    ),
    "4.4.0": (
        "0000000d63383335303563312d64756d70",
        [
            "0001000000000000007200000000ea600000000001a1ff3e95deffffffffffffffff0100080000000000000072",
            "0001000000000000007200000000ea6001020b63383335303563312d31020000000000000001a1ff3e95ea000001a1ff3e95ea020008000000000000007202020002",
            "0001000000000000007200010000ea6002020b63383335303563312d31020000000000000001a1ff3e95f1000001a1ff3e95ea020008000000000000007202020002",
            "0001000000000000007200010000ea600401000001a1ff3e95f1000001a1ff3e95ea020008000000000000007202020002",
            "0001000000000000007200010000ea6001020b63383335303563312d31020000000000000001a1ff3e9600000001a1ff3e9600020008000000000000007202020002",
            "0001000000000000007200020000ea6003020b63383335303563312d31020000000000000001a1ff3e9614000001a1ff3e9600020008000000000000007202020002",
            "0001000000000000007200020000ea600501000001a1ff3e9614000001a1ff3e9600020008000000000000007202020002",
        ],
    ),
}


@pytest.mark.parametrize(("release", "epochs"), [("3.9.2", [0, 0, 0, 0, 0, 0, 0]), ("4.4.0", [0, 0, 1, 1, 1, 2, 2])])
def test_what_real_brokers_wrote(release: str, epochs: list[int]) -> None:
    """Captured records of value versions 0 (TV1) and 1 (TV2) are read, and their history is legal."""
    key, values = CAPTURED[release]
    records = [(bytes.fromhex(key), bytes.fromhex(each)) for each in values]
    entries = list(read(logged(*records), 0, definitions()))
    assert [str(each.state) for each in entries] == [
        *("Empty", "Ongoing", "PrepareCommit", "CompleteCommit"),
        *("Ongoing", "PrepareAbort", "CompleteAbort"),
    ]
    assert [each.epoch for each in entries] == epochs
    assert [len(each.places) for each in entries] == [0, 1, 1, 0, 1, 1, 0]
    assert [each.client_version for each in entries[1:]] == [2 if release == "4.4.0" else 0] * 6
    assert {each.timeout_ms for each in entries} == {60_000}
    assert judge(entries).illegal == ()
