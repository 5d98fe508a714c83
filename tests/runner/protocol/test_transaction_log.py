"""States of transactional ids on releases without DescribeTransactions: the transaction log has the same fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import runner.protocol.toolkit.inspector
from runner.protocol.toolkit.inspector import Inspector
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.transaction_log import CoordinatorLog
from tests.verification.test_transaction_log import KEY, definitions, logged, value
from verification.vocabulary.transaction_log import TOPIC
from wire.errors import VersionError
from wire.records import Batch
from wire.values import EARLIEST, TopicPartition

OTHER = b"\x00\x00\x00\x05other"


class OldBrokers:
    """A client of brokers before 2.8: it can read a transaction log of one partition, and describe nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *records: tuple[bytes, bytes | None]) -> None:
        self.definitions = definitions()
        self.records = list(records)
        self.read_from: list[int] = []
        monkeypatch.setattr("runner.protocol.toolkit.transaction_log.fetch_log", self._fetched)

    def metadata(self, topics: list[str]) -> Any:
        """One partition."""
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions={0: None}) for topic in topics})

    def list_offsets(self, places: list[TopicPartition], *, timestamp: int | None = None) -> dict[TopicPartition, int]:
        """The first offset or the end."""
        return dict.fromkeys(places, 0 if timestamp == EARLIEST else len(self.records))

    def describe_transactions(self, names: list[str]) -> Any:
        """Not offered."""
        raise VersionError(f"DescribeTransactions of {names} is not offered")

    def describe_producers(self, places: list[TopicPartition]) -> Any:
        """Not offered."""
        raise VersionError(f"DescribeProducers of {places} is not offered")

    def _fetched(self, _client: object, topic: str, partition: int, start: int, end: int) -> Iterator[Batch]:
        assert (topic, partition) == (TOPIC, 0)
        self.read_from.append(start)
        yield from logged(*self.records[start:end])


def test_the_last_record_of_an_id_is_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """State, producer, start and partitions are as in DescribeTransactions; an id with a tombstone is unknown."""
    brokers: Any = OldBrokers(monkeypatch, (KEY, value(0, TransactionStatus=1)), (OTHER, value(0)), (KEY, value(0)))
    log = CoordinatorLog(brokers)
    assert log.described("shop") == {
        "TransactionalId": "shop",
        "TransactionState": "PrepareCommit",
        "TransactionTimeoutMs": 60_000,
        "TransactionStartTimeMs": 1_700_000_000_000,
        "ProducerId": 7,
        "ProducerEpoch": 3,
        "Topics": [{"Topic": "bills", "Partitions": [1]}, {"Topic": "orders", "Partitions": [0, 2]}],
    }
    assert log.described("unknown") is None
    brokers.records.append((KEY, None))
    assert log.described("shop") is None
    assert brokers.read_from == [0, 3, 3], "a record is read once"


def test_a_release_without_definitions_of_the_log_is_not_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 2.8 no state is known: no inspection and no claim applies, and a script sends EndTxn again to wait for it."""
    brokers: Any = OldBrokers(monkeypatch, (KEY, value(0)))
    brokers.definitions = SimpleNamespace(versions=lambda _: [])
    inspect = Inspector(brokers)
    with pytest.raises(NotApplicableError, match=r"neither be asked for nor read before 2\.8"):
        inspect.state("shop")
    producer: Any = SimpleNamespace(transactional_id="shop")
    assert inspect.complete(producer.transactional_id) is None
    with pytest.raises(NotApplicableError, match=r"before 2\.8"):
        inspect.completed(producer.transactional_id)


def test_no_claim_is_made_on_a_state_that_may_be_unknown() -> None:
    """The None of `complete` for an unknown state would be a false violation on every release before 2.8."""
    claims = [
        f"{path.name}:{node.lineno}"
        for path in Path(runner.protocol.toolkit.inspector.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "expect"
        if "see.complete(" in ast.unparse(node)
    ]
    assert claims == []


def test_looks_at_old_releases_end_in_the_log_or_do_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state is found before 3.0 too; a leader's state of producers cannot be read before 2.8."""
    brokers: Any = OldBrokers(monkeypatch, (KEY, value(0, TransactionStatus=1)))
    inspect = Inspector(brokers)
    assert inspect.state("shop") == "Ongoing"
    assert inspect.state("unknown") is None
    assert inspect.places("shop") == ["bills-1", "orders-0", "orders-2"]
    with pytest.raises(NotApplicableError, match=r"before 2\.8"):
        inspect.open_at(TopicPartition("orders", 0))


def test_the_order_of_a_coordinators_set_says_nothing() -> None:
    """A coordinator of 4.1.2 lists partitions 1 and 0 after a failover, where the one before listed 0 and 1."""

    def inspector(*topics: dict[str, Any]) -> Inspector:
        described = {"shop": {"TransactionState": "Ongoing", "Topics": list(topics)}}
        client: Any = SimpleNamespace(describe_transactions=lambda _: described)
        return Inspector(client)

    bills = {"Topic": "bills", "Partitions": [0]}
    before = inspector({"Topic": "orders", "Partitions": [0, 1]}, bills)
    after = inspector(bills, {"Topic": "orders", "Partitions": [1, 0]})
    assert before.described("shop") == after.described("shop")
    assert inspector({"Topic": "orders", "Partitions": [1]}).described("shop") != after.described("shop")
    assert before.described("unknown") is None
