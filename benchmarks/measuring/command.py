"""The command line that all benchmarks share: options, a scratch directory, errors, printed figures, the page.

Exit codes: 0; 4 for bad options; 5 when something could not be measured, or was measured and is wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

from benchmarks.measuring.bound import Bound
from benchmarks.measuring.machine import describe
from fixtures.clusters.locks.releases import Release
from fixtures.errors import OnceproofError
from runner.config import OUT, ROOT, RunConfig, Runtime, unreported
from runner.console import Console
from runner.environment import Environment, prepare
from runner.errors import ENVIRONMENT_ERRORS
from verification.command_line import Parser, end_with
from verification.vocabulary.verdict import ExitCode

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """Tables and bounds to print; the text of the page, None for a run that was not complete; the exit code.

    `unmeasured` names parts that failed; then no page is written. `file` is for another place than the usual one.
    """

    tables: tuple[str, ...]
    page: str | None
    bounds: Sequence[Bound] = ()
    unmeasured: Sequence[str] = ()
    code: ExitCode = ExitCode.CONFORMANT
    file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The terminal and the scratch directory of one run of a benchmark."""

    console: Console
    directory: Path

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.say(text)

    def describe_machine(self, *, software: str, java: int) -> tuple[str, ...]:
        """Describe the machine, and print the description."""
        lines = describe(software=software, java=java)
        for line in lines:
            self.say(line)
        return lines

    def prepare(self, release: Release) -> tuple[RunConfig, Environment, tuple[str, ...]]:
        """Fetch a release and prepare to run its brokers as processes of this machine. Raises fixtures.errors."""
        config = unreported(release, self.directory, runtime=Runtime.LOCAL)
        environment = prepare(config, self.console)
        assert environment.java is not None, "brokers are processes of this machine"
        machine = self.describe_machine(software=f"Kafka {release.version}", java=environment.java.major)
        return config, environment, machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(Generic[Options]):
    """One benchmark as a program: the module `name`, the `file` of its page, how it reads options and how it measures.

    `options` calls `parser.error` for bad ones. `kept` tells the user which files an interruption leaves unchanged.
    Either function may raise ENVIRONMENT_ERRORS.
    """

    name: str
    description: str
    file: Path
    options: Callable[[Parser, Sequence[str] | None], Options]
    measure: Callable[[Options, Bench], BenchmarkResult]
    kept: str = "the page stays as it was"

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measure, print and publish; the exit code."""
        console = Console(out=sys.stdout, live=sys.stdout.isatty(), width=shutil.get_terminal_size().columns)
        try:
            options = self.options(Parser(prog=f"python -m {self.name}", description=self.description), arguments)
            OUT.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{self.name}-", dir=OUT, ignore_cleanup_errors=True) as directory:
                bench = Bench(console=console, directory=Path(directory))
                return self._publish(self.measure(options, bench), bench)
        except ENVIRONMENT_ERRORS as error:
            print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
            return error.exit_code if isinstance(error, OnceproofError) else ExitCode.ENVIRONMENT

    def run_program(self) -> NoReturn:
        """Run as a program and leave with the exit code, also after an interruption."""
        end_with(self.main, program=f"python -m {self.name}", kept=self.kept)

    def _publish(self, result: BenchmarkResult, bench: Bench) -> ExitCode:
        for table in result.tables:
            bench.say(f"\n{table}")
        for bound in result.bounds:
            bench.say(str(bound))
        for problem in result.unmeasured:
            bench.say(f"not measured: {problem}")
        if result.unmeasured:
            return ExitCode.ENVIRONMENT
        file = result.file or self.file
        shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        if result.page is None:
            bench.say(f"{shown} is only written by a complete run")
        else:
            file.write_text(result.page, encoding="utf-8")
            bench.say(f"written: {shown}")
        return result.code
