"""Reads a partition's log from one offset to another, with everything in it.

``fetch_log`` gives batches, including control batches and those of aborted transactions. It also keeps the high
watermark, the last stable offset and the aborted transactions of the answers. Under READ_COMMITTED the broker ends at
the last stable offset and lists the aborted transactions, but does not remove their records; the caller must.

The caller fixes the end. A read that makes no progress within its stall limit raises; it does not return less. Causes
are an end above the last stable offset and a partition without a leader. The first batch may begin before ``start``, and
the last may reach beyond ``end``. So the caller must compare the offset of each record with the range.

Fetch v4 to v12 name topics. Where a broker offers only later versions, the topic's id is taken from Metadata. No fetch
session is used; for one partition that costs little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from wire.client import Client
from wire.deadline import Deadline
from wire.errors import BatchError, DeadlineError
from wire.records import Batch, decode
from wire.router import check
from wire.schema import Body
from wire.values import Isolation, TopicPartition

# Large enough that the round trip does not matter, small enough that some executors' worth of answers fit in memory.
FETCH_BYTES_MAX = 8 << 20

# How long a broker may wait for the first byte; short, because a fixed end lies behind us and data is there at once.
WAIT_MS = 250

# The last version that names topics; the later ones want their ids.
NAMED_MAX = 12


@dataclass(slots=True, kw_only=True)
class Log:
    """A partition's log between two offsets: iterate over it once for the batches.

    ``position`` is the next offset to be read, ``aborted`` (producer id, first offset) pairs. Offsets are -1 until the
    first answer.
    """

    client: Client
    at: TopicPartition
    start: int
    end: int
    isolation: Isolation
    stall_s: float
    bytes_max: int
    check_crc: bool
    position: int = -1
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: set[tuple[int, int]] = field(default_factory=set)
    _leader: int | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[Batch]:
        """Raises DeadlineError when the log gets no further, BrokerError for codes that are not retriable."""
        for batches in self.answers():
            yield from batches

    def answers(self) -> Iterator[list[Batch]]:
        """The same by whole Fetch answers, for ``wire.columns``."""
        self.position = self.start
        while self.position < self.end:
            batches = [batch for batch in self._next() if batch.base_offset < self.end]
            # Where compaction emptied the rest of the range, the next batch lies behind its end.
            self.position = batches[-1].next_offset if batches else self.end
            yield batches

    def _next(self) -> list[Batch]:
        """The batches of the first answer that has any at the position."""
        deadline = Deadline.after(self.stall_s)
        while not (records := self._fetch_records(deadline)):
            pass  # the broker waits WAIT_MS before it says that there is nothing, and the deadline ends the loop
        batches = [each for each in decode(records, check_crc=self.check_crc) if each.next_offset > self.position]
        if not batches:
            raise BatchError(f"{self.at} at {self.position}: no whole batch in {len(records)} bytes")
        return batches

    def _fetch_records(self, deadline: Deadline) -> bytes:
        what = f"{self.at} to hold offset {self.position} (reading up to {self.end})"
        try:
            deadline.remaining_s(what)
            return self.client.until(what, self._fetch_once, deadline)
        except DeadlineError as error:
            ends = f"high watermark {self.high_watermark}, last stable offset {self.last_stable_offset}"
            raise DeadlineError(f"waited {self.stall_s:g} s for {what}; {ends}; {error}") from error

    def _fetch_once(self, deadline: Deadline) -> bytes:
        leader = self._leader
        if leader is None:
            leader = self.client.leader_of(*self.at, deadline)
        self._leader = None  # until it has answered well
        connection = self.client.connection(leader, deadline)
        lowest = connection.versions[self.client.definitions.api_key("Fetch")][0]
        version = connection.version_for("Fetch", at_most=NAMED_MAX if lowest <= NAMED_MAX else 0x7FFF)
        body = self._body(None if version <= NAMED_MAX else self._topic_id(deadline))
        records = self._take(self.client.call("Fetch", body, version, broker=leader, deadline=deadline))
        self._leader = leader
        return records

    def _topic_id(self, deadline: Deadline) -> UUID:
        topic = self.client.metadata([self.at.topic], deadline).topics[self.at.topic]
        check(topic.error, f"Metadata of {self.at.topic}")
        return topic.id

    def _take(self, answer: Body) -> bytes:
        check(answer.get("ErrorCode", 0), f"Fetch of {self.at}")
        found = answer["Responses"][0]["Partitions"][0]
        check(found["ErrorCode"], f"Fetch of {self.at} at offset {self.position}")
        self.high_watermark, self.last_stable_offset = found["HighWatermark"], found["LastStableOffset"]
        self.log_start_offset = found.get("LogStartOffset", -1)
        self.aborted |= {(each["ProducerId"], each["FirstOffset"]) for each in found["AbortedTransactions"] or ()}
        records: bytes = found["Records"] or b""
        return records

    def _body(self, topic_id: UUID | None) -> Body:
        partition = {
            "Partition": self.at.partition,
            "FetchOffset": self.position,
            "PartitionMaxBytes": self.bytes_max,
        }
        topic = {"Topic": self.at.topic} if topic_id is None else {"TopicId": topic_id}
        return {
            "ReplicaId": -1,
            "MaxWaitMs": WAIT_MS,
            "MinBytes": 1,
            "MaxBytes": self.bytes_max,
            "IsolationLevel": int(self.isolation),
            "Topics": [{**topic, "Partitions": [partition]}],
        }


def fetch_log(
    client: Client,
    topic: str,
    partition: int,
    start: int,
    end: int,
    *,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    stall_s: float = 15.0,
    bytes_max: int = FETCH_BYTES_MAX,
    check_crc: bool = True,
) -> Log:
    """The log of a partition in [start, end); nothing is read before it is iterated over.

    ``stall_s`` bounds how long the read may stand still, ``bytes_max`` one answer (a larger batch still comes whole).
    """
    return Log(
        client=client,
        at=TopicPartition(topic, partition),
        start=start,
        end=end,
        isolation=isolation,
        stall_s=stall_s,
        bytes_max=bytes_max,
        check_crc=check_crc,
    )
