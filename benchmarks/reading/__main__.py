"""`tox -e bench-reading`: measure how fast the sources read one real log into Spark, and write `docs/generated/reading.md`.

A single broker of this machine holds what a real producer wrote. One session reads it by `wire`, by Spark's own connector
and by confluent-kafka, by turns. The file is written only by a complete run: 10^7 records, three turns. Anything less is
printed. Sources that do not read the same end the run with code 5; a bound that does not hold is printed and written.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.publishing import publish
from benchmarks.measuring.ratio import Ratio
from benchmarks.measuring.table import look, render
from benchmarks.reading.figures import bounds, page, ratios
from benchmarks.reading.filling import fill
from benchmarks.reading.reading import Log, by_turns
from chaos.cluster import Site
from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.locks.releases import default_release
from fixtures.clusters.locks.spark_connector import connector_jars
from fixtures.clusters.spec import ClusterSpec
from fixtures.errors import OnceproofError
from runner.config import OUT, ROOT, Runtime, unreported
from runner.console import Console
from runner.environment import Environment, prepare
from runner.errors import ENVIRONMENT_ERRORS
from verification.command_line import Parser, end_with
from verification.spark.session import ARROW_OPTIONS
from verification.vocabulary.verdict import ExitCode
from wire.client import Client
from wire.messages import Definitions

PAGE = ROOT / "docs" / "generated" / "reading.md"
RECORDS, TURNS = 10_000_000, 3
#: Whoever reads so much lets the JVM optimise; what a session is quick to start with is for small jobs.
SETTINGS = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": f"-Xss4m {ARROW_OPTIONS}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for."""

    records: int
    turns: int

    @property
    def complete(self) -> bool:
        """Whether the figures may stand in the documentation."""
        return self.records >= RECORDS and self.turns >= TURNS


def _options(arguments: list[str] | None) -> Request:
    parser = Parser(prog="python -m benchmarks.reading", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--records", type=int, default=RECORDS, metavar="N", help=f"records to read (default {RECORDS})"
    )
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help=f"turns of each (default {TURNS})")
    options = parser.parse_args(arguments)
    if options.records < 1 or options.turns < 1:
        parser.error("records and turns are at least 1")
    return Request(records=options.records, turns=options.turns)


def measure(request: Request, environment: Environment, place: Path, say: Callable[[str], None]) -> tuple[Ratio, ...]:
    """Write and read; raises UnequalError, and what a cluster, a reader or Spark raises."""
    from verification.spark.session import start
    from verification.spark.worker_code import ship

    jars = connector_jars()
    brokers = environment.brokers
    assert isinstance(brokers, LocalRuntime), "the configuration asks for processes of this machine"
    release = str(brokers.files.release)
    spec = ClusterSpec(release=release, brokers=1, replicas=1, min_in_sync=1, sites=(Site("app"),))
    cluster = brokers.launch(spec, place / "broker", keep_data=False)
    try:
        definitions = environment.witness_definitions
        with Client(cluster.witness_bootstrap, Definitions.load(*definitions), client_id="bench") as asking:
            ends = fill(asking, cluster.witness_bootstrap, request.records)
        say(f"{sum(ends.values())} offsets written")
        cores = len(os.sched_getaffinity(0))
        settings = {**SETTINGS, "spark.master": f"local[{cores}]", "spark.jars": ",".join(map(str, jars))}
        spark = start(java_home=environment.spark_java_home, options=settings)
        try:
            ship(spark)
            log = Log(bootstrap=cluster.witness_bootstrap, definitions=definitions, ends=ends)
            took = by_turns(spark, log, tasks=cores, turns=request.turns, say=say)
        finally:
            spark.stop()
    finally:
        cluster.close()
    return ratios(request.records, took)


def run(request: Request, console: Console, place: Path) -> ExitCode:
    """Measure everything and say it; the exit code. Raises what preparing and measuring raise."""
    config = unreported(default_release(), place, runtime=Runtime.LOCAL)
    environment = prepare(config, console)
    here = look(release=config.release.version, java=environment.java.major)
    for line in here.lines():
        console.say(line)
    found = measure(request, environment, place, console.say)
    console.say("")
    console.say(render(found))
    for bound in bounds(found):
        console.say(str(bound))
    publish(PAGE, page(found, here) if request.complete else None, console.say)
    return ExitCode.CONFORMANT


def main(arguments: list[str] | None = None) -> int:
    """Measure; exit code 0, 4 for bad options, 5 when something could not be measured."""
    request = _options(arguments)
    console = Console(out=sys.stdout, live=sys.stdout.isatty(), width=shutil.get_terminal_size().columns)
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".bench-reading-", dir=OUT, ignore_cleanup_errors=True) as place:
            return run(request, console, Path(place))
    except OnceproofError as error:
        console.say(str(error))
        return error.exit_code
    except ENVIRONMENT_ERRORS as error:
        console.say(str(error))
        return ExitCode.ENVIRONMENT


if __name__ == "__main__":
    end_with(main, program="python -m benchmarks.reading", kept="the page stays as it was")
