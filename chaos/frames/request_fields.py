"""Reads transactional ids, producer ids, groups and partitions from requests of every API and version, by field names.

Kafka's definitions use few names for each: `TransactionalId` (in AddPartitionsToTxn also `V3AndBelowTransactionalId`),
`ProducerId`, `GroupId`. A topic is a `Name`, `Topic`, `TopicName` or `TopicId` next to a list of partition numbers, or
of structures with an `Index`, `PartitionIndex` or `Partition`. Three requests need more than names. The key type of
FindCoordinator is group (0) or transactional id (1). DescribeGroups and similar requests list bare group names. The
producer ids of a Produce request are in its record batches. Topic ids (Produce v13+, Fetch v13+) need `topic_ids`.

Unknown versions, unknown API keys and undecodable bytes must pass: none of them may break the relay.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from chaos.frames.selector import FrameFields
from wire.codes import codes_in
from wire.errors import WireError
from wire.messages import Definitions
from wire.records import HEADER
from wire.request import decode_request, decode_response
from wire.schema import Body
from wire.values import TopicPartition

HEAD = struct.Struct(">hhi")
"""API key, version and correlation id: the beginning of every request behind its length."""

_TOPIC, _INDEX = ("Name", "Topic", "TopicName"), ("Index", "PartitionIndex", "Partition")
_IDS = {
    "TransactionalId": "transactional_ids",
    "V3AndBelowTransactionalId": "transactional_ids",
    "TransactionalIds": "transactional_ids",
    "ProducerId": "producer_ids",
    "V3AndBelowProducerId": "producer_ids",
    "ProducerEpoch": "producer_epochs",
    "V3AndBelowProducerEpoch": "producer_epochs",
    "GroupId": "groups",
    "Groups": "groups",
    "GroupsNames": "groups",
}
_COORDINATED = {0: "groups", 1: "transactional_ids"}
_MAGIC, _PRODUCER_ID, _PRODUCER_EPOCH = 3, 9, 10  # positions in the header of a record batch


@dataclass(slots=True, kw_only=True)
class RequestFrame:
    """One request; the body is read when it is first needed."""

    reader: FrameReader
    frame: bytes = field(repr=False)
    key: int
    version: int
    correlation_id: int
    _read: tuple[Body, Body] | None = None
    _fields: FrameFields | None = None

    @property
    def api(self) -> str:
        """The API's name, or its number where it has no definition."""
        return self.reader.apis.get(self.key, f"API {self.key}")

    def body(self) -> Body:
        """The request's body; raises WireError where it cannot be read."""
        return self._both()[1]

    def _both(self) -> tuple[Body, Body]:
        """Header and body."""
        if self._read is None:
            self._read = decode_request(self.reader.definitions, self.api, self.version, self.frame[4:])
        return self._read

    def fields(self) -> FrameFields:
        """The fields that selectors use; raises WireError where they cannot be read."""
        if self._fields is None:
            found: dict[str, set[Any]] = {name: set() for name in FrameFields.__dataclass_fields__}
            header, body = self._both()
            found["client_ids"] |= {header["ClientId"]} - {None} if "ClientId" in header else set()
            self.reader.gather(body, found)
            self._fields = FrameFields(**{name: frozenset(values) for name, values in found.items()})
        return self._fields

    def answered(self) -> bool:
        """Whether the broker answers it: it does not answer a Produce request with Acks 0."""
        try:
            return self.api != "Produce" or self.body()["Acks"] != 0
        except WireError:
            return True


class FrameReader:
    """Reads requests by the definitions; `topic_ids` says which topic an id stands for."""

    def __init__(self, definitions: Definitions, topic_ids: Mapping[UUID, str] | None = None) -> None:
        self.definitions, self.topic_ids = definitions, dict(topic_ids or {})
        self.apis = {definitions.api_key(api): api for api in definitions.apis()}

    def request(self, frame: bytes) -> RequestFrame:
        """A request frame that is long enough to have a head."""
        key, version, correlation_id = HEAD.unpack_from(frame, 4)
        return RequestFrame(reader=self, frame=frame, key=key, version=version, correlation_id=correlation_id)

    def error_codes(self, api: str, version: int, response: bytes) -> tuple[int, ...]:
        """Every error code that a response (without its length) carries, in order; raises WireError."""
        return tuple(code for _, code in codes_in(decode_response(self.definitions, api, version, response)[1]))

    def base_offsets(self, version: int, response: bytes) -> dict[TopicPartition, int]:
        """The base offset of each batch in a Produce response (without its length); raises WireError."""
        body = decode_response(self.definitions, "Produce", version, response)[1]
        return {
            TopicPartition(topic=_topic_of(topic, self.topic_ids) or "", partition=each["Index"]): each["BaseOffset"]
            for topic in body["Responses"]
            for each in topic["PartitionResponses"]
        }

    def gather(self, body: Mapping[str, Any], found: dict[str, set[Any]]) -> None:
        """Add the values of a structure and of those inside it to `found`."""
        for name, value in body.items():
            if name in _IDS:
                found[_IDS[name]] |= {each for each in _listed(value) if isinstance(each, str | int)}
            elif name in ("Key", "CoordinatorKeys") and body.get("KeyType", 0) in _COORDINATED:
                found[_COORDINATED[body.get("KeyType", 0)]] |= set(_listed(value))
            for each in _listed(value):
                if isinstance(each, Mapping):
                    self.gather(each, found)
        topic = _topic_of(body, self.topic_ids)
        for partition in _partitions(body):
            if isinstance(topic, str):
                found["partitions"].add(TopicPartition(topic=topic, partition=partition))
        if isinstance(body.get("Records"), bytes):
            for producer_id, epoch in _producers(body["Records"]):
                found["producer_ids"].add(producer_id)
                found["producer_epochs"].add(epoch)


def _topic_of(body: Mapping[str, Any], topic_ids: Mapping[UUID, str]) -> Any:
    """The topic that a structure names, by its name or by its id; None for one that names none."""
    topic = next((body[name] for name in _TOPIC if name in body), None)
    if not topic and isinstance(body.get("TopicId"), UUID):
        topic = topic_ids.get(body["TopicId"])
    return topic


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _partitions(body: Mapping[str, Any]) -> Iterator[int]:
    """The partition numbers next to a topic's name."""
    for value in body.values():
        for each in value if isinstance(value, list) else ():
            if isinstance(each, Mapping):
                yield from (each[name] for name in _INDEX if isinstance(each.get(name), int))
            elif isinstance(each, int):
                yield each


def _producers(records: bytes) -> Iterator[tuple[int, int]]:
    """The producer ids and epochs of record batches of format 2; older formats have none."""
    position = 0
    while position + HEADER.size <= len(records):
        header = HEADER.unpack_from(records, position)
        if header[_MAGIC] != 2 or header[1] < 0:
            return
        yield header[_PRODUCER_ID], header[_PRODUCER_EPOCH]
        position += 12 + header[1]
