"""Prepares the environment of a run: Kafka's jars, Java, and Docker or local processes to run brokers.

Everything is fetched or found before the first scenario. So a missing part is reported in one sentence before anything
starts, and a second run on the same machine fetches nothing. Brokers run in containers where a Docker engine answers.
Without one, they are processes of this machine, unless `--runtime docker` was given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from fixtures.clients.registry import client_kind
from fixtures.clusters.errors import EngineError
from fixtures.clusters.given.runtime import GivenRuntime
from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.locks.releases import ReleaseFiles, clients_jar, fetch_release, transaction_log_jars
from fixtures.clusters.runtime import ClusterRuntime, RunningCluster
from fixtures.clusters.spec import ClusterSpec
from fixtures.downloads.cache import readable
from fixtures.downloads.progress import Downloaded, Downloads
from fixtures.errors import EnvironmentProblemError
from fixtures.machine import check_machine, machine_report
from fixtures.tools.java import Java, find_java, present_java, spark_java_home
from fixtures.tools.toxiproxy_build import fetch_toxiproxy
from runner.config import RunConfig, Runtime
from runner.console import Console
from runner.given.preflight import preflight
from runner.settings.own_settings import OwnSettings

if TYPE_CHECKING:
    from fixtures.clusters.docker.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Jars, Java and a way to run brokers with the settings of the user, and where clusters keep their files.

    There may be no Java where only requests are sent (`RunConfig.only_requests`).
    """

    brokers: ClusterRuntime
    files: ReleaseFiles
    java: Java | None
    clusters_directory: Path
    keep_data: bool = False
    downloads: tuple[Downloaded, ...] = ()
    own_settings: OwnSettings = field(default_factory=OwnSettings)

    @property
    def runtime(self) -> str:
        """How brokers run: `docker` or `local`."""
        return self.brokers.name

    @property
    def definitions(self) -> Path:
        """The jar whose message definitions the wire client speaks."""
        return clients_jar(self.files)

    @property
    def witness_definitions(self) -> tuple[Path, ...]:
        """The jars for asking the cluster itself: the same, and those that define what coordinators write."""
        return self.definitions, *transaction_log_jars(self.files)

    @property
    def spark_java_home(self) -> Path:
        """A Java home that PySpark's launcher can start."""
        assert self.java is not None, "scenarios, which Spark judges, are not run without it"
        return spark_java_home(self.java)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of Kafka, the runtime and Python packages, by name."""
        packages = ("pyspark", "confluent-kafka", "toxiproxy-python", "testcontainers", "docker")
        return {
            "kafka": str(self.files.release),
            **({"kafka commit": self.files.commit} if self.files.commit else {}),
            **self.brokers.versions,
            **{package: metadata.version(package) for package in packages},
        }

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of every jar that brokers run, and digests of images where there are any."""
        return dict(self.brokers.digests)

    def describe(self, spec: ClusterSpec) -> str:
        """The cluster in words."""
        return self.brokers.describe(spec)

    def launch(self, spec: ClusterSpec) -> RunningCluster:
        """Start a cluster in a directory of its own. The settings that its specification names win over the user's."""
        spec = replace(spec, broker_settings={**self.own_settings.brokers, **spec.broker_settings})
        number = sum(1 for _ in self.clusters_directory.iterdir()) if self.clusters_directory.is_dir() else 0
        return self.brokers.launch(spec, self.clusters_directory / f"cluster-{number}", keep_data=self.keep_data)


def describe_machine(config: RunConfig, console: Console) -> dict[str, str]:
    """Print and return facts about this machine, by name; called before anything is fetched or started."""
    found = {fact.name: fact.value for fact in machine_report(config.release, only_jars=config.only_requests)}
    for name, value in found.items():
        console.say(f"{name}: {value}")
    return found


def prepare(config: RunConfig, console: Console) -> Environment:
    """Fetch and find everything. Raises an error of fixtures.errors, one sentence, for a part that is not available."""
    check_machine(evidence=config.directory)
    downloads = Downloads(stream=console.out)
    # Before anything is fetched: without the engine that `--runtime docker` needs the run ends.
    engine = None if config.given else _engine(config.runtime, downloads)
    java = present_java() if config.only_requests else find_java(downloads=downloads)
    needed = (config.release,) if config.upgrade is None else (config.upgrade.source, config.upgrade.target)
    # A release that does not exist is refused before the jars of the other one are fetched.
    fetched = {
        each: fetch_release(each, downloads=downloads) for each in sorted(needed, key=lambda each: each.supported)
    }
    files = fetched[config.release]
    if (kind := client_kind(config.client)).fetched:
        kind.command(config.release.version)
    brokers: ClusterRuntime
    if config.given:
        preflight(config.given, files, only_requests=config.only_requests, say=console.say)
        brokers = GivenRuntime(
            connection=config.given.connection,
            files=files,
            toxiproxy=None if config.only_requests else fetch_toxiproxy(downloads=downloads),
            commands=config.given.commands,
            program=config.given.program,
        )
    else:
        assert java is not None, "it was fetched"
        brokers = _containers(config.runtime, engine, files, downloads, image=config.image) or LocalRuntime.prepare(
            files, java, downloads=downloads, class_archive=config.class_archive
        )
    console.say(f"runtime: {brokers.name}")
    console.say(f"downloaded: {len(downloads.items)} files" if downloads.items else "downloaded: nothing")
    for group in dict.fromkeys(item.group for item in downloads.items):
        items = [item for item in downloads.items if item.group == group]
        console.say(f"  {group}: {len(items)} files, {readable(sum(item.size_bytes for item in items))}")
    return Environment(
        brokers=brokers,
        files=files,
        java=java,
        clusters_directory=config.directory / "clusters",
        keep_data=config.keep,
        downloads=tuple(downloads.items),
        own_settings=config.own_settings,
    )


def _engine(runtime: Runtime, downloads: Downloads) -> Engine | None:
    """Connect to the Docker engine; None with `--runtime local`, or when it does not answer.

    Raises EngineError when it does not answer and `--runtime docker` was given.
    """
    if runtime is Runtime.LOCAL:
        return None
    # Docker's libraries take a quarter of a second to import.
    from fixtures.clusters.docker.engine import Engine

    try:
        return Engine.connect()
    except EngineError as error:
        if runtime is Runtime.DOCKER:
            raise
        downloads.say(f"no containers: {error.sentence}")
        return None


def _containers(
    runtime: Runtime, engine: Engine | None, files: ReleaseFiles, downloads: Downloads, *, image: str = ""
) -> ClusterRuntime | None:
    """Prepare containers as brokers; None without an engine, or when they cannot be prepared.

    An image needs parts that local processes may not need, first of all a Java runtime of its own.
    Raises EnvironmentProblemError (EngineError of the engine itself) when they fail and `--runtime docker` was given.
    """
    if engine is None:
        return None
    from fixtures.clusters.docker.runtime import DockerRuntime

    try:
        return DockerRuntime.prepare(files, downloads=downloads, engine=engine, image=image)
    except EnvironmentProblemError as error:
        if runtime is Runtime.DOCKER:
            raise
        downloads.say(f"no containers: {error.sentence}")
        return None
