"""An output names its input in its value, key, a header, a JSON field or by a pattern: every source finds the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.planted import log as planted_log
from tests.support.servers.log_broker import log_broker
from tests.verification.sources.test_reading import options, rows_of
from verification.vocabulary.identity import Identity, RecordKind
from verification.vocabulary.input_reference import Headers, finder
from wire.records import encode

TOPIC = "paid-orders"


def identity(index: int) -> bytes:
    """The value of an input."""
    return Identity(
        run=planted_log.RUN,
        process=1,
        operation=2,
        kind=RecordKind.TRANSACTION,
        index=index,
        count=100,
        topic_index=1,
        intended_partition=0,
        send_order=index,
    ).encode()


#: The identity in each place is another one, so that a reader of the wrong place is seen.
OTHERS: Headers = (("input", identity(1)), ("other", identity(2)), ("input", identity(3)), ("empty", None))
IN_KEY, IN_JSON, IN_TEXT = identity(4), identity(5).decode(), identity(6).decode()
VALUE = json.dumps({"order": {"id": IN_JSON}, "note": f"5 € for {IN_TEXT}!"}, ensure_ascii=False).encode()
FOUND = [
    ("header:input", 3),
    ("header:other", 2),
    ("key", 4),
    ("json:order.id", 5),
    (r"regex:for (.{96})!", 6),
    ("regex:(OP1.*?)\"", 5),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "index"), FOUND)
def test_a_record_has_the_identity_that_its_reference_says(reference: str, index: int) -> None:
    """The last header of a name counts, as for Kafka's own clients."""
    text = finder(reference)(IN_KEY, VALUE, OTHERS)
    assert text is not None
    assert text.startswith(identity(index))


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("key", b"{}"),
        ("header:none", b"{}"),
        ("header:empty", b"{}"),
        *(("json:order.id", value) for value in (None, b"", b"{", b'{"order": "id"}', b"[1]", b'{"order": {"id": 5}}')),
        ("json:order", b"\xff"),
        ("json:order", b"[" * 100_000),
        ("regex:(OP1)", None),
        ("regex:(OP1)", b"OP2"),
        ("regex:(OP1)", b"OP1 \xff"),
        ("regex:a|(OP1)", b"a"),
    ],
)
def test_a_record_without_the_place_has_no_identity(reference: str, value: bytes | None) -> None:
    """Whatever the value is: garbage, too deep, of other types, or in another code."""
    assert finder(reference)(None, value, (("empty", None),)) is None


def test_half_a_character_is_no_identity() -> None:
    """JSON may hold texts that UTF-8 cannot."""
    assert finder("json:id")(None, rb'{"id": "OP1\ud800"}', ()) == b"OP1?"


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("header:", "reference is 'header:' and must be one of value, key, header:NAME, "),
        ("json:order..id", "reference is 'json:order..id' and must be one of "),
        ("Value", "reference is 'Value' and must be one of "),
        ("value:id", "reference is 'value:id' and must be one of "),
        ("regex:(OP1", "reference is 'regex:(OP1', which is no regular expression: missing ), unterminated subpattern"),
        ("regex:OP1", "reference is 'regex:OP1' and must have one group, around the identity; it has 0"),
        ("regex:(O)(P)", "reference is 'regex:(O)(P)' and must have one group, around the identity; it has 2"),
    ],
)
def test_a_wrong_reference_is_one_sentence(reference: str, sentence: str) -> None:
    """It says which are possible, or what is wrong with the pattern."""
    with pytest.raises(ValueError, match="reference is") as refused:
        finder(reference)
    assert str(refused.value).startswith(sentence)


def test_every_source_finds_the_same_input(tmp_path: Path) -> None:
    """By our own Fetch, by librdkafka and from files; the digests stay those of the values."""
    from verification.evidence.columns import IDENTITY
    from verification.sources.client import ClientReader
    from verification.sources.ranges import Range
    from verification.sources.segments import SegmentReader
    from verification.sources.wire_log import LogReader

    records: list[tuple[Any, ...]] = [(IN_KEY, VALUE, OTHERS), (IN_KEY, None), (b"k", identity(7))]
    raw = encode(records) + encode([(b"\0\0\0\1", b"")], base_offset=3, transactional=True, control=True)
    directory = planted_log.data_directory(tmp_path, 1)
    planted_log.write_segments(directory / f"{TOPIC}-0", [raw])
    with log_broker({(TOPIC, 0): raw}) as broker:

        def read(reference: str, start: int = 0) -> list[dict[str, Any]]:
            ranges = [Range(topic=TOPIC, topic_index=0, partition=0, start=start, end=4, reference=reference)]
            asked = options(broker.bootstrap, ranges, isolation="read_uncommitted", directory=str(directory))
            log, given = rows_of(LogReader(asked)), rows_of(ClientReader(asked))
            assert rows_of(SegmentReader(asked)) == log
            assert given == [{name: row[name] for name in given[0]} for row in log if row["control"] is None]
            return log

        plain = read("")
        assert [row["valid"] for row in plain] == [False, False, True, None]
        for reference, index in FOUND:
            rows = read(reference)
            assert (rows[0]["valid"], rows[0]["index"], rows[0]["intended_topic_index"]) == (True, index, 1)
            changing = {*IDENTITY, "valid"}
            assert [{name: row[name] for name in row if name not in changing} for row in rows] == [
                {name: row[name] for name in row if name not in changing} for row in plain
            ]
            assert [row["valid"] for row in rows] == [True, reference == "key", reference == "value", None]
        assert [row["index"] for row in read("key", start=1)] == [4, None, None]


def test_the_connector_refuses_to_look_elsewhere() -> None:
    """Spark's functions know the value alone."""
    from verification.sources.connector import frame
    from verification.sources.ranges import Range
    from verification.vocabulary.errors import CaptureError

    wanted = Range(topic=TOPIC, topic_index=0, partition=0, start=0, end=1, reference="key")
    with pytest.raises(CaptureError, match="finds identities in values only"):
        frame(None, options("", [wanted]))  # type: ignore[arg-type]
