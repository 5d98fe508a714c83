"""Values in the arguments and results of the client: partitions, addresses, metadata, producers, offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

EARLIEST = -2
"""ListOffsets' timestamp for the first offset still in the log."""

LATEST = -1
"""ListOffsets' timestamp for the end: the high watermark or, reading committed, the last stable offset."""


class Isolation(IntEnum):
    """The isolation level of Fetch and ListOffsets."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class CoordinatorType(IntEnum):
    """The kind of coordinator that FindCoordinator looks for."""

    GROUP = 0
    TRANSACTION = 1


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """From ``host:port``; an IPv6 host may stand in brackets."""
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"{text!r} is not an address; host:port is expected")
        return cls(host.strip("[]"), int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition as Metadata describes it; ``leader`` is -1 where there is none, ``error`` the broker's code."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as Metadata describes it; ``id`` is the zero uuid before 2.8."""

    id: UUID
    error: int
    partitions: Mapping[int, Partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The cluster as one broker sees it, through the listener that was asked."""

    cluster_id: str | None
    controller: int
    brokers: Mapping[int, Address]
    topics: Mapping[str, Topic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """A producer id and the epoch to use with it."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A group's committed offset for a partition; ``offset`` is -1 where there is none."""

    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Feature levels by name, as a broker states them (KIP-584): those that are final, and the highest that it supports."""

    finalized: Mapping[str, int]
    supported: Mapping[str, int]
