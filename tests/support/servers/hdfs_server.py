"""A real HDFS of one name node and one data node, on loopback: Hadoop's servers, as published for tests, in one jar."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from fixtures.clusters.locks.lockfile import LockedJar
from fixtures.clusters.locks.releases import fetch_jars
from fixtures.downloads.cache import ensure_dir
from fixtures.processes.keeper import Child, Keeper
from fixtures.tools.java import find_java, spark_java_home
from fixtures.waiting import await_until

#: The servers; of the release whose client pyspark has.
SERVERS = LockedJar(
    path="org/apache/hadoop/hadoop-client-minicluster/3.5.0/hadoop-client-minicluster-3.5.0.jar",
    sha256="06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    size_bytes=56_006_450,
)
#: Each JVM is up within five seconds; the rest is for a machine that is busy with clusters.
WITHIN_S = 120.0
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=INFO")
_PACKAGE = "org.apache.hadoop"


class Hdfs:
    """What is asked of it: its URI, and to hold a copy of a directory."""

    def __init__(self, place: Path) -> None:
        self.uri = "hdfs://127.0.0.1:0"
        self._place = place
        # Everything is said on the command line; the shell insists on a file.
        (place / "core-site.xml").write_text("<configuration/>", encoding="utf-8")
        settings = {
            "dfs.namenode.name.dir": (place / "name").as_uri(),
            "dfs.datanode.data.dir": (place / "data").as_uri(),
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
            **dict.fromkeys(("dfs.namenode.http-address", "dfs.datanode.http.address"), "127.0.0.1:0"),
            **dict.fromkeys(("dfs.datanode.address", "dfs.datanode.ipc.address"), "127.0.0.1:0"),
        }
        self._settings = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]

    def put(self, directory: Path) -> str:
        """Copy a directory into the root; the URI of the copy."""
        self._run("fs.FsShell", "-put", str(directory), f"{self.uri}/")
        return f"{self.uri}/{directory.name}"

    def start(self, keeper: Keeper) -> None:
        """Format it, and start both nodes."""
        self._run("hdfs.server.namenode.NameNode", "-format", "-nonInteractive")
        name = self._spawn(keeper, "hdfs.server.namenode.NameNode")
        port = self._says(name, r"NameNode RPC up at: \S*:(\d+)")
        self.uri = f"hdfs://127.0.0.1:{port}"
        data = self._spawn(keeper, "hdfs.server.datanode.DataNode")
        self._says(data, r"(Block pool .* successfully registered with NN)")

    def _command(self, main: str, *words: str) -> list[str]:
        jars = Path(pyspark.__file__).parent / "jars"
        java = spark_java_home(find_java()) / "bin" / "java"
        (servers,) = fetch_jars("Hadoop", (SERVERS,))
        classes = os.pathsep.join([str(self._place), str(servers), f"{jars}/*"])
        address = ["-D", f"fs.defaultFS={self.uri}"]
        return [str(java), *FLAGS, "-cp", classes, f"{_PACKAGE}.{main}", *address, *self._settings, *words]

    def _run(self, main: str, *words: str) -> None:
        done = subprocess.run(
            self._command(main, *words), cwd=self._place, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _spawn(self, keeper: Keeper, main: str) -> Child:
        name = main.rpartition(".")[2]
        return keeper.spawn(
            name, self._command(main), directory=self._place, log=self._place / f"{name}.log", variables={}
        )

    def _says(self, child: Child, pattern: str) -> str:
        log = self._place / f"{child.name}.log"
        await_until(
            lambda: child.exit_status is not None or re.search(pattern, log.read_text(encoding="utf-8")) is not None,
            f"{child.name} to say {pattern!r}",
            timeout_s=WITHIN_S,
            last=lambda: log.read_text(encoding="utf-8")[-500:],
        )
        found = re.search(pattern, text := log.read_text(encoding="utf-8"))
        assert found, f"{child.name} ended:\n{text}"
        return found[1]


@contextmanager
def hdfs(place: Path) -> Iterator[Hdfs]:
    """A running HDFS with its data in a directory."""
    running = Hdfs(place)
    with Keeper(ensure_dir(place / "ledgers")) as keeper:
        running.start(keeper)
        yield running
