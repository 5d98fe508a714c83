"""Describe the exchanges of a script: the important fields of each request and response, and error codes by name.

Fields that no claim concerns are left out (throttling, timeouts, empty values). The header of a record batch is decoded
from its first bytes, because idempotence depends on producer id, epoch and sequence. Strange values raise no error: a
malformed request is shown as it was sent.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from reports.model.protocol_case import ExchangeRow, StatementRow
from verification.scripts.script import Exchange, Statement, shown
from wire.codes import CODE_FIELDS, ErrorCode, code_name, codes_in

#: A longer request or response is unreadable in a table; the script has all of it.
TEXT_MAX = 420
#: Characters of observed and expected values; a claim about a whole log can be long.
VALUE_MAX = 600
_NOISE = frozenset(
    {
        "ThrottleTimeMs",
        "TimeoutMs",
        "Acks",
        "LogAppendTimeMs",
        "LogStartOffset",
        "CurrentLeader",
        "NodeEndpoints",
        "CurrentLeaderEpoch",
        "LeaderEpoch",
        "ReplicaId",
        "MaxWaitMs",
        "MinBytes",
        "MaxBytes",
        "PartitionMaxBytes",
        "SessionId",
        "SessionEpoch",
        "RackId",
    }
)
#: Fields that name a place: their values are shown without field names.
_PLACES = ("Name", "TopicName", "Topic", "TopicId", "Index", "PartitionIndex", "Partition")
#: Below the top level of a message they name the owner of an entry.
_OWNERS = ("TransactionalId", "GroupId")
#: Lists of partition numbers, which are places too.
_NUMBERS = frozenset({"Partitions", "PartitionIndexes"})
#: A v2 batch up to and with its record count: base offset, length, leader epoch, magic, checksum, attributes, last
#: offset delta, two timestamps, producer id, epoch, base sequence, count.
_BATCH = struct.Struct(">qiibIhiqqqhii")
_TRANSACTIONAL, _CONTROL = 0x10, 0x20


def exchange_row(exchange: Exchange, began_ns: int) -> ExchangeRow:
    """One exchange; `began_ns` is the time of the first request."""
    codes = tuple(codes_in(exchange.response, "", _inside))
    answered = exchange.answered_ns
    return ExchangeRow(
        number=exchange.number,
        api=exchange.api,
        version=exchange.version,
        to=exchange.to,
        request=_cut(_described(exchange.request), TEXT_MAX),
        codes=_cut(_all(codes), TEXT_MAX),
        answer=_cut(_described(exchange.response, answer=True), TEXT_MAX),
        error=exchange.error,
        at_ms=(exchange.sent_ns - began_ns) / 1e6,
        took_ms=None if answered is None or exchange.response is None else (answered - exchange.sent_ns) / 1e6,
        refused=any(code != ErrorCode.NONE for _, code in codes),
    )


def statement_row(statement: Statement) -> StatementRow:
    """One statement."""
    return StatementRow(
        after=statement.after,
        what=statement.what,
        relation=str(statement.relation),
        expected=_cut(shown(statement.expected), VALUE_MAX),
        observed=_cut(shown(statement.observed), VALUE_MAX),
        required=statement.required,
        holds=statement.holds,
    )


def _cut(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else f"{text[: length_max - 1].rstrip()}…"


def _all(codes: tuple[tuple[str, Any], ...]) -> str:
    """Every code with its place; a code that all places share appears once."""
    different = dict.fromkeys(code for _, code in codes)
    if len(different) <= 1:
        return "".join(map(code_name, different))
    return ", ".join(f"{place or 'top level'}: {code_name(code)}" for place, code in codes)


def _inside(value: Mapping[str, Any], place: str) -> str:
    """The place of an entry inside another place."""
    return "-".join(each for each in (place, _place(value)) if each)


def _place(value: Mapping[str, Any], *, top: bool = False) -> str:
    """The place of an entry's fields: topic, partition, and below the top level a transactional id or group."""
    names = _PLACES if top else (*_OWNERS, *_PLACES)
    named = (value[each] for each in names if each in value)
    return "-".join(str(each) for each in named if isinstance(each, str | int) and each != "")


def _described(value: Any, *, answer: bool = False) -> str:
    """A message in words: top-level fields, then those of each place. A response names only places with fields."""
    groups: dict[str, list[str]] = {}
    if isinstance(value, Mapping):
        _gather(value, "", groups, top=True)
    elif value is not None:
        groups[""] = [_cut(json.dumps(value, ensure_ascii=False), TEXT_MAX)]
    outer = {place for place in groups if any(each.startswith(f"{place}-") for each in groups)}
    parts = (
        _joined(place, facts)
        for place, facts in groups.items()
        if facts or (place and place not in outer and not answer)
    )
    return "; ".join(each for each in parts if each)


def _joined(place: str, facts: list[str]) -> str:
    return f"{place}: {', '.join(facts)}" if place and facts else place or ", ".join(facts)


def _gather(value: Mapping[str, Any], place: str, groups: dict[str, list[str]], *, top: bool = False) -> None:
    here = "-".join(each for each in (place, _place(value, top=top)) if each)
    facts = groups.setdefault(here, [])
    for name, each in value.items():
        if name in _NOISE or name in CODE_FIELDS or name in _PLACES or each is None or each in ("", [], {}):
            continue
        if name in _OWNERS and not top:
            continue
        if isinstance(each, Mapping) and each.keys() == {"bytes", "hex"}:
            facts.append(_bytes(each) if name == "Records" else f"{name} {each['bytes']} bytes")
        elif isinstance(each, Mapping):
            _gather(each, here, groups)
        elif isinstance(each, list):
            _several(name, each, here, groups)
        else:
            facts.append(f"{name.removeprefix('V3AndBelow')} {shown(each)}")


def _several(name: str, values: list[Any], place: str, groups: dict[str, list[str]]) -> None:
    entries = [each for each in values if isinstance(each, Mapping)]
    for each in entries:
        _gather(each, place, groups)
    if not entries and name in _NUMBERS:
        for each in values:
            groups.setdefault("-".join(part for part in (place, str(each)) if part), [])
    elif not entries:
        groups[place].append(f"{name} {', '.join(map(str, values))}")


def _bytes(value: Mapping[str, Any]) -> str:
    """A record batch described by its header; other bytes by their length."""
    size, text = value["bytes"], str(value["hex"])
    try:
        head = _BATCH.unpack_from(bytes.fromhex(text))
    except (ValueError, struct.error):
        return f"{size} bytes"
    _, _, _, magic, _, attributes, _, _, _, producer_id, epoch, sequence, count = head
    if magic != 2:
        return f"{size} bytes"
    kind = "a control batch" if attributes & _CONTROL else f"{count} record{'' if count == 1 else 's'}"
    if producer_id == -1:
        return f"{kind} without a producer id"
    inside = " in a transaction" if attributes & _TRANSACTIONAL else ""
    return f"{kind} of producer {producer_id}, epoch {epoch}, sequence {sequence}{inside}"
