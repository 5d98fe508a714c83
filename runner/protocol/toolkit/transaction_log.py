"""Reads the states of transactional ids from the transaction log, for releases without DescribeTransactions.

DescribeTransactions begins with 3.0. A coordinator of an older release does not reveal the state of an id. But it writes
each state to `__transaction_state` before that takes effect, and the topic can be read as any other. The result has the
fields of DescribeTransactions, so that a script sees no difference. Kafka's own definitions decode it. The jars of
releases before 2.8 do not define these records: there no state is known.

Limit: a state in the log takes effect a moment later, when the coordinator knows that it is replicated. A request within
that moment gets CONCURRENT_TRANSACTIONS (51).
"""

from __future__ import annotations

from fixtures.clusters.observing.coordinators import partition_of
from runner.protocol.toolkit.script_recorder import NotApplicableError
from verification.vocabulary.transaction_log import TOPIC, Entry, State, read
from wire.client import Client
from wire.fetch import fetch_log
from wire.schema import Body
from wire.values import EARLIEST, TopicPartition


class CoordinatorLog:
    """Reads the log, each time from the end of the last read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read_to: dict[TopicPartition, int] = {}
        self._last: dict[str, Entry] = {}

    def described(self, transactional_id: str) -> Body | None:
        """Describe an id as DescribeTransactions does; None if its last record is a tombstone, or there is none.

        Raises NotApplicableError if the release does not define the records of the log.
        """
        if not self._client.definitions.versions("TransactionLogValue"):
            raise NotApplicableError("the state of a transaction can neither be asked for nor read before 2.8")
        partitions = self._client.metadata([TOPIC]).topics[TOPIC].partitions
        self._read_on(TopicPartition(TOPIC, partition_of(transactional_id, len(partitions))))
        last = self._last.get(transactional_id)
        if last is None or last.state is State.DEAD:
            return None
        return {
            "TransactionalId": transactional_id,
            "TransactionState": str(last.state),
            "TransactionTimeoutMs": last.timeout_ms,
            "TransactionStartTimeMs": last.began_ms,
            "ProducerId": last.producer_id,
            "ProducerEpoch": last.epoch,
            "Topics": _topics(last),
        }

    def _read_on(self, at: TopicPartition) -> None:
        end = self._client.list_offsets([at])[at]
        start = self._read_to.get(at)
        if start is None:
            start = self._client.list_offsets([at], timestamp=EARLIEST)[at]
        for entry in read(fetch_log(self._client, *at, start, end), at.partition, self._client.definitions):
            self._last[entry.transactional_id] = entry
        self._read_to[at] = max(start, end)


def _topics(entry: Entry) -> list[Body]:
    indexes: dict[str, list[int]] = {}
    for place in sorted(entry.places):
        topic, _, index = place.rpartition("-")
        indexes.setdefault(topic, []).append(int(index))
    return [{"Topic": topic, "Partitions": sorted(each)} for topic, each in indexes.items()]
