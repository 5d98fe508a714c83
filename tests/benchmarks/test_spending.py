"""Processor time by part and by phase: of real processes, and the arithmetic of the tables."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from benchmarks.harness.spending import REST, Spending, tables
from benchmarks.measuring.process_tree import Look, Part, ProcessorTimes, processor_times
from verification.vocabulary.history import Phase

BURN = "import time\nwhile time.process_time() < {s}: pass"
#: A child with the command line of a client, in a session of its own, and a child that ends between two looks.
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BURN.format(s=0.05)!r}])
subprocess.run([sys.executable, "-c", {BURN.format(s=1.5)!r}, "fixtures.clients"], start_new_session=True)
{BURN.format(s=0.5)}
"""


def test_a_command_and_all_its_processes_are_added_up(tmp_path: Path) -> None:
    """Nothing is lost: also the time of short processes, and of the last moment of a long one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, times = processor_times([sys.executable, "-c", PARENT], cwd=tmp_path, log=tmp_path / "log")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = times.spent
    assert code == 0
    assert spent[Part.CLIENTS] == pytest.approx(1.5, abs=0.4)
    assert spent[Part.HARNESS] == pytest.approx(0.5, abs=0.4)
    assert spent[Part.SHORT] > 0
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The parent itself may work for a quarter of a second after the last look.
    assert sum(spent.values()) == pytest.approx(whole, abs=0.3)


def test_the_tables_divide_by_scenarios_and_by_phases() -> None:
    """Phases of two lanes share what was spent meanwhile; time outside of all phases is a row of its own."""
    looks = tuple(
        Look(at_s=at, spent={Part.BROKERS: brokers, Part.SPARK: spark})
        for at, brokers, spark in ((0.0, 0.0, 0.0), (10.0, 8.0, 1.0), (20.0, 9.0, 5.0), (30.0, 9.0, 6.0))
    )
    second = 1_000_000_000
    spending = Spending(
        times=ProcessorTimes(seconds=36.0, looks=looks),
        scenarios=2,
        phases=(
            Phase(name="set up", began_ns=0, ended_ns=10 * second),
            Phase(name="nemesis", began_ns=0, ended_ns=20 * second),
            Phase(name="capture", began_ns=10 * second, ended_ns=20 * second),
        ),
    )
    head, by_part, _, by_phase = tables(spending)
    assert "2 scenarios, 200 per hour" in head
    cells = {row[0]: row[1:] for row in (_cells(line) for line in [*by_part.splitlines(), *by_phase.splitlines()])}
    assert cells["brokers"] == ["9.0", "4.5"]
    assert cells["all"] == ["15.0", "7.5"]
    assert cells["set up"][:3] == ["10.0", "4.0", "0.5"]
    assert cells["nemesis"][:3] == ["20.0", "4.5", "2.5"]
    assert cells["capture"][:3] == ["10.0", "0.5", "2.0"]
    assert cells[REST][:3] == ["10.0", "0.0", "1.0"]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
