"""A cluster of one broker for commands that try a client: it is started, and ends with the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.frames import FrameLinks
from chaos.frames.proxy.cluster_listeners import ClusterListeners
from chaos.frames.proxy.frame_log import FrameLog
from chaos.routes import Endpoint
from fixtures.clients.abilities import Abilities
from fixtures.clients.contract.rule import PARTITIONS, ContractBench
from fixtures.clients.errors import ClientError
from fixtures.clients.registry import READER, client_kind
from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.locks.releases import Release, clients_jar, fetch_release
from fixtures.clusters.runtime import RunningCluster
from fixtures.clusters.spec import ClusterSpec
from fixtures.downloads.progress import Downloads
from fixtures.machine import check_machine
from fixtures.tools.java import find_java
from wire.messages import Definitions

#: A topic of one broker is made within a second; a busy machine takes some.
CREATED_WITHIN_S = 30.0


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201 - the voice of a command


@contextmanager
def one_broker(
    release: Release, directory: Path, feature_levels: Mapping[str, int] | None = None
) -> Iterator[RunningCluster]:
    """A broker of a release, with its files in `directory`. Raises the errors of the environment."""
    check_machine(evidence=directory)
    downloads = Downloads()
    java = find_java(downloads=downloads)
    brokers = LocalRuntime.prepare(fetch_release(release, downloads=downloads), java, downloads=downloads)
    spec = replace(
        ClusterSpec.of_one_broker(release.version), partitions=PARTITIONS, feature_levels=feature_levels or {}
    )
    with brokers.launch(spec, directory / "cluster", keep_data=False) as cluster:
        say(f"cluster: one broker of Kafka {release.version}")
        yield cluster


@contextmanager
def proxied(bootstrap: str, release: Release, log: Path) -> Iterator[tuple[str, FrameLinks]]:
    """A frame proxy in front of the broker: its address, and its links."""
    host, _, port = bootstrap.rpartition(":")
    broker = Endpoint(host=host, port=int(port))
    definitions = Definitions.load(clients_jar(fetch_release(release)))
    with log.open("w", encoding="utf-8") as out:
        listeners = ClusterListeners(
            definitions, Endpoint(host="127.0.0.1", port=0), broker, FrameLog(out, every_frame=False)
        )
        with closing(listeners.links):
            listeners.start()
            at = listeners.open([broker])[broker]
            yield f"{at.host}:{at.port}", listeners.links


def bench_on(cluster: RunningCluster, command: Sequence[str], abilities: Abilities, directory: Path) -> ContractBench:
    """A bench for a driver on this cluster, with its logs in `directory`."""
    return ContractBench(
        command=command,
        bootstrap=cluster.witness_bootstrap,
        create=_topics_on(cluster.witness_bootstrap),
        directory=directory,
        reader=client_kind(READER).command(cluster.spec.release),
        abilities=abilities,
    )


def _topics_on(bootstrap: str) -> Callable[[list[str]], None]:
    """A function that makes topics of PARTITIONS partitions. It raises ClientError where the cluster does not."""

    def create(names: list[str]) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for name, created in admin.create_topics([NewTopic(each, PARTITIONS, 1) for each in names]).items():
            try:
                created.result(CREATED_WITHIN_S)
            except KafkaException as error:
                raise ClientError(f"The topic {name} was not created: {error}.") from error

    return create
