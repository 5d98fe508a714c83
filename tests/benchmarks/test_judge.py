"""The generated evidence that judges are measured on, and how they are measured."""

from __future__ import annotations

import configparser
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.judge.__main__ import LARGEST, plan_of
from benchmarks.judge.contenders import (
    CONTENDERS,
    DUCKDB,
    PRODUCT,
    SMALL,
    TEXTBOOK,
    Contender,
    Setting,
    Turn,
    require,
)
from benchmarks.judge.errors import EvidenceSizeError
from benchmarks.judge.figures import Size, bounds, page, ratios, seen
from benchmarks.judge.findings import FoundViolation, agree, kinds, read
from benchmarks.judge.generator.block import NUMBER_MAX
from benchmarks.judge.generator.evidence import Made, make
from benchmarks.judge.generator.operations import TURN_NS
from benchmarks.judge.generator.plan import FEEDERS, EvidencePlan
from benchmarks.measuring.errors import ContenderError
from benchmarks.measuring.footprint import Footprint, measured
from benchmarks.measuring.ratio import Unit
from tests.support.paths import ROOT
from verification.evidence.rows import FORGOTTEN_NS, all_rows
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

#: Anomalies that need live observers, a claim of survival, the coordinators' log, an upgrade, or a pipeline of others.
NOT_SHOWN = {
    Anomaly.EARLY_READ,
    Anomaly.STRANDED_PRODUCER,
    Anomaly.ILLEGAL_TRANSITION,
    Anomaly.LOST_NODE,
    Anomaly.NO_PROGRESS,
    Anomaly.SILENT_METRIC,
    Anomaly.STATE_DIVERGENCE,
}


#: Feeders' numbers that begin here pass the highest number and continue with 0.
NEARLY_ROUND = NUMBER_MAX - 30


def small(*, records: int = 8_000, seed: int = 1, rounds: int = 2, numbers_from: int = 0) -> EvidencePlan:
    """A plan of three blocks, so that state is carried from one to the next."""
    block = max(1, records * 3 // 8)
    return EvidencePlan(
        records=records,
        seed=seed,
        rounds=rounds,
        per_transaction=20,
        block_records=block,
        numbers_from=numbers_from,
    )


def made(path: Path, plan: EvidencePlan) -> tuple[RunDirectory, Made]:
    """Evidence of a plan."""
    directory = RunDirectory(path)
    return directory, make(directory, plan)


def contents(directory: RunDirectory) -> dict[str, bytes]:
    """Every file of a directory."""
    files = (path for path in directory.root.rglob("*") if path.is_file())
    return {str(path.relative_to(directory.root)): path.read_bytes() for path in files}


def test_equal_plans_make_equal_evidence(tmp_path: Path) -> None:
    """The same seed makes the same bytes and the same plants; another seed makes neither."""
    one, first = made(tmp_path / "one", small(records=6_000, rounds=1))
    same, again = made(tmp_path / "same", small(records=6_000, rounds=1))
    other, else_ = made(tmp_path / "other", small(records=6_000, rounds=1, seed=2))
    assert contents(one) == contents(same)
    assert first == again
    assert contents(one)["log/part-0-0.parquet"] != contents(other)["log/part-0-0.parquet"]
    assert first.planted != else_.planted


def of_violations(violations: Iterable[RawViolation]) -> list[FoundViolation]:
    """The violations that a judge has in memory, in these columns."""
    return [
        FoundViolation(
            str(each.anomaly),
            each.process,
            each.operation,
            each.index,
            each.topic_index,
            each.partition,
            each.offset,
            each.observer,
        )
        for each in violations
    ]


@pytest.mark.parametrize(("seed", "numbers_from"), [(1, 0), (2, NEARLY_ROUND)])
def test_what_is_planted_is_there_and_nothing_else(tmp_path: Path, seed: int, numbers_from: int) -> None:
    """The reference judge, written from the definitions, finds exactly the planted violations."""
    directory, result = made(tmp_path / "run", small(seed=seed, numbers_from=numbers_from))
    agree("the reference", of_violations(judge_rows(all_rows(read_run(directory)))), result.planted)
    assert set(kinds(result.planted)) == set(Anomaly) - NOT_SHOWN
    assert 0.9 * 8_000 < result.records < 1.1 * 8_000


@pytest.mark.parametrize(("seed", "numbers_from"), [(1, 0), (2, NEARLY_ROUND)])
def test_the_yardstick_finds_what_is_planted(tmp_path: Path, seed: int, numbers_from: int) -> None:
    """DuckDB, if it is installed, finds them on small evidence as well."""
    pytest.importorskip("duckdb", reason="requirements-bench.txt is not installed")
    directory, result = made(tmp_path / "run", small(seed=seed, numbers_from=numbers_from))
    command = DUCKDB.command(Setting(directory=directory, records=8_000, threads=2), tmp_path / "found.csv")
    subprocess.run(command, check=True, cwd=ROOT, timeout=120)
    agree(DUCKDB.name, read(tmp_path / "found.csv"), result.planted)


def test_a_broken_sequence_is_found_alone_and_among_others(tmp_path: Path) -> None:
    """Each round breaks numbers three times: twice where nothing else is wrong, and once among writers' records."""
    directory, result = made(tmp_path / "run", small())
    attributed = attribute(judge_rows(all_rows(read_run(directory))))
    broken = [each for each in result.planted if each.anomaly == Anomaly.BROKEN_SEQUENCE]
    assert len(broken) == 3 * 2
    alone = of_violations(attributed.primary[Anomaly.BROKEN_SEQUENCE])
    assert {each for each in broken if each.process in FEEDERS} <= set(alone)
    assert len({each for each in broken if each.process in FEEDERS}) == 2 * 2


def test_where_nothing_is_planted_nothing_is_wrong(tmp_path: Path) -> None:
    """Also at the end: no transaction is left open, no group lags, and every partition is stable."""
    directory, result = made(tmp_path / "run", small(rounds=0))
    evidence = read_run(directory)
    assert (result.planted, judge_rows(all_rows(evidence))) == ((), [])
    assert evidence.captures.open_producers == ()
    assert all(end.last_stable_offset == end.high_watermark for end in evidence.captures.ends)
    assert 0.9 * 8_000 < result.records < 1.1 * 8_000
    assert plan_of(SMALL, 1).rounds == 0 < plan_of(SMALL + 1, 1).rounds


def test_blocks_hold_no_more_than_they_may() -> None:
    """For any number of records, a block fits into memory, and every slot is in some block."""
    for records in (100_000, 1_000_000, 100_000_000):
        plan = EvidencePlan(records=records, seed=1)
        blocks = plan.blocks()
        assert max(slots for slots, _ in blocks) * plan.per_slot < 1.6 * plan.block_records
        assert sum(slots for slots, _ in blocks) * plan.per_slot == pytest.approx(records, rel=0.2)
        assert sum(rounds for _, rounds in blocks) == plan.rounds


def test_no_history_is_so_long_that_brokers_forget() -> None:
    """In a run of a day, producers' numbers are not judged, so broken numbers could not be planted."""
    slots = sum(slots for slots, _ in plan_of(LARGEST, 1).blocks())
    assert 2 * (slots + 2) * TURN_NS < FORGOTTEN_NS / 4


def test_plants_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Plants that would meet each other are refused before anything is written."""
    with pytest.raises(EvidenceSizeError, match="room for"):
        make(RunDirectory(tmp_path / "run"), EvidencePlan(records=5_000, seed=1, rounds=5))
    assert list(tmp_path.iterdir()) == []


def ended(pid: int) -> bool:
    """Whether a process has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


#: Starts a copy of itself with the remaining arguments, each a number of bytes to hold. The last copy writes a file.
GROWING = """import os, subprocess, sys, time
held, *others = sys.argv[1:]
held = b"x" * int(held)
if others:
    subprocess.Popen([sys.executable, __file__, *others])
else:
    open("last", "w").write(str(os.getpid()))
while not os.path.exists("last"):
    time.sleep(0.05)
time.sleep(0.5 if len(others) == 2 else 60)"""


def grown(place: Path, child: int, grandchild: int) -> Footprint:
    """The footprint of a command whose child and grandchild hold so many bytes and outlive it."""
    (place / "growing.py").write_text(GROWING, encoding="utf-8")
    command = [sys.executable, "growing.py", "0", str(child), str(grandchild)]
    return measured(command, cwd=place, log=place / "log")


def test_a_footprint_is_of_all_that_a_command_starts(tmp_path: Path) -> None:
    """Memory of a child counts, and a child that outlives the command is ended with it."""
    took = grown(tmp_path, 60_000_000, 0)
    assert took.peak_bytes > took.driver_bytes > 60_000_000
    assert took.seconds > 0.5
    assert took.processor_s > 0
    assert ended(int((tmp_path / "last").read_text()))


def test_a_driver_is_the_command_and_its_children(tmp_path: Path) -> None:
    """Memory of grandchildren, such as workers, is not the driver's."""
    took = grown(tmp_path, 0, 200_000_000)
    assert took.peak_bytes > 200_000_000 > took.driver_bytes > 0


def test_a_contender_that_fails_is_an_error_with_its_output(tmp_path: Path) -> None:
    """A contender that fails has no time; the error shows its output."""
    with pytest.raises(ContenderError, match="no such table"):
        measured(
            [sys.executable, "-c", "raise SystemExit('no such table')"],
            cwd=tmp_path,
            log=tmp_path / "log",
        )


def test_no_contender_is_left_out_in_silence() -> None:
    """The error names a library that is not installed, and how to install it."""
    with pytest.raises(ContenderError, match=r"no_such_database cannot be imported.*bench-verify"):
        require((PRODUCT, Contender(name="another", command=PRODUCT.command, needs="no_such_database")))


def test_the_yardstick_is_installed_for_its_benchmark_alone() -> None:
    """Neither users nor CI install duckdb: one tox environment names its file, and has a directory of its own."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    naming = [name for name in tox.sections() if "requirements-bench.txt" in tox[name].get("deps", "")]
    assert naming == ["testenv:bench-verify"]
    assert tox["testenv:bench-verify"]["env_dir"] != tox["testenv"]["env_dir"]
    for name in ("requirements.txt", "requirements-dev.txt", "requirements.lock"):
        text = (ROOT / name).read_text(encoding="utf-8").lower()
        assert not any(line.startswith("duckdb") for line in text.splitlines())


def _footprint(seconds: float, driver_bytes: int) -> Footprint:
    """Its workers hold as much memory again."""
    return Footprint(seconds=seconds, processor_s=seconds, peak_bytes=2 * driver_bytes, driver_bytes=driver_bytes)


def size(records: int, *, product: float, duckdb: float, textbook: float, gib: float = 2.0) -> Size:
    """The measurements of a size, in seconds and GiB."""
    seconds = {PRODUCT: product, DUCKDB: duckdb, TEXTBOOK: textbook}
    return Size(
        setting=Setting(directory=RunDirectory(Path("nowhere")), records=records, threads=2),
        made=records,
        planted=590,
        kinds=15,
        judged={
            contender: [Turn(footprint=_footprint(taken, int(gib * (1 << 30))))] for contender, taken in seconds.items()
        },
    )


def test_bounds_are_judged_where_start_up_no_longer_decides() -> None:
    """The bound at 10^5 records is in seconds, those from 10^7 on are ratios; each holds or does not."""
    assert bounds([size(1_000_000, product=20, duckdb=1, textbook=30)]) == []
    (quick,), (slow,) = (bounds([size(SMALL, product=took, duckdb=1, textbook=30)]) for took in (8, 8.1))
    assert (quick.holds, slow.holds, slow.seen) == (True, False, 8.1)
    small_one = size(1_000_000, product=10, duckdb=4, textbook=50)
    good = bounds([small_one, size(10_000_000, product=60, duckdb=25, textbook=300)])
    assert [each.holds for each in good] == [True, True, True, True]
    bad = bounds([small_one, size(10_000_000, product=200, duckdb=25, textbook=300, gib=4.5)])
    assert [each.holds for each in bad] == [False, False, False, False]
    assert [round(each.seen, 2) for each in bad] == [1.5, 8.0, 4.5, 2.0]


def test_the_page_says_what_was_measured_against_what() -> None:
    """Every contender, size, bound and ratio is on the page, and a bound that does not hold is marked."""
    sizes = [size(10_000_000, product=200, duckdb=25, textbook=300)]
    text = page(sizes, ["2 processors"])
    assert "* 2 processors" in text
    assert all(contender.name in seen(sizes) for contender in CONTENDERS)
    assert "| at 10 000 000 records at most 3 times as long as DuckDB" in text
    assert "**no**" in text
    assert ratios(sizes)[0].subject == "onceproof, 10 000 000 records"
    assert [each.unit for each in ratios(sizes)] == [Unit.SECONDS] * 2
    assert [each.median for each in ratios(sizes)] == [8.0, 200 / 300]
