"""Runs the command line tools of a released Kafka against a real cluster, as an operator types them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass

from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.locks.lockfile import LockedJar
from fixtures.clusters.locks.releases import fetch_jars

#: The tools are no part of a broker, so the lock file of the release does not have them. The repository lacks the second
#: jar of 4.4.0; its few interfaces have not changed since 4.2.
JARS = (
    LockedJar(
        path="org/apache/kafka/kafka-tools/4.4.0/kafka-tools-4.4.0.jar",
        sha256="4eb9a7fbfd63badfd8d1a677aa2d54b47b2b2d442ff7d68fd223972afea1954c",
        size_bytes=751_995,
    ),
    LockedJar(
        path="org/apache/kafka/kafka-tools-api/4.3.1/kafka-tools-api-4.3.1.jar",
        sha256="dcf6785742e0c8ab11a0fc09c62f1192e11e997dc629669a8db82aa40d933c31",
        size_bytes=9_072,
    ),
)
#: The class that each script of the distribution starts.
MAIN_CLASSES = {
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-dump-log.sh": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
}
_LOGGED = re.compile(r"\[20\d\d-\d\d-\d\dT|\*{60}|\* ")
#: A tool takes two seconds on a quiet machine.
ENDS_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTools:
    """The tools of the release, for one cluster."""

    cluster: LocalCluster

    def output(self, command: str, **values: object) -> str:
        """What a command prints; `values` replace its words in capitals. Raises AssertionError if it fails."""
        bootstrap = self.cluster.witness_bootstrap.split(",")[0]
        filled = {"HOST:PORT": bootstrap, **{name: str(value) for name, value in values.items()}}
        words = [_filled(each, filled) for each in shlex.split(command)]
        executable, *rest = self.cluster.jvm.tool(MAIN_CLASSES[words[0]], *words[1:])
        jars = fetch_jars("Kafka's tools", JARS)
        rest[rest.index("-cp") + 1] += "".join(f"{os.pathsep}{jar}" for jar in jars)
        done = subprocess.run([executable, *rest], capture_output=True, text=True, timeout=ENDS_WITHIN_S, check=False)
        assert done.returncode == 0, f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        # The logging of our clusters writes to stdout.
        return "\n".join(line for line in done.stdout.splitlines() if not _LOGGED.match(line))

    def table(self, command: str, **values: object) -> list[dict[str, str]]:
        """The table that a command prints, a row by the titles of its columns."""
        titles, *rows = [line.split() for line in self.output(command, **values).splitlines() if line.strip()]
        return [dict(zip(titles, row, strict=False)) for row in rows]


def _filled(word: str, values: dict[str, str]) -> str:
    """A word of a command with its placeholders replaced; a whole placeholder is in capitals, as `T` or `HOST:PORT`."""
    return re.sub(r"\b(HOST:PORT|[A-Z]+)\b", lambda found: values.get(found[1], found[1]), word)
