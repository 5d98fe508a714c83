"""The bare broker: one combined KRaft broker as a person starts it by hand, to compare a cluster's start with.

It has the same jars, Java, JVM flags (heap, collector, compiler) and formatting tool as our clusters. It has no links,
one listener for all clients, and no setting that it can start without. It counts as started when its own metadata lists
it and it leads the metadata quorum. A cluster of ours must also have its internal topics and coordinators, because
scenarios only receive a cluster that has them.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.errors import BareBrokerError
from chaos.cluster import BrokerId
from chaos.routes import Endpoint
from fixtures.clusters.brokers.jvm import BrokerJvm, JvmOptions
from fixtures.clusters.brokers.logs import tail
from fixtures.clusters.brokers.storage import format_with_tool, new_uuid
from fixtures.clusters.errors import ObservationError
from fixtures.clusters.locks.releases import ReleaseFiles, clients_jar
from fixtures.clusters.network.ports import claim_block
from fixtures.clusters.observing.role_observer import RoleObserver
from fixtures.downloads.cache import cache_dir, ensure_dir
from fixtures.processes.keeper import Child, Keeper
from fixtures.tools.java import Java
from wire.messages import Definitions

_BROKER = BrokerId(1)
_HOST = "127.0.0.1"
# Within a claimed block of ports; the last one is the claim on the block.
_CLIENTS_PORT, _CONTROLLER_PORT, _CLAIM_PORT = 1, 11, 99
# 2 to 3 s on two quiet cores; the rest is for busy ones.
_READY_DEADLINE_S = 120.0
# The same interval as for our own clusters, so that both are seen to be ready equally soon.
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class BareBroker:
    """How a bare broker is started. `options` are further JVM options, none for a plain start."""

    files: ReleaseFiles
    java: Java
    options: JvmOptions

    def seconds_to_start(self, directory: Path) -> float:
        """Start one in `directory`, which must not exist yet, end it, and return how long the start took.

        Raises BareBrokerError, ClusterStartError (from formatting) and NoFreePortsError; nothing is left running.
        """
        log = directory / "broker.log"
        with contextlib.ExitStack() as undo:
            began = time.monotonic()
            block = undo.enter_context(contextlib.closing(claim_block(lambda base: _at(base, _CLAIM_PORT), _needed)))
            for part in (directory, directory / "tmp"):
                part.mkdir(parents=True)
            undo.callback(shutil.rmtree, directory / "data", ignore_errors=True)
            keeper = undo.enter_context(Keeper(ensure_dir(cache_dir() / "ledgers")))
            jvm = BrokerJvm.prepare(
                self.java, self.files, configuration=directory, scratch=directory / "tmp", options=self.options
            )
            properties = directory / "server.properties"
            properties.write_text(_properties(block.base, directory / "data"), encoding="utf-8")
            format_with_tool(keeper, jvm, properties, cluster_id=new_uuid(), feature_levels={}, log=log)
            child = keeper.spawn(
                "the bare broker", jvm.tool("kafka.Kafka", str(properties)), directory=directory, log=log
            )
            self._await(block.base, child, log)
            return time.monotonic() - began

    def _await(self, base: int, child: Child, log: Path) -> None:
        """Wait until the broker lists itself and leads its quorum."""
        began = time.monotonic()
        clients, voters = {_BROKER: _at(base, _CLIENTS_PORT)}, {_BROKER: _at(base, _CONTROLLER_PORT)}
        last = "nothing"
        with contextlib.closing(RoleObserver(clients, voters, Definitions.load(clients_jar(self.files)))) as witness:
            while True:
                try:
                    view = witness.view({_BROKER})
                    if view.alive == {_BROKER} and view.controller == _BROKER:
                        return
                    last = f"controller {view.controller}, unfenced brokers {sorted(view.alive)}"
                except ObservationError as error:
                    last = error.sentence
                waited_s = time.monotonic() - began
                if child.exit_status is not None or waited_s > _READY_DEADLINE_S:
                    how = "ended" if child.exit_status is not None else "is not ready"
                    raise BareBrokerError(
                        f"The bare broker {how} after {waited_s:.0f} s; last seen: {last}. The end of its log:\n{tail(log)}"
                    )
                time.sleep(_LOOK_EVERY_S)


def _at(base: int, port: int) -> Endpoint:
    return Endpoint(host=_HOST, port=base + port)


def _needed(base: int) -> list[Endpoint]:
    return [_at(base, _CLIENTS_PORT), _at(base, _CONTROLLER_PORT)]


def _properties(base: int, data: Path) -> str:
    """The settings that a combined broker needs to start."""
    clients, controller = _at(base, _CLIENTS_PORT), _at(base, _CONTROLLER_PORT)
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(_BROKER),
        "controller.quorum.voters": f"{_BROKER}@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{clients},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{clients}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())
