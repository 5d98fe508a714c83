"""A plain client of the driver protocol: one method per operation, and a list of all events."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from fixtures.clients.driver import Driver
from fixtures.clients.mock_cluster import PARTITIONS
from fixtures.clients.registry import client_kind
from fixtures.clusters.local.cluster import LocalCluster
from tests.support.paths import ROOT
from verification.vocabulary.identity import Identity, RecordKind

# A driver starts within a second on a quiet machine; tests share theirs.
PATIENCE_S = 60.0
DEFAULTS: dict[str, Any] = {
    "transactional_id": None,
    "transaction_timeout_ms": 20000,
    "idempotence": True,
    "acks": "all",
    "isolation": "read_committed",
    "group": None,
    "group_instance_id": None,
    "record_size": 160,
    "settings": {},
}


class Talk:
    """One configured driver."""

    def __init__(
        self,
        kind: str,
        role: str,
        bootstrap: str,
        topics: list[str],
        directory: Path,
        *,
        run: str = "",
        process: int = 1,
        **more: Any,
    ) -> None:
        self.run, self.process = run or secrets.token_hex(6), process
        self.events: list[dict[str, Any]] = []
        self._numbers = itertools.count()
        self._topics = topics
        self.driver = Driver.start(
            client_kind(kind).command(None),
            name=f"{role}-{process}-{secrets.token_hex(3)}",
            directory=directory,
            work_directory=ROOT,
        )
        configuration = {"do": "configure", "role": role, "bootstrap": bootstrap, "topics": topics, "run": self.run}
        self.driver.send({**configuration, "process": process, **DEFAULTS, **more})
        self.ready = self.hear()

    def hear(self, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """The next event."""
        event = self.driver.receive(waiting_for="say something", timeout_s=timeout_s)
        self.events.append(event)
        return event

    def ask(self, do: str, **fields: Any) -> int:
        """Send an operation; its number."""
        number = next(self._numbers)
        self.driver.send({"do": do, "operation": number, **fields})
        return number

    def until_done(self) -> dict[str, Any]:
        """Events up to the next `done`, which is returned."""
        while (event := self.hear())["event"] != "done":
            assert event["event"] in ("begun", "deciding", "held"), event
        return event

    def do(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send an operation and return its answer."""
        self.ask(do, **{"deadline_s": 20.0, **fields})
        return self.until_done()

    def records(self, places: list[tuple[int, int]], *, kind: RecordKind = RecordKind.TRANSACTION) -> list[list[Any]]:
        """Records with identities for the given (topic_index, partition) places."""
        return [
            [
                index,
                topic,
                partition,
                Identity(
                    run=self.run,
                    process=self.process,
                    operation=0,
                    kind=kind,
                    index=index,
                    count=len(places),
                    topic_index=topic,
                    intended_partition=partition,
                    send_order=index,
                )
                .encode(160)
                .decode("ascii"),
            ]
            for index, (topic, partition) in enumerate(places)
        ]

    def transaction(self, places: list[tuple[int, int]], intent: str = "commit", **fields: Any) -> dict[str, Any]:
        """One transaction."""
        return self.do("transaction", records=self.records(places), intent=intent, **fields)

    def read(self, places: list[tuple[int, int]], *, least: int) -> list[list[Any]]:
        """As an observer: records from the beginning of these places, until there are `least` of them."""
        found: list[list[Any]] = []
        assign: dict[str, Any] = {"assign": [[topic, partition, 0] for topic, partition in places]}
        for _ in range(40):
            done = self.do("poll", max_records=500, timeout_s=0.5, **assign)
            assert done["error"] is None, done
            found += done["records"]
            assign = {}
            if len(found) >= least:
                return found
        raise AssertionError(f"{len(found)} of {least} records were delivered")

    def close(self) -> None:
        """End the driver, also when it hangs."""
        self.driver.kill()
        self.driver.close()


def await_gone(pid: int) -> None:
    """Wait until a process has ended; raises AssertionError after 30 s."""
    for _ in range(600):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still in state {state}")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A cluster for tests of a client library. `create` makes topics of PARTITIONS partitions."""

    bootstrap: str
    create: Callable[[list[str]], None]


def create_topics(broker: LocalCluster, names: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.witness_bootstrap})
    for created in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        created.result(30)


def real_topics(broker: LocalCluster, count: int) -> list[str]:
    names = [f"{secrets.token_hex(4)}-{index}" for index in range(count)]
    create_topics(broker, names)
    return names
