"""Inspects a cluster for a script: ends of logs, records that readers get, states of transactions, committed offsets.

An inspection is not a request of the script. It is repeated while the broker says "not now". Its result enters the script
only by the statement about it.
"""

from __future__ import annotations

import time
from functools import partial
from operator import itemgetter, ne

from fixtures.waiting import LOOK_EVERY_S
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.transaction_log import CoordinatorLog
from verification.scripts.script import TopicUsed
from wire.client import Client
from wire.errors import BrokerError, VersionError
from wire.fetch import fetch_log
from wire.records import Batch, Marker
from wire.schema import Body
from wire.values import EARLIEST, CommittedOffset, Isolation, TopicPartition

#: A transaction completes within a round trip to each leader; this is for machines under heavy load.
COMPLETE_WITHIN_S = 15.0
_TOPIC = 2
_MIN_IN_SYNC = "min.insync.replicas"
_UNCLEAN = "unclean.leader.election.enable"
COMPLETE = frozenset({"CompleteCommit", "CompleteAbort", "Empty"})


class Inspector:
    """Inspects one cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._coordinator_log = CoordinatorLog(client)

    # -- topics ------------------------------------------------------------------------------------------------

    def topic(self, name: str) -> TopicUsed:
        """The replicas of a topic, leaders first, and the settings that say how much a case on it proves.

        Raises WireError for a topic or a request that the brokers do not know.
        """
        partitions = self._client.metadata([name]).topics[name].partitions
        resource = {"ResourceType": _TOPIC, "ResourceName": name, "ConfigurationKeys": [_MIN_IN_SYNC, _UNCLEAN]}
        answer = self._client.call("DescribeConfigs", {"Resources": [resource]})
        settings = {each["Name"]: str(each["Value"]) for each in answer["Results"][0]["Configs"] or ()}
        least, unclean = settings.get(_MIN_IN_SYNC, ""), settings.get(_UNCLEAN, "")
        return TopicUsed(
            name=name,
            replicas=tuple(
                tuple(sorted(each.replicas, key=partial(ne, each.leader))) for _, each in sorted(partitions.items())
            ),
            min_in_sync=int(least) if least.isdigit() else None,
            unclean_election=unclean == "true" if unclean else None,
        )

    # -- logs --------------------------------------------------------------------------------------------------

    def start(self, at: TopicPartition) -> int:
        """The first offset of a partition's log."""
        return self._client.list_offsets([at], timestamp=EARLIEST)[at]

    def end(self, at: TopicPartition) -> int:
        """The high watermark, which is the end of the log with one replica, or while no write is in progress."""
        return self._client.list_offsets([at])[at]

    def stable(self, at: TopicPartition) -> int:
        """The last stable offset."""
        return self._client.list_offsets([at], isolation=Isolation.READ_COMMITTED)[at]

    def batches(self, at: TopicPartition) -> list[Batch]:
        """All batches of the log, with control batches."""
        return list(fetch_log(self._client, *at, self.start(at), self.end(at)))

    def values(self, at: TopicPartition) -> list[str]:
        """The values of all records in order, also of open and aborted transactions."""
        return [_text(record.value) for batch in self.batches(at) if not batch.control for record in batch.records()]

    def committed(self, at: TopicPartition) -> list[str]:
        """The values that a reader under `read_committed` gets, by the broker's own list of aborted transactions."""
        log = fetch_log(self._client, *at, self.start(at), self.stable(at), isolation=Isolation.READ_COMMITTED)
        batches = [batch for batch in log if batch.last_offset < log.end]
        aborted = sorted(log.aborted, key=lambda pair: pair[1])
        hidden: set[int] = set()
        seen: list[str] = []
        for batch in batches:
            while aborted and aborted[0][1] <= batch.last_offset:
                hidden.add(aborted.pop(0)[0])
            if batch.control:
                if batch.marker() is Marker.ABORT:
                    hidden.discard(batch.producer_id)
            elif not (batch.transactional and batch.producer_id in hidden):
                seen += [_text(record.value) for record in batch.records()]
        return seen

    def aborted(self, at: TopicPartition) -> list[tuple[int, int]]:
        """(producer id, first offset) of every transaction that the broker names as aborted up to the LSO."""
        log = fetch_log(self._client, *at, self.start(at), self.stable(at), isolation=Isolation.READ_COMMITTED)
        for _ in log:
            pass
        return sorted(log.aborted)

    def markers(self, at: TopicPartition) -> list[tuple[str, int, int]]:
        """(commit or abort, producer id, epoch) of every marker."""
        return [
            (marker.name.lower(), batch.producer_id, batch.producer_epoch)
            for batch in self.batches(at)
            if (marker := batch.marker()) is not None
        ]

    def producers(self, at: TopicPartition) -> list[Body]:
        """The producers that a partition's leader remembers, with their state, by id.

        Raises NotApplicableError before 2.8, where a leader cannot be asked.
        """
        try:
            found = self._client.describe_producers([at])[at]
        except VersionError as error:
            raise NotApplicableError("what a leader remembers of producers cannot be asked before 2.8") from error
        return sorted(found, key=lambda each: int(each["ProducerId"]))

    def open_at(self, at: TopicPartition) -> list[int]:
        """The ids of producers that have a transaction open on a partition, as its leader remembers them (2.8+)."""
        return [each["ProducerId"] for each in self.producers(at) if each["CurrentTxnStartOffset"] >= 0]

    # -- coordinators ------------------------------------------------------------------------------------------

    def described(self, transactional_id: str) -> Body | None:
        """Describe a transactional id by DescribeTransactions, before 3.0 by the transaction log; None if unknown.

        Topics and partitions are sorted: a coordinator keeps them as a set, so the next one may list them otherwise.
        Raises NotApplicableError before 2.8, where there is neither; so do `state` and `places`.
        """
        try:
            found = self._client.describe_transactions([transactional_id]).get(transactional_id)
            return None if found is None else found | {"Topics": _sorted(found["Topics"])}
        except VersionError:
            return self._coordinator_log.described(transactional_id)

    def state(self, transactional_id: str) -> str | None:
        """The state of a transactional id; None when its coordinator does not know it."""
        found = self.described(transactional_id)
        return None if found is None else str(found["TransactionState"])

    def places(self, transactional_id: str) -> list[str]:
        """The partitions of a transaction, such as `orders-0`."""
        found = self.described(transactional_id)
        assert found is not None, "an id with a transaction is known"
        return sorted(f"{each['Topic']}-{index}" for each in found["Topics"] for index in each["Partitions"])

    def offset(self, group: str, at: TopicPartition, *, stable: bool = False) -> int | str:
        """The committed offset, -1 if there is none; the name of the code if it is refused (88 for a pending offset)."""
        try:
            found: CommittedOffset = self._client.offset_fetch(group, [at], require_stable=stable)[at]
        except BrokerError as error:
            return str(error.error.name) if error.error is not None else "UNKNOWN"
        return found.offset

    def complete(self, transactional_id: str | None, *, within_s: float = COMPLETE_WITHIN_S) -> str | None:
        """Wait until a transaction is complete; returns the last state, or None before 2.8: there ask for the end again."""
        try:
            return self.completed(transactional_id, within_s=within_s)
        except NotApplicableError:
            return None

    def completed(self, transactional_id: str | None, *, within_s: float = COMPLETE_WITHIN_S) -> str | None:
        """As `complete`, for a claim on the state: raises NotApplicableError before 2.8, where the state cannot be read."""
        assert transactional_id is not None
        end_s = time.monotonic() + within_s
        while (seen := self.state(transactional_id)) not in COMPLETE and time.monotonic() < end_s:
            time.sleep(LOOK_EVERY_S / 2)
        return seen


def ending(*, commit: bool) -> str:
    """The word for the end of a transaction."""
    return "commit" if commit else "abort"


def result(*, commit: bool) -> str:
    """The state after the end of a transaction."""
    return "CompleteCommit" if commit else "CompleteAbort"


def _sorted(topics: list[Body]) -> list[Body]:
    return [each | {"Partitions": sorted(each["Partitions"])} for each in sorted(topics, key=itemgetter("Topic"))]


def _text(value: bytes | None) -> str:
    return "null" if value is None else value.decode(errors="replace")
