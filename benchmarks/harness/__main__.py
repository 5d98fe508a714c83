"""`tox -e bench`: measure what this suite costs, print the ratios, and write `docs/generated/benchmarks.md`.

The file is written only by a complete run: every part, a million records, three pairs. Anything less is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import judging, report, starting, throughput, wire_client
from benchmarks.measuring.publishing import publish
from benchmarks.measuring.ratio import Ratio
from benchmarks.measuring.table import look, page, render
from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.locks.releases import default_release, parse_release
from fixtures.errors import OnceproofError
from runner.config import OUT, ROOT, RunConfig, Runtime, unreported
from runner.console import Console
from runner.environment import Environment, prepare
from runner.errors import ENVIRONMENT_ERRORS
from runner.resources import RunResources
from verification.command_line import Parser, end_with
from verification.vocabulary.verdict import ExitCode

PAGE = ROOT / "docs" / "generated" / "benchmarks.md"
PARTS = ("starting", "speaking", "judging", "throughput", "reporting")
#: Fewer records are judged in less time than Spark takes to plan, and say nothing about a rate.
RECORDS = 1_000_000
PAIRS = 5
PAIRS_LEAST = 3
#: Spark's own default of 1 GiB does not hold the judgement of 10^6 records; what the user's configuration says wins.
SPARK_MEMORY = ("SPARK_DRIVER_MEMORY", "3g")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for."""

    parts: tuple[str, ...]
    records: int
    pairs: int

    @property
    def complete(self) -> bool:
        """Whether the figures may stand in the documentation."""
        return self.parts == PARTS and self.records >= RECORDS and self.pairs >= PAIRS_LEAST


class Bench:
    """The parts of one run and what they share; the laboratory opens when the first part needs it."""

    def __init__(self, request: Request, config: RunConfig, environment: Environment, console: Console) -> None:
        self.request = request
        self.config = config
        self.environment = environment
        self.console = console
        self.problems: list[str] = []
        self._stack = ExitStack()
        self._laboratory: RunResources | None = None

    def measure(self) -> list[Ratio]:
        """Every ratio that could be had; what could not is said and kept in `problems`."""
        parts: dict[str, Callable[[], tuple[Ratio, ...]]] = {
            "starting": self._starting,
            "speaking": self._speaking,
            "judging": lambda: judging.measure(self._open(), self.console.say),
            "throughput": lambda: throughput.measure(self._open(), self.console.say, records=self.request.records),
            "reporting": lambda: report.measure(
                self._open(), self.config.directory / "report", pairs=self.request.pairs, say=self.console.say
            ),
        }
        ratios: list[Ratio] = []
        with self._stack:
            for name in self.request.parts:
                self.console.say(f"{name} …")
                try:
                    ratios += parts[name]()
                except ENVIRONMENT_ERRORS as error:
                    self.problems.append(f"{name}: {error}")
                    self.console.say(self.problems[-1])
        return ratios

    def _starting(self) -> tuple[Ratio, ...]:
        return starting.measure(
            self._runtime, self.config.directory / "starts", pairs=self.request.pairs, say=self.console.say
        )

    def _speaking(self) -> tuple[Ratio, ...]:
        return wire_client.measure(
            self._runtime, self.config.directory / "speaking", pairs=self.request.pairs, say=self.console.say
        )

    @property
    def _runtime(self) -> LocalRuntime:
        assert isinstance(self.environment.brokers, LocalRuntime), (
            "the configuration asks for processes of this machine"
        )
        return self.environment.brokers

    def _open(self) -> RunResources:
        if self._laboratory is None:
            self._laboratory = self._stack.enter_context(
                RunResources(self.config, self.console, environment=self.environment)
            )
        return self._laboratory


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="python -m benchmarks.harness", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kafka", metavar="VERSION", default=default_release().version, help="Kafka release")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only; repeatable")
    parser.add_argument(
        "--records", type=int, default=RECORDS, metavar="N", help=f"records to judge (default {RECORDS})"
    )
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=f"rounds of each kind (default {PAIRS})")
    options = parser.parse_args(arguments)
    if options.pairs < PAIRS_LEAST:
        parser.error(f"--pairs {options.pairs} is too few for a median; at least {PAIRS_LEAST}")
    if options.records < 1:
        parser.error(f"--records {options.records} leaves nothing to judge")
    return options


def run(options: argparse.Namespace, console: Console, directory: Path) -> ExitCode:
    """Measure in `directory` and print; the exit code. Raises what preparing the machine raises."""
    chosen = options.only or PARTS
    request = Request(
        parts=tuple(part for part in PARTS if part in chosen), records=options.records, pairs=options.pairs
    )
    config = unreported(parse_release(options.kafka), directory, runtime=Runtime.LOCAL)
    environment = prepare(config, console)
    circumstances = look(release=config.release.version, java=environment.java.major)
    for line in circumstances.lines():
        console.say(line)
    bench = Bench(request, config, environment, console)
    ratios = bench.measure()
    console.say("")
    console.say(render(ratios) if ratios else "no ratio could be measured")
    for problem in bench.problems:
        console.say(f"not measured: {problem}")
    if bench.problems:
        return ExitCode.ENVIRONMENT
    publish(PAGE, page(ratios, circumstances) if request.complete else None, console.say)
    return ExitCode.CONFORMANT


def main(arguments: list[str] | None = None) -> int:
    """Measure; exit code 0, 4 for bad options, 5 when something could not be measured."""
    options = _options(arguments)
    os.environ.setdefault(*SPARK_MEMORY)
    console = Console(out=sys.stdout, live=sys.stdout.isatty(), width=shutil.get_terminal_size().columns)
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".bench-", dir=OUT, ignore_cleanup_errors=True) as directory:
            return run(options, console, Path(directory))
    except OnceproofError as error:
        console.say(str(error))
        return error.exit_code


if __name__ == "__main__":
    end_with(main, program="python -m benchmarks.harness", kept="nothing is left running, and nothing was written")
