"""Spark that the harness did not start: a standalone master with workers, and a Connect server, on loopback.

Their programs are those of the installed pyspark. Each is a child of a keeper, which ends executors as well, as they are
in the process groups of their workers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from fixtures.downloads.cache import ensure_dir
from fixtures.processes.keeper import Child, Keeper
from fixtures.tools.java import find_java, spark_java_home
from fixtures.waiting import await_until

HOME = Path(pyspark.__file__).parent
#: A JVM starts in two seconds, and says so; the rest is for a machine that is busy with clusters.
WITHIN_S = 90.0
#: What an executor asks for by default; with less memory, its worker would let it wait for ever.
EXECUTOR_MEMORY = "1g"
#: As in a session of ours: these live for a minute.
FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def temporary(place: Path) -> dict[str, str]:
    """Variables by which Spark, its JVMs and its executors put into a directory what they leave when they are killed."""
    return {
        "TMPDIR": str(place),
        "SPARK_LOCAL_DIRS": str(place),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={place}",
    }


class Server:
    """A JVM of Spark's that says where it listens, or that it has found its master."""

    def __init__(self, keeper: Keeper, place: Path, name: str, *command: str) -> None:
        self.name = name
        self._log = place / f"{name}.log"
        work = place / name
        work.mkdir()
        variables = {
            "SPARK_HOME": str(HOME),
            "JAVA_HOME": str(spark_java_home(find_java())),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **temporary(work),
            "PYSPARK_PYTHON": sys.executable,
            # What executors run must come from the driver: nothing of ours is on the servers' paths.
            "PYTHONPATH": "",
            "SPARK_DAEMON_JAVA_OPTS": FLAGS,
        }
        self._child: Child = keeper.spawn(name, command, directory=work, log=self._log, variables=variables)

    def says(self, pattern: str) -> str:
        """Wait for a line of its log; the first group of the pattern."""
        await_until(
            lambda: self._child.exit_status is not None or re.search(pattern, self._text()) is not None,
            f"{self.name} to say {pattern!r}",
            timeout_s=WITHIN_S,
            last=lambda: self._text()[-500:],
        )
        found = re.search(pattern, self._text())
        assert found, f"{self.name} ended:\n{self._text()}"
        return found[1]

    def _text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def standalone(place: Path, *, workers: int = 2) -> Iterator[str]:
    """A standalone master with some workers of one core each; the master's URL."""
    daemon = (str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy")
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with Keeper(ensure_dir(place / "ledgers")) as keeper:
        master = Server(keeper, place, "master", daemon[0], f"{daemon[1]}.master.Master", *here)
        url = master.says(r"Starting Spark master at (spark://[\d.:]+)")
        for number in range(workers):
            size = ("--cores", "1", "--memory", EXECUTOR_MEMORY)
            worker = Server(
                keeper, place, f"worker-{number}", daemon[0], f"{daemon[1]}.worker.Worker", *here, *size, url
            )
            worker.says(r"(Successfully registered with master)")
        yield url


@contextmanager
def connect_server(place: Path) -> Iterator[str]:
    """A Connect server on two cores; its URL."""
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    said = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    submit = (str(HOME / "bin" / "spark-submit"), *said, "--driver-java-options", f"{FLAGS} -Xss4m")
    with Keeper(ensure_dir(place / "ledgers")) as keeper:
        server = Server(
            keeper,
            place,
            "connect",
            *submit,
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
            "spark-internal",
        )
        port = server.says(r"Spark Connect server started at: \S*:(\d+)")
        yield f"sc://127.0.0.1:{port}"
