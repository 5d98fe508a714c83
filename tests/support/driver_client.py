"""A conversation with the driver of a registered client, and clusters to have it on."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from fixtures.clients.contract.conversation import Conversation
from fixtures.clients.mock_cluster import PARTITIONS
from fixtures.clients.registry import client_kind
from fixtures.clusters.local.cluster import LocalCluster


class Talk(Conversation):
    """A conversation with the driver of a client of the registry."""

    def __init__(self, kind: str, role: str, bootstrap: str, topics: list[str], directory: Path, **more: Any) -> None:
        super().__init__(client_kind(kind).command(None), role, bootstrap, topics, directory, **more)


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
