"""Watch a rolling upgrade with `tox -e watch`, and write its memory and disk to `docs/generated/watch.md`.

A cluster of three brokers is started by other means. `watch` gets its address and nothing else. Meanwhile each broker is
stopped and started with the next release, and then the new feature levels are made final. Every few seconds the resident
memory of `watch` and of all its processes (Spark, clients) is read, and the size of its run directory. Only a run of 20
minutes writes the page.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.command import Bench, Benchmark, BenchmarkResult
from benchmarks.measuring.errors import ContenderError
from benchmarks.measuring.footprint import resident_bytes
from benchmarks.watching.page import Seen, page, table
from chaos.cluster import BrokerId
from chaos.operations.feature_levels import LevelChange, update
from fixtures.clusters.health import await_healthy
from fixtures.clusters.local.cluster import LocalCluster, OtherRelease
from fixtures.clusters.locks.releases import (
    Release,
    clients_jar,
    default_release,
    fetch_release,
    parse_release,
    supported_releases,
)
from fixtures.clusters.spec import ClusterSpec
from fixtures.tools.java import find_java
from fixtures.tools.toxiproxy_build import fetch_toxiproxy
from reports.formats.chart_file import svg
from runner.config import ROOT
from runner.upgrades.path import METADATA, features_of
from verification.command_line import Parser
from verification.evidence.atomic_write import atomic_write
from wire.client import Client
from wire.messages import Definitions

MINUTES = 20
LOOK_S = 5.0
#: A broker that is upgraded is in sync again after some seconds; this bounds one that does not come back.
BACK_WITHIN_S = 90.0
#: After the last window the report is written.
REPORT_WITHIN_S = 300.0
FILE = ROOT / "docs" / "generated" / "watch.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchingOptions:
    """How long it is watched, and the releases before and after."""

    minutes: int
    source: Release
    target: Release


def _options(parser: Parser, arguments: Sequence[str] | None) -> WatchingOptions:
    target = default_release()
    source = max(each for each in supported_releases() if each < target)
    parser.add_argument("--minutes", type=int, default=MINUTES, metavar="N", help=f"how long (default {MINUTES})")
    parser.add_argument("--from", dest="source", default=str(source), metavar="VERSION", help=f"default {source}")
    parser.add_argument("--to", dest="target", default=str(target), metavar="VERSION", help=f"default {target}")
    parsed = parser.parse_args(arguments)
    if parsed.minutes < 1:
        parser.error(f"--minutes {parsed.minutes} is less than one window")
    return WatchingOptions(
        minutes=parsed.minutes, source=parse_release(parsed.source), target=parse_release(parsed.target)
    )


def _measure(options: WatchingOptions, bench: Bench) -> BenchmarkResult:
    java = find_java()
    machine = bench.describe_machine(software=f"Kafka {options.source} upgraded to {options.target}", java=java.major)
    files, target, toxiproxy = fetch_release(options.source), fetch_release(options.target), fetch_toxiproxy()
    spec, others = ClusterSpec(release=str(options.source)), {str(options.target): OtherRelease(files=target)}
    cluster = LocalCluster.launch(spec, files, java, toxiproxy, bench.directory / "cluster", others=others)
    try:
        with _watching(cluster, options, bench.directory) as process:
            seen = _watched(process, cluster, options, bench)
    finally:
        cluster.close()
    output = (bench.directory / "watch.log").read_text(encoding="utf-8")
    complete = options.minutes >= MINUTES
    if complete:
        atomic_write(FILE.with_suffix(".svg"), svg(seen.plot().draw(), "Memory and disk of watch"))
    return BenchmarkResult(tables=(table(seen, output),), page=page(seen, output, machine) if complete else None)


@contextmanager
def _watching(cluster: LocalCluster, options: WatchingOptions, place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`watch` as a process of its own, which is interrupted if it is still there at the end."""
    where = ("--bootstrap", cluster.witness_bootstrap, "--kafka", str(options.target))
    command = (sys.executable, "-m", "pytest", "suites/watch", *where, "--for", f"{options.minutes}m", "--seed", "1")
    with (place / "watch.log").open("wb") as log:
        process = subprocess.Popen(
            (*command, "--run-dir", str(place / "run")), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            try:
                process.wait(REPORT_WITHIN_S)
            finally:
                process.kill()


def _watched(process: subprocess.Popen[bytes], cluster: LocalCluster, options: WatchingOptions, bench: Bench) -> Seen:
    """Upgrade the brokers one by one at equal distances, make the levels final, and look until `watch` has ended."""
    seen, began_s = Seen(), time.monotonic()
    acts = [*((f"broker {each} is upgraded", each) for each in cluster.brokers), ("feature levels are final", None)]
    step_s = options.minutes * 60 / (len(acts) + 1)
    while process.poll() is None:
        passed_s = time.monotonic() - began_s
        if passed_s > options.minutes * 60 + REPORT_WITHIN_S:
            raise ContenderError(f"watch had not ended after {passed_s:.0f} s.")
        if acts and passed_s > step_s * (len(seen.acts) + 1):
            text, broker = acts.pop(0)
            bench.say(f"{passed_s / 60:.1f} min: {text}")
            seen.acts.append((passed_s / 60, text))
            _upgrade(cluster, broker, options) if broker is not None else _finalize(cluster, options)
        seen.look(passed_s / 60, memory=resident_bytes(process.pid), disk=_size(bench.directory / "run"))
        time.sleep(LOOK_S)
    if process.returncode != 0:
        tail = (bench.directory / "watch.log").read_text(encoding="utf-8")[-2000:]
        raise ContenderError(f"watch ended with {process.returncode}:\n{tail}")
    return seen


def _upgrade(cluster: LocalCluster, broker: BrokerId, options: WatchingOptions) -> None:
    cluster.stop(broker)
    cluster.install(broker, str(options.target))
    cluster.start(broker)
    await_healthy(cluster, BACK_WITHIN_S, idle=False)


def _finalize(cluster: LocalCluster, options: WatchingOptions) -> None:
    level = features_of(options.target)[METADATA].highest
    definitions = Definitions.load(clients_jar(fetch_release(options.target)))
    with Client(cluster.witness_bootstrap, definitions, client_id="operator") as client:
        if refused := update(client, METADATA, level, LevelChange.UPGRADE):
            raise ContenderError(f"{METADATA} {level} was refused: {refused}")


def _size(directory: Path) -> int:
    """The bytes of the files in a directory."""
    return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file()) if directory.is_dir() else 0


BENCHMARK = Benchmark(
    name="benchmarks.watching",
    description="Watch a rolling upgrade of a cluster, and measure memory and disk of `tox -e watch`.",
    file=FILE,
    options=_options,
    measure=_measure,
)

if __name__ == "__main__":
    BENCHMARK.run_program()
