"""The states of transactional ids as the coordinators' own log says them, for releases that cannot be asked.

DescribeTransactions begins with 3.0. A coordinator of before answers nobody what state an id is in, but it writes each
one to `__transaction_state` before it takes effect, and that topic can be read as any other. What is read is given in
the words of DescribeTransactions, so that a script does not see the difference. Kafka's own definitions decode it, and
the jars of releases before 2.8 have none of these records: of those no state is known.

Doubtful: what stands in the log is in force a moment later, when the coordinator has learnt that it is replicated. A
request that is sent within that moment is told CONCURRENT_TRANSACTIONS (51).
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
    """Reads on from where it ended the last time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read_to: dict[TopicPartition, int] = {}
        self._last: dict[str, Entry] = {}

    def described(self, transactional_id: str) -> Body | None:
        """What DescribeTransactions would say of an id; None when the last record is a tombstone, or there is none.

        Raises NotApplicableError where the release does not define the log's records.
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
