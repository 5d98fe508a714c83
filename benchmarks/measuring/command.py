"""The command line that all benchmarks share: options, a scratch directory, errors, printed figures, the page.

A benchmark adds its options and measures. It returns the text of its page, which only a complete run writes.
Exit codes: 0; 4 for bad options; 5 when something could not be measured, or was measured and is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, NoReturn, Protocol, TypeVar

from benchmarks.measuring.bound import Bound
from benchmarks.measuring.machine import MachineDescription, describe
from fixtures.clusters.locks.releases import Release
from fixtures.errors import OnceproofError
from runner.config import OUT, ROOT, RunConfig, Runtime, unreported
from runner.console import Console
from runner.environment import Environment, prepare
from runner.errors import ENVIRONMENT_ERRORS
from verification.command_line import Parser, end_with
from verification.vocabulary.verdict import ExitCode


class Options(Protocol):
    """The options of a benchmark."""

    @property
    def complete(self) -> bool:
        """Whether the figures may be published in the documentation."""
        ...


Chosen = TypeVar("Chosen", bound=Options)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """Tables and bounds to print, the text of the page, and the exit code; parts that are `unmeasured` allow no page."""

    tables: tuple[str, ...]
    page: str
    bounds: Sequence[Bound] = ()
    unmeasured: Sequence[str] = ()
    code: ExitCode = ExitCode.CONFORMANT


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The terminal and the scratch directory of one run of a benchmark."""

    console: Console
    directory: Path

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.say(text)

    def describe_machine(self, *, software: str, java: int) -> MachineDescription:
        """Describe the machine, and print the description."""
        machine = describe(software=software, java=java)
        for line in machine.lines():
            self.say(line)
        return machine

    def prepare(self, release: Release) -> tuple[RunConfig, Environment, MachineDescription]:
        """Fetch a release and prepare to run its brokers as processes of this machine. Raises fixtures.errors."""
        config = unreported(release, self.directory, runtime=Runtime.LOCAL)
        environment = prepare(config, self.console)
        machine = self.describe_machine(software=f"Kafka {release.version}", java=environment.java.major)
        return config, environment, machine


class Benchmark(ABC, Generic[Chosen]):
    """One benchmark as a program.

    `name` is its module, `description` the first line of its help, `page` the file of its figures, and `kept` says what
    an interruption leaves as it was.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    page: ClassVar[Path]
    kept: ClassVar[str] = "the page stays as it was"

    @abstractmethod
    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options to the command line."""

    @abstractmethod
    def options(self, parsed: argparse.Namespace, parser: argparse.ArgumentParser) -> Chosen:
        """The options in use. Calls `parser.error`, or raises UsageError, for bad ones."""

    @abstractmethod
    def measure(self, options: Chosen, bench: Bench) -> BenchmarkResult:
        """Measure everything. Raises OnceproofError, or any other of ENVIRONMENT_ERRORS."""

    def target(self, options: Chosen) -> Path | None:
        """The file that a run with these options writes; None when it only prints."""
        return self.page if options.complete else None

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measure, print and publish; the exit code."""
        parser = Parser(prog=f"python -m {self.name}", description=self.description)
        self.add_options(parser)
        parsed = parser.parse_args(arguments)
        console = Console(out=sys.stdout, live=sys.stdout.isatty(), width=shutil.get_terminal_size().columns)
        try:
            options = self.options(parsed, parser)
            OUT.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{self.name}-", dir=OUT, ignore_cleanup_errors=True) as directory:
                return self._run(options, Bench(console=console, directory=Path(directory)))
        except ENVIRONMENT_ERRORS as error:
            print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
            return error.exit_code if isinstance(error, OnceproofError) else ExitCode.ENVIRONMENT

    def run_program(self) -> NoReturn:
        """Run as a program and leave with the exit code, also after an interruption."""
        end_with(self.main, program=f"python -m {self.name}", kept=self.kept)

    def _run(self, options: Chosen, bench: Bench) -> ExitCode:
        result = self.measure(options, bench)
        for table in result.tables:
            bench.say("")
            bench.say(table)
        for bound in result.bounds:
            bench.say(str(bound))
        for problem in result.unmeasured:
            bench.say(f"not measured: {problem}")
        if result.unmeasured:
            return ExitCode.ENVIRONMENT
        if target := self.target(options):
            target.write_text(result.page, encoding="utf-8")
            bench.say(f"written: {_shown(target)}")
        else:
            bench.say(f"{_shown(self.page)} is only written by a complete run")
        return result.code


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
