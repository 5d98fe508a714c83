"""Record batches: this reader, this writer and independent ones agree, and damage is always noticed."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wire import compression as codecs
from wire.columns import TOGETHER_MIN, columns
from wire.compression import Compression, compress, decompress
from wire.errors import BatchError, ChecksumError, CodecError
from wire.records import CHECKED_FROM, HEADER, Batch, Marker, decode, encode

quick = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
# The way in which kafka-python reads its own definitions when it is imported.
second_opinion = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")
# It has no snappy without python-snappy; librdkafka is the second opinion on that.
shared_codec = pytest.mark.parametrize("codec", [each for each in Compression if each is not Compression.SNAPPY])
every_codec = pytest.mark.parametrize("codec", list(Compression))

blobs = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3).map(tuple)
contents = st.lists(st.tuples(blobs, blobs, headers), min_size=1, max_size=40)

ORDERS = [(b"k%d" % index, b"order %d " % index * 20) for index in range(300)]


def one(buffer: bytes) -> Batch:
    (batch,) = decode(buffer)
    return batch


def read_by_both(batch: Batch) -> None:
    """The fast reader reads and refuses the same batches as the plain one, except for lengths inside headers."""
    try:
        plain = [(record.offset, record.timestamp_ms, record.key, record.value) for record in batch.records()]
    except BatchError:
        plain = None
    try:
        fast = columns([batch])
    except BatchError:
        assert plain is None
        return
    if plain is None:
        assert fast.header_count.any()
        return
    offsets, times = fast.offset.tolist(), fast.timestamp_ms.tolist()
    assert plain == [(offsets[row], times[row], fast.key(row), fast.value(row)) for row in range(len(fast))]


@quick
@given(content=contents, codec=st.sampled_from(Compression), base=st.integers(0, 2**40))
def test_any_records_round_trip(content: list[Any], codec: Compression, base: int) -> None:
    """Keys, values, nulls, headers and offsets come back as written, with every codec."""
    batch = one(encode(content, base_offset=base, timestamp_ms=1_700_000_000_000, compression=codec))
    read = batch.records()
    assert [(record.key, record.value, record.headers) for record in read] == content
    assert [record.offset for record in read] == list(range(base, base + len(content)))
    assert {record.timestamp_ms for record in read} == {1_700_000_000_000}
    assert (batch.next_offset, batch.count, batch.compression) == (base + len(content), len(content), codec)


@quick
@given(batches=st.lists(st.tuples(contents, st.sampled_from(Compression)), max_size=5))
def test_columns_say_what_records_say(batches: list[Any]) -> None:
    """The fast reader agrees with the plain one, record by record, over batches of several codecs."""
    written, offset = b"", 0
    for content, codec in batches:
        written += encode(content, base_offset=offset, compression=codec)
        offset += len(content)
    read = list(decode(written))
    plain = [(number, record) for number, batch in enumerate(read) for record in batch.records()]
    fast = columns(read)
    assert len(fast) == len(plain)
    for row, (number, record) in enumerate(plain):
        assert (fast.batch[row], fast.offset[row]) == (number, record.offset)
        assert fast.timestamp_ms[row] == record.timestamp_ms
        assert (fast.key(row), fast.value(row)) == (record.key, record.value)
        assert fast.header_count[row] == len(record.headers)


#: How many records in a row have a value of some length, over a batch; lengths of records take one byte, two and three.
runs = st.lists(
    st.tuples(st.integers(1, 3 * TOGETHER_MIN), st.sampled_from((0, 3, 40, 55, 60, 300, 9_000))), min_size=1, max_size=6
)


@quick
@given(several=runs, at=st.floats(0, 1), change=st.integers(1, 255))
def test_records_of_one_length_are_found_together(several: list[tuple[int, int]], at: float, change: int) -> None:
    """However long rows of equal neighbours are; and a changed byte among them is read by both readers or by neither."""
    content = [(b"k", b"v" * length) for count, length in several for _ in range(count)]
    written = encode(content)
    (batch,) = decode(written)
    fast = columns([batch])
    assert [fast.value(row) for row in range(len(fast))] == [value for _, value in content]
    assert fast.offset.tolist() == list(range(len(content)))
    damaged = bytearray(written)
    damaged[HEADER.size + int(at * (len(written) - HEADER.size - 1))] ^= change
    (batch,) = decode(bytes(damaged), check_crc=False)
    read_by_both(batch)


@pytest.mark.parametrize(
    "lengths", [(80, 90, 300), (300, 90, 80), (90, 80, 300), (81, 89, 300), (80, 91, 299)], ids=lambda each: f"{each}"
)
def test_batches_of_one_size_may_have_another_shape(lengths: tuple[int, int, int]) -> None:
    """As many records in as many bytes, of lengths in another order: no batch is read as the one before it was."""

    def values(of: tuple[int, int, int]) -> list[bytes]:
        return [b"v" * of[index % 3] for index in range(3 * TOGETHER_MIN)]

    shapes = [(80, 90, 300), lengths, lengths, (80, 90, 300)]
    batches = [one(encode([(None, value) for value in values(shape)])) for shape in shapes]
    assert len({batch.size for batch in batches}) == 1
    fast = columns(batches)
    assert [fast.value(row) for row in range(len(fast))] == [value for shape in shapes for value in values(shape)]


def test_every_header_field_is_read() -> None:
    """Producer id, epoch, sequence, leader epoch, flags and times come back as written."""
    batch = one(
        encode(
            ORDERS[:3],
            base_offset=70,
            leader_epoch=4,
            timestamp_ms=5,
            producer_id=2**40,
            producer_epoch=32_766,
            base_sequence=2**31 - 1,
            transactional=True,
            claims={"max_timestamp_ms": 9},
        )
    )
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.count) == (70, 72, 4, 3)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2**40, 32_766, 2**31 - 1)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (5, 9)
    assert batch.transactional
    assert not batch.control
    assert not batch.append_time


def test_append_time_counts_for_all_records() -> None:
    """With the time of the append, a batch's maximum timestamp is each record's time, also when it is 0."""
    for time_ms in (77, 0):
        written = encode(ORDERS[:2], timestamp_ms=5, claims={"attributes": 0x08, "max_timestamp_ms": time_ms})
        batch = one(written)
        assert [record.timestamp_ms for record in batch.records()] == [time_ms, time_ms]
        assert columns([batch]).timestamp_ms.tolist() == [time_ms, time_ms]


@pytest.mark.parametrize("marker", list(Marker))
def test_markers_are_read(marker: Marker) -> None:
    """A control batch says whether it commits or aborts; a data batch with the same key says nothing."""
    content = [(struct.pack(">hh", 0, marker), struct.pack(">hi", 0, 7))]
    assert one(encode(content, transactional=True, control=True)).marker() is marker
    assert one(encode(content, transactional=True)).marker() is None


def test_other_control_records_are_no_markers() -> None:
    """A leader change or snapshot record is a control record and decides no transaction; one without key is damage."""
    assert one(encode([(struct.pack(">hh", 0, 2), b"")], control=True)).marker() is None
    with pytest.raises(BatchError, match="without a key"):
        one(encode([(None, b"")], control=True)).marker()


@every_codec
def test_a_run_of_batches_ends_at_the_cut(codec: Compression) -> None:
    """Cut anywhere, a buffer yields exactly the batches that are whole: a Fetch answer may end like that."""
    first, second = (encode(ORDERS[:50], base_offset=base, compression=codec) for base in (0, 50))
    for cut in (0, 1, 11, 12, 16, 60, 61, len(second) - 1):
        assert [batch.base_offset for batch in decode(first + second[:cut])] == [0]
    assert [batch.base_offset for batch in decode(first + second)] == [0, 50]


@every_codec
def test_a_changed_byte_is_noticed(codec: Compression) -> None:
    """Any single changed byte that the CRC covers flags the batch, and its records cannot be read."""
    written = encode(ORDERS[:5], compression=codec)
    for position in range(CHECKED_FROM, len(written), 7):
        damaged = bytearray(written)
        damaged[position] ^= 0x40
        try:
            batch = one(bytes(damaged))
        except BatchError:
            continue  # the count became negative, which is noticed even earlier
        assert not batch.crc_ok
        with pytest.raises(ChecksumError):
            batch.records()
        with pytest.raises(ChecksumError):
            columns([batch])


def test_the_crc_can_be_left_to_others() -> None:
    """Unchecked, a wrong CRC passes: that is how a corrupt batch is looked at."""
    (batch,) = decode(encode(ORDERS[:2], claims={"crc": 1}), check_crc=False)
    assert len(batch.records()) == 2


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_an_impossible_length_is_refused(length: int) -> None:
    """A batch shorter than its own header is damage, not the end of the log."""
    with pytest.raises(BatchError):
        list(decode(encode(ORDERS[:2], claims={"length": length})))


def test_a_huge_length_is_a_cut() -> None:
    """A length beyond the buffer ends the run, without allocating anything."""
    assert list(decode(encode(ORDERS[:2], claims={"length": 2**31 - 1}))) == []


def test_old_formats_are_named() -> None:
    """The formats before v2 are refused by name."""
    with pytest.raises(BatchError, match="format v1"):
        list(decode(encode(ORDERS[:2], claims={"magic": 1})))


@pytest.mark.parametrize("count", [1, 3, 2**31 - 1])
def test_a_wrong_count_is_refused(count: int) -> None:
    """A count that its records do not bear out is damage, to the plain reader and to the fast one."""
    batch = one(encode(ORDERS[:2], claims={"count": count}))
    with pytest.raises(BatchError):
        batch.records()
    with pytest.raises(BatchError):
        columns([batch])


@quick
@given(payload=st.binary(max_size=60), count=st.integers(0, 5))
def test_garbage_inside_a_batch_is_refused(payload: bytes, count: int) -> None:
    """Arbitrary bytes as records are refused or read, alike by both readers, and nothing else happens."""
    claims = {"count": count, "length": HEADER.size - 12 + len(payload)}
    header = encode([], claims=claims)[: HEADER.size]
    (batch,) = decode(header + payload, check_crc=False)
    read_by_both(batch)


def test_a_number_of_more_than_ten_bytes_is_refused() -> None:
    """A timestamp written in eleven bytes is damage, even where its value is small."""
    body = b"\x00" + b"\x80" * 10 + b"\x00" + b"\x00\x01\x01\x00"  # attributes, timestamp, offset, null, null, 0
    payload = bytes([len(body) << 1]) + body
    header = encode([], claims={"count": 1, "length": HEADER.size - 12 + len(payload)})[: HEADER.size]
    (batch,) = decode(header + payload, check_crc=False)
    with pytest.raises(BatchError, match="longer than ten bytes"):
        batch.records()
    with pytest.raises(BatchError, match="longer than ten bytes"):
        columns([batch])


def test_an_unknown_codec_is_refused() -> None:
    """Codec numbers 5 to 7 do not exist."""
    batch = one(encode(ORDERS[:2], claims={"attributes": 5}))
    with pytest.raises(BatchError, match="no codec 5"):
        batch.records()


@pytest.mark.parametrize("codec", [each for each in Compression if each is not Compression.NONE])
def test_what_does_not_decompress_is_a_codec_error(codec: Compression) -> None:
    """A payload that is no stream of its codec, with a right CRC, is a CodecError that names the codec."""
    batch = one(encode(ORDERS[:3], claims={"attributes": int(codec)}))
    with pytest.raises(CodecError, match=codec.name.lower()):
        batch.records()


@pytest.mark.parametrize("codec", [each for each in Compression if each is not Compression.NONE])
def test_decompression_is_bounded(codec: Compression, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes that decompress to more than the bound are refused."""
    packed = compress(codec, bytes(1 << 20))
    monkeypatch.setattr(codecs, "DECOMPRESSED_BYTES_MAX", (1 << 20) - 1)
    with pytest.raises(CodecError):
        decompress(codec, packed, "bomb")
    monkeypatch.setattr(codecs, "DECOMPRESSED_BYTES_MAX", 1 << 20)
    assert decompress(codec, packed, "no bomb") == bytes(1 << 20)


def test_snappy_is_read_in_both_forms() -> None:
    """Raw blocks (C clients) and xerial framing (Java clients) are both recognised."""
    data = b"order " * 20_000
    for xerial in (True, False):
        packed = compress(Compression.SNAPPY, data, xerial=xerial)
        assert packed.startswith(codecs.XERIAL_MAGIC) == xerial
        assert decompress(Compression.SNAPPY, packed, "snappy") == data


def test_a_snappy_block_cannot_lie_about_its_length() -> None:
    """A block length beyond the payload, or a decompressed length beyond the bound, is refused by itself."""
    packed = codecs.XERIAL_MAGIC + struct.pack(">iii", 1, 1, 2**31 - 1) + b"abc"
    with pytest.raises(CodecError, match="a block of 2147483647 bytes declared"):
        decompress(Compression.SNAPPY, packed, "snappy")
    with pytest.raises(CodecError, match="a block of 4294967295 bytes decompressed"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0fabc", "snappy")


def test_gzip_is_gzip() -> None:
    """Any gzip reads this gzip, and a stream that is cut off is refused."""
    packed = compress(Compression.GZIP, b"orders" * 100)
    assert zlib.decompress(packed, wbits=31) == b"orders" * 100
    with pytest.raises(CodecError, match="cut off"):
        decompress(Compression.GZIP, packed[:-9], "gzip")


@second_opinion
@shared_codec
def test_kafka_python_reads_what_we_write(codec: Compression) -> None:
    """An independent reader finds the same records, producer and CRC in our batches."""
    from kafka.record.memory_records import MemoryRecords

    written = encode(
        [(key, value, (("h", b"1"),)) for key, value in ORDERS],
        timestamp_ms=123,
        producer_id=8,
        producer_epoch=2,
        base_sequence=40,
        transactional=True,
        compression=codec,
    )
    theirs = MemoryRecords(written).next_batch()
    assert theirs.validate_crc()
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (8, 2, 40)
    assert theirs.is_transactional
    read = list(theirs)
    assert [(record.key, record.value, record.timestamp) for record in read] == [(*each, 123) for each in ORDERS]
    assert read[0].headers == [("h", b"1")]


@second_opinion
@shared_codec
def test_we_read_what_kafka_python_writes(codec: Compression) -> None:
    """Batches of an independent writer are read, by both readers."""
    from kafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(2, int(codec), True, 8, 2, 40, 1 << 20)
    for index, (key, value) in enumerate(ORDERS):
        builder.append(index, 1000 + index, key, value, [("h", b"1")])
    batch = one(bytes(builder.build()))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.transactional) == (8, 2, 40, True)
    assert [(record.key, record.value) for record in batch.records()] == ORDERS
    fast = columns([batch])
    assert fast.timestamp_ms.tolist() == [1000 + index for index in range(len(ORDERS))]
    assert [(fast.key(row), fast.value(row)) for row in range(len(fast))] == ORDERS
