"""The three contenders: how each is started on a scenario's directory, and where it leaves its findings."""

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

#: The records of one scenario of a night. Nothing is planted in them, because nearly all runs are in order.
SMALL = 100_000
#: From this number of records on, the start of a process no longer decides.
LARGE = 10_000_000
#: Heaps of Spark's driver, which is the whole of a local Spark. Of 4 GiB, the product's workers need a part, and the
#: rest is for Python and the JVM itself.
PRODUCT_HEAP, TEXTBOOK_HEAP = "2g", "3g"
_JVM = "spark.driver.extraJavaOptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The same input for all contenders."""

    directory: RunDirectory
    records: int
    threads: int

    def spark(self) -> dict[str, str]:
        """The product's settings of Spark; all others are those of `verification.spark.session`."""
        return {"spark.master": f"local[{self.threads}]", "spark.driver.memory": PRODUCT_HEAP}

    def textbook_spark(self) -> dict[str, str]:
        """The textbook's settings of Spark: different from the product's where that makes the textbook faster."""
        chosen = {"spark.master": f"local[{self.threads}]", "spark.driver.memory": TEXTBOOK_HEAP}
        if self.records >= LARGE:
            # All records go through the JVM: both compilers, and partitions that fit.
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
        # The class archive is an option of the session unless these settings replace its options.
        settings[_JVM] = " ".join([settings[_JVM], *class_archive.sharing_options()])
    options = [f"{key}={value}" for key, value in settings.items()]
    return _module("benchmarks.judge.textbook", str(setting.directory.root), str(found), *options)


def _duckdb(setting: Setting, found: Path) -> list[str]:
    return _module("benchmarks.judge.duckdb_judge", str(setting.directory.root), str(setting.threads), str(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One formulation. `needs` is the library that it needs; `codes` are its exit codes when it finishes."""

    name: str
    command: Command
    needs: str = "pyspark"
    codes: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a contender; `judged_s` is the product's own measurement, without the start of the process."""

    footprint: Footprint
    judged_s: float | None = field(default=None)


# Its findings are compared with the planted violations, of which there may be none.
PRODUCT = Contender(name="onceproof", command=_product, codes=(ExitCode.VIOLATION, ExitCode.CONFORMANT))
DUCKDB = Contender(name="DuckDB", command=_duckdb, needs="duckdb")
TEXTBOOK = Contender(name="textbook Spark", command=_textbook)
CONTENDERS = (PRODUCT, DUCKDB, TEXTBOOK)


def require(contenders: tuple[Contender, ...]) -> None:
    """Raise ContenderError when a library is not installed: no contender is left out silently."""
    absent = sorted({each.needs for each in contenders if importlib.util.find_spec(each.needs) is None})
    if absent:
        raise ContenderError(
            f"{' and '.join(absent)} cannot be imported; `tox -e bench-verify` installs requirements-bench.txt."
        )


def compare(setting: Setting, place: Path) -> int:
    """The number of rows around examples that DuckDB and the product both showed in their last turns.

    Raises DisagreementError if they differ. Turns of other contenders do not change the files of either.
    """
    ours = log_context.of_judgement(setting.directory)
    log_context.agree(DUCKDB.name, log_context.of_contender(log_context.context_file(_found(place))), ours)
    return len(ours)


def _found(place: Path) -> Path:
    return place / "found.csv"


def perform(contender: Contender, setting: Setting, planted: tuple[FoundViolation, ...], place: Path) -> Turn:
    """Let a contender judge, in a process of its own. Raises ContenderError, and DisagreementError when it is wrong."""
    found = _found(place)
    found.unlink(missing_ok=True)
    if contender is DUCKDB:
        log_context.context_file(found).unlink(missing_ok=True)
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
