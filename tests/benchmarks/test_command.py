"""The command line that all benchmarks share: printed figures, the page, the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.measuring.bound import Bound
from benchmarks.measuring.command import Bench, Benchmark, BenchmarkResult
from benchmarks.measuring.machine import describe
from fixtures.errors import DiskShortageError, UsageError
from runner.config import OUT
from verification.command_line import Parser
from verification.vocabulary.verdict import ExitCode
from wire.errors import DisconnectedError

RESULT = BenchmarkResult(
    tables=("| a table |",), page="the page\n", bounds=(Bound(text="at most 3", seen=2.0, holds=True),)
)


def _options(parser: Parser, arguments: Sequence[str] | None) -> bool:
    """Whether the run is complete: from nine records on."""
    parser.add_argument("--records", type=int, default=9)
    records: int = parser.parse_args(arguments).records
    if records < 1:
        parser.error("--records must be at least 1")
    return records >= 9


def benchmark(file: Path, outcome: BenchmarkResult | Exception) -> Benchmark[bool]:
    """A benchmark with a prepared result or error."""

    def measure(complete: bool, bench: Bench) -> BenchmarkResult:
        assert bench.directory.parent == OUT
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if complete else replace(outcome, page=None)

    return Benchmark(name="benchmarks.fake", description="A fake.", file=file, options=_options, measure=measure)


def test_a_complete_run_writes_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables come first, then bounds, then the name of the page. The scratch directory is gone."""
    target = tmp_path / "figures.md"
    assert benchmark(target, RESULT).main([]) == ExitCode.CONFORMANT
    assert target.read_text(encoding="utf-8") == "the page\n"
    printed = f"\n| a table |\nholds: at most 3; seen 2.00\nwritten: {target}\n"
    assert capsys.readouterr().out == printed
    assert not list(OUT.glob(".benchmarks.fake-*"))


def test_a_smaller_run_leaves_the_page_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints its figures, and that it does not write the page."""
    target = tmp_path / "figures.md"
    target.write_text("figures", encoding="utf-8")
    assert benchmark(target, RESULT).main(["--records", "8"]) == ExitCode.CONFORMANT
    assert target.read_text(encoding="utf-8") == "figures"
    assert capsys.readouterr().out.endswith(f"{target} is only written by a complete run\n")


def test_a_run_with_an_unmeasured_part_writes_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of the environment."""
    target = tmp_path / "figures.md"
    outcome = replace(RESULT, unmeasured=("starting: no broker",))
    assert benchmark(target, outcome).main([]) == ExitCode.ENVIRONMENT
    assert not target.exists()
    assert capsys.readouterr().out.endswith("not measured: starting: no broker\n")


def test_a_wrong_result_is_written_and_has_its_exit_code(tmp_path: Path) -> None:
    """The score of a judge that made a mistake is still a score."""
    target = tmp_path / "figures.md"
    assert benchmark(target, replace(RESULT, code=ExitCode.ENVIRONMENT)).main([]) == ExitCode.ENVIRONMENT
    assert target.exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("No runs."), ExitCode.USAGE),
        (DiskShortageError("The disk is full."), ExitCode.ENVIRONMENT),
        (DisconnectedError("broker 1 hung up"), ExitCode.ENVIRONMENT),
    ],
)
def test_an_error_is_one_line_and_its_exit_code(
    error: Exception, code: ExitCode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code is never that of a violation."""
    assert benchmark(tmp_path / "figures.md", error).main([]) == code
    assert capsys.readouterr().err == f"{error}\n"


def test_bad_options_end_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line and the usage code, before anything is measured."""
    with pytest.raises(SystemExit) as left:
        benchmark(tmp_path / "figures.md", RESULT).main(["--records", "0"])
    assert left.value.code == ExitCode.USAGE
    assert capsys.readouterr().err == "python -m benchmarks.fake: --records must be at least 1\n"


def test_the_machine_is_described_in_two_lines() -> None:
    """The measured software, then the machine."""
    software, machine = describe(software="Kafka 4.4.0", java=21)
    assert software.startswith("Kafka 4.4.0, Java 21, commit ")
    assert "processors (" in machine
    assert machine.endswith(" before the start")
