"""The command line that all benchmarks share: printed figures, the page, the exit code."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.measuring.bound import Bound
from benchmarks.measuring.command import Bench, Benchmark, BenchmarkResult
from benchmarks.measuring.machine import describe
from fixtures.errors import DiskShortageError, UsageError
from runner.config import OUT
from verification.vocabulary.verdict import ExitCode
from wire.errors import DisconnectedError

RESULT = BenchmarkResult(
    tables=("| a table |",), page="the page\n", bounds=(Bound(text="at most 3", seen=2.0, holds=True),)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeOptions:
    """Whether the run counts as complete."""

    complete: bool


class FakeBenchmark(Benchmark[FakeOptions]):
    """A benchmark with a prepared result."""

    name = "benchmarks.fake"
    description = "A fake."

    def __init__(self, outcome: BenchmarkResult | Exception) -> None:
        self.outcome = outcome
        self.directory: Path | None = None

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """One option."""
        parser.add_argument("--records", type=int, default=9)

    def options(self, parsed: argparse.Namespace, parser: argparse.ArgumentParser) -> FakeOptions:
        """Complete from nine records on."""
        if parsed.records < 1:
            parser.error("--records must be at least 1")
        return FakeOptions(complete=parsed.records >= 9)

    def measure(self, options: FakeOptions, bench: Bench) -> BenchmarkResult:
        """Return the prepared result, or raise the prepared error."""
        assert bench.directory.is_dir()
        self.directory = bench.directory
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page of the fake benchmark, in a directory that counts as the checkout."""
    monkeypatch.setattr("benchmarks.measuring.command.ROOT", tmp_path)
    monkeypatch.setattr(FakeBenchmark, "page", tmp_path / "figures.md", raising=False)
    return tmp_path / "figures.md"


def test_a_complete_run_writes_its_page(target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables come first, then bounds, then the name of the page. The scratch directory is gone."""
    benchmark = FakeBenchmark(RESULT)
    assert benchmark.main([]) == ExitCode.CONFORMANT
    assert target.read_text(encoding="utf-8") == "the page\n"
    printed = "\n| a table |\nholds: at most 3; seen 2.00\nwritten: figures.md\n"
    assert capsys.readouterr().out == printed
    assert benchmark.directory is not None
    assert benchmark.directory.parent == OUT
    assert not benchmark.directory.exists()


def test_a_smaller_run_leaves_the_page_as_it_is(target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints its figures, and that it does not write the page."""
    target.write_text("figures", encoding="utf-8")
    assert FakeBenchmark(RESULT).main(["--records", "8"]) == ExitCode.CONFORMANT
    assert target.read_text(encoding="utf-8") == "figures"
    assert capsys.readouterr().out.endswith("figures.md is only written by a complete run\n")


def test_a_run_with_an_unmeasured_part_writes_no_page(target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of the environment."""
    outcome = replace(RESULT, unmeasured=("starting: no broker",))
    assert FakeBenchmark(outcome).main([]) == ExitCode.ENVIRONMENT
    assert not target.exists()
    assert capsys.readouterr().out.endswith("not measured: starting: no broker\n")


def test_a_wrong_result_is_written_and_has_its_exit_code(target: Path) -> None:
    """The score of a judge that made a mistake is still a score."""
    assert FakeBenchmark(replace(RESULT, code=ExitCode.ENVIRONMENT)).main([]) == ExitCode.ENVIRONMENT
    assert target.exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("No runs."), ExitCode.USAGE),
        (DiskShortageError("The disk is full."), ExitCode.ENVIRONMENT),
        (DisconnectedError("broker 1 hung up"), ExitCode.ENVIRONMENT),
    ],
)
@pytest.mark.usefixtures("target")
def test_an_error_is_one_line_and_its_exit_code(
    error: Exception, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code is never that of a violation."""
    assert FakeBenchmark(error).main([]) == code
    assert capsys.readouterr().err == f"{error}\n"


def test_bad_options_end_with_4(capsys: pytest.CaptureFixture[str]) -> None:
    """One line and the usage code, before anything is measured."""
    with pytest.raises(SystemExit) as left:
        FakeBenchmark(RESULT).main(["--records", "0"])
    assert left.value.code == ExitCode.USAGE
    assert capsys.readouterr().err == "python -m benchmarks.fake: --records must be at least 1\n"


def test_the_machine_is_described_in_two_lines() -> None:
    """What was measured, then where."""
    software, machine = describe(software="Kafka 4.4.0", java=21).lines()
    assert software.startswith("Kafka 4.4.0, Java 21, commit ")
    assert "processors (" in machine
    assert machine.endswith(" before the start")
