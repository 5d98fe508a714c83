"""The equipment of a run: what is fetched or found on the machine, and how a cluster is launched from it.

Everything is made ready before the first scenario, so that what is missing is said in one sentence before anything
starts, and a second run on the same machine fetches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from fixtures.cache import readable
from fixtures.clusters.class_archive import sharing_options
from fixtures.clusters.jvm import NO_OPTIONS, JvmOptions
from fixtures.clusters.local import LocalCluster
from fixtures.clusters.releases import ReleaseFiles, clients_jar, fetch_release
from fixtures.clusters.runtime import RunningCluster
from fixtures.clusters.spec import ClusterSpec
from fixtures.progress import Downloaded, Downloads
from fixtures.tools import Java, check_machine, fetch_toxiproxy, find_java, spark_java_home
from suites.config import RunConfig
from suites.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """Jars, Java and Toxiproxy, and where clusters keep their files."""

    runtime: str
    files: ReleaseFiles
    java: Java
    toxiproxy: Path
    clusters_directory: Path
    sharing: JvmOptions = NO_OPTIONS
    keep_data: bool = False
    downloads: tuple[Downloaded, ...] = ()

    @property
    def definitions(self) -> Path:
        """The jar whose message definitions the wire client speaks."""
        return clients_jar(self.files)

    @property
    def spark_java_home(self) -> Path:
        """A Java home that PySpark's launcher can start."""
        return spark_java_home(self.java)

    @property
    def versions(self) -> dict[str, str]:
        """What took part, by name."""
        packages = ("pyspark", "confluent-kafka", "toxiproxy-python", "testcontainers", "docker")
        return {
            "kafka": str(self.files.release),
            "java": str(self.java.major),
            **{package: metadata.version(package) for package in packages},
        }

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of every jar of the brokers."""
        return dict(self.files.digests)

    def describe(self, spec: ClusterSpec) -> str:
        """The cluster in words."""
        return f"{spec.brokers} brokers of Kafka {spec.release} as {self.runtime} processes"

    def launch(self, spec: ClusterSpec) -> RunningCluster:
        """Start a cluster in a directory of its own."""
        number = sum(1 for _ in self.clusters_directory.iterdir()) if self.clusters_directory.is_dir() else 0
        directory = self.clusters_directory / f"cluster-{number}"
        return LocalCluster.launch(
            spec,
            self.files,
            self.java,
            self.toxiproxy,
            directory,
            options=self.sharing,
            keep_data=self.keep_data,
        )


def prepare(config: RunConfig, console: Console) -> Equipment:
    """Fetch and find everything; raises fixtures.errors with one sentence for what cannot be had."""
    check_machine()
    downloads = Downloads(stream=console.out)
    java = find_java(downloads=downloads)
    files = fetch_release(config.release, downloads=downloads)
    toxiproxy = fetch_toxiproxy(downloads=downloads)
    equipment = Equipment(
        runtime="local",
        files=files,
        java=java,
        toxiproxy=toxiproxy,
        clusters_directory=config.directory / "clusters",
        sharing=sharing_options(files, java, toxiproxy, say=console.say),
        keep_data=config.keep,
        downloads=tuple(downloads.items),
    )
    console.say(f"downloaded: {len(downloads.items)} files" if downloads.items else "downloaded: nothing")
    for group in dict.fromkeys(item.group for item in downloads.items):
        items = [item for item in downloads.items if item.group == group]
        console.say(f"  {group}: {len(items)} files, {readable(sum(item.size_bytes for item in items))}")
    return equipment
