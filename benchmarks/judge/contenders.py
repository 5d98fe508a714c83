"""The three parties: how each is started on a scenario's directory, and where it leaves what it found."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.judge import findings, log_context
from benchmarks.judge.findings import FoundViolation, agree
from benchmarks.measuring.errors import ContenderError
from benchmarks.measuring.footprint import Footprint, measured
from runner.config import ROOT
from verification.evidence import verdict_file
from verification.evidence.run_directory import RunDirectory
from verification.spark import class_archive
from verification.vocabulary.experiment import read as read_experiment
from verification.vocabulary.verdict import ExitCode

#: So few records are those of one scenario of a night. Nothing is planted in them, as nothing is wrong in nearly all runs.
SMALL = 100_000
#: From so many records on, what a process costs before it has read anything no longer decides.
LARGE = 10_000_000
#: Heaps of Spark's driver, which is all there is of a local Spark. Of 4 GiB the product's workers have some, and all else
#: is for Python and the JVM itself.
PRODUCT_HEAP, TEXTBOOK_HEAP = "2g", "3g"
_JVM = "spark.driver.extraJavaOptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all parties are given alike."""

    directory: RunDirectory
    records: int
    threads: int

    def spark(self) -> dict[str, str]:
        """The product's settings of Spark; those of `verification.spark.session` else."""
        return {"spark.master": f"local[{self.threads}]", "spark.driver.memory": PRODUCT_HEAP}

    def textbook_spark(self) -> dict[str, str]:
        """The textbook's settings of Spark: what does it good where its own way needs another than the product's."""
        chosen = {"spark.master": f"local[{self.threads}]", "spark.driver.memory": TEXTBOOK_HEAP}
        if self.records >= LARGE:
            # All records go through code of the JVM: both compilers, partitions that fit.
            chosen |= {
                _JVM: "-XX:+UseParallelGC -Xss4m -XX:ReservedCodeCacheSize=256m",
                "spark.sql.adaptive.enabled": "true",
                "spark.sql.shuffle.partitions": str(max(8 * self.threads, self.records // 1_000_000)),
            }
        return chosen


Command = Callable[[Setting, Path], list[str]]


def _module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def _product(setting: Setting, _: Path) -> list[str]:
    options = [word for key, value in setting.spark().items() for word in ("--spark", f"{key}={value}")]
    return _module("verification", str(setting.directory.root), *options)


def _textbook(setting: Setting, found: Path) -> list[str]:
    settings = setting.textbook_spark()
    if _JVM in settings:
        # The class archive comes with the session's own options otherwise.
        settings[_JVM] = " ".join([settings[_JVM], *class_archive.sharing_options()])
    options = [f"{key}={value}" for key, value in settings.items()]
    return _module("benchmarks.judge.textbook", str(setting.directory.root), str(found), *options)


def _duckdb(setting: Setting, found: Path) -> list[str]:
    return _module("benchmarks.judge.duckdb_judge", str(setting.directory.root), str(setting.threads), str(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One formulation. `needs` is a library that it alone needs; `codes` are the exit codes of coming to an end."""

    name: str
    command: Command
    needs: str = "pyspark"
    codes: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """How one party fared; `judged_s` is the product's own count of its seconds without its start."""

    footprint: Footprint
    judged_s: float | None = field(default=None)


# What it found is held against what was planted, which may be nothing.
PRODUCT = Contender(name="onceproof", command=_product, codes=(ExitCode.VIOLATION, ExitCode.CONFORMANT))
DUCKDB = Contender(name="DuckDB", command=_duckdb, needs="duckdb")
TEXTBOOK = Contender(name="textbook Spark", command=_textbook)
CONTENDERS = (PRODUCT, DUCKDB, TEXTBOOK)


def require(contenders: tuple[Contender, ...]) -> None:
    """Raise ContenderError when a library is not installed; nobody is left out in silence."""
    absent = sorted({each.needs for each in contenders if importlib.util.find_spec(each.needs) is None})
    if absent:
        raise ContenderError(
            f"{' and '.join(absent)} cannot be imported; `tox -e bench-verify` installs requirements-bench.txt."
        )


def compare(setting: Setting, place: Path) -> int:
    """Hold what DuckDB showed around its examples in its last turn against what the product showed in its own.

    How many rows agree; raises DisagreementError. Neither the product's findings nor DuckDB's are touched by others' turns.
    """
    ours = log_context.of_judgement(setting.directory)
    log_context.agree(DUCKDB.name, log_context.of_party(log_context.beside(_found(place))), ours)
    return len(ours)


def _found(place: Path) -> Path:
    return place / "found.csv"


def perform(contender: Contender, setting: Setting, planted: tuple[FoundViolation, ...], place: Path) -> Turn:
    """Let a party judge, in a process of its own; raises ContenderError, and DisagreementError when it is wrong."""
    found = _found(place)
    found.unlink(missing_ok=True)
    if contender is DUCKDB:
        log_context.beside(found).unlink(missing_ok=True)
    footprint = measured(
        contender.command(setting, found),
        cwd=ROOT,
        log=place / "said.log",
        codes=contender.codes,
    )
    if contender is not PRODUCT:
        agree(contender.name, findings.read(found), planted)
        return Turn(footprint=footprint)
    experiment = read_experiment(setting.directory.experiment)
    agree(contender.name, findings.of_judgement(setting.directory, experiment), planted)
    verdict = verdict_file.read(setting.directory.verdicts)
    if verdict.crashed:
        raise ContenderError(f"{contender.name}: {'; '.join(verdict.crashed)}")
    return Turn(footprint=footprint, judged_s=verdict.judged_s)
