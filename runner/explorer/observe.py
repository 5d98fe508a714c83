"""Looks at everything that a walk can change, through the protocol toolkit's inspector.

Both partitions under both isolation levels, the group's offset, and the state of the transactional id. A look raises
WireError where a broker refuses a part of it.
"""

from __future__ import annotations

from typing import Any

from runner.protocol.toolkit.inspector import Inspector
from wire.client import Client
from wire.codes import ErrorCode as Code
from wire.errors import BrokerError
from wire.values import TopicPartition

PLACES = (0, 1)


class WalkObserver:
    """Looks at one walk's topic, group and transactional id; group and id have the same `name`."""

    def __init__(self, client: Client, *, name: str, topic: str) -> None:
        self._client, self._name = client, name
        self._inspect = Inspector(client)
        self._places = [TopicPartition(topic, index) for index in PLACES]

    def everything(self) -> dict[str, Any]:
        """The visible things of the model, under the names that `verification.specification` gives them."""
        seen = self.coordinator()
        for index, at in enumerate(self._places):
            seen[f"end {index}"] = self._inspect.end(at)
            seen[f"stable {index}"] = self._inspect.stable(at)
            seen[f"log {index}"] = self._inspect.values(at)
            seen[f"committed {index}"] = self._inspect.committed(at)
        at = self._places[0]
        seen["offset"] = self._client.offset_fetch(self._name, [at], require_stable=False)[at].offset
        seen["offset pending"] = self._offset_is_pending(at)
        return seen

    def coordinator(self) -> dict[str, Any]:
        """State and epoch as DescribeTransactions has them."""
        found = self._inspect.described(self._name)
        if found is None:
            return {"state": "absent", "epoch": -1}
        return {"state": found["TransactionState"], "epoch": found["ProducerEpoch"]}

    def _offset_is_pending(self, at: TopicPartition) -> bool:
        try:
            self._client.offset_fetch(self._name, [at], require_stable=True)
        except BrokerError as error:
            if error.error is Code.UNSTABLE_OFFSET_COMMIT:
                return True
            raise
        return False
