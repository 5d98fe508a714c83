"""Measures where a run spends its processor time: by part, and by phase.

A real run of some scenarios of the suite, each with a fault and a verdict, is started as a user starts it. Meanwhile
the processor time of all its processes is read. Phases come from the histories. Scenarios in several lanes are in several
phases at a time, each of which gets an equal share. The judge and Spark's start run at the same time as phases of
scenarios, so their time is in the columns of Spark and in the rows of all phases.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.measuring.errors import WorthlessJudgementError
from benchmarks.measuring.process_tree import Part, ProcessorTimes, processor_times
from benchmarks.measuring.table import aligned
from runner.config import ROOT
from verification.evidence.history_file import read as read_history
from verification.evidence.run_directory import scenario_directories
from verification.vocabulary.history import Phase

#: Scenarios of most families, with all kinds of clients.
SCENARIOS = (
    "leader_crash_while_sending",
    "responses_lost",
    "leader_crash_while_committing",
    "producer_killed_with_an_open_transaction",
    "paused_zombie",
    "copier_killed_in_mid_transaction",
    "coordinator_crash_while_committing",
    "rolling_restart",
)
SEED = 7
REST = "before, between and after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A run's processor times; the number of its scenarios; the phases of all of them, in order of their beginning."""

    times: ProcessorTimes
    scenarios: int
    phases: tuple[Phase, ...]

    @property
    def per_hour(self) -> float:
        """Scenarios per hour of the whole run, with its start and its report."""
        return self.scenarios * 3600 / self.times.seconds


def measure(release: str, place: Path, say: Callable[[str], None]) -> Spending:
    """Run the scenarios. Raises WorthlessJudgementError when one of them has another verdict than PASS."""
    run, log = place / "run", place / "output"
    place.mkdir(parents=True)
    options = (
        "--kafka",
        release,
        "--runtime",
        "local",
        "--seed",
        str(SEED),
        "--only",
        "scenarios",
        "--run-dir",
        str(run),
    )
    command = (sys.executable, "-m", "pytest", "suites", *options, "-k", " or ".join(SCENARIOS))
    code, times = processor_times(command, cwd=ROOT, log=log)
    if code:
        raise WorthlessJudgementError(f"The run ended with {code}:\n{log.read_text(encoding='utf-8')}")
    planned = json.loads((run / "run.json").read_text(encoding="utf-8"))["planned"]
    histories = [read_history(each.history) for each in scenario_directories(run)]
    phases = sorted((phase for each in histories for phase in each.of(Phase)), key=lambda phase: phase.began_ns)
    spending = Spending(times=times, scenarios=len(planned), phases=tuple(phases))
    say(f"{spending.scenarios} scenarios in {times.seconds:.0f} s: {spending.per_hour:.0f} per hour")
    return spending


def tables(spending: Spending) -> tuple[str, ...]:
    """Processor seconds by part, and seconds and processor seconds by phase, as Markdown."""
    return (
        f"{spending.scenarios} scenarios, {spending.per_hour:.0f} per hour, each with a fault and a verdict. "
        "Processor seconds by part:",
        _by_part(spending),
        "Seconds of all scenarios by phase, and the processor seconds of each part in that time (shared by the lanes):",
        _by_phase(spending),
    )


def _by_part(spending: Spending) -> str:
    spent = spending.times.spent
    whole = sum(spent.values())
    rows = [(part, f"{spent.get(part, 0.0):.1f}", f"{spent.get(part, 0.0) / spending.scenarios:.1f}") for part in Part]
    total = ("all", f"{whole:.1f}", f"{whole / spending.scenarios:.1f}")
    return aligned([("part", "processor s", "per scenario"), *rows, total])


def _by_phase(spending: Spending) -> str:
    seconds: dict[str, float] = dict.fromkeys((phase.name for phase in spending.phases), 0.0)
    for phase in spending.phases:
        seconds[phase.name] += (phase.ended_ns - phase.began_ns) / 1e9
    seconds[REST] = 0.0
    spent = {name: dict.fromkeys(Part, 0.0) for name in seconds}
    for before, look in pairwise(spending.times.looks):
        middle_ns = (before.at_s + look.at_s) / 2 * 1e9
        names = [phase.name for phase in spending.phases if phase.began_ns <= middle_ns < phase.ended_ns]
        if not names:
            seconds[REST] += look.at_s - before.at_s
        for name in names or [REST]:
            for part in Part:
                spent[name][part] += (look.spent.get(part, 0.0) - before.spent.get(part, 0.0)) / max(1, len(names))
    rows = [(name, f"{seconds[name]:.1f}", *_cells(spent[name])) for name in seconds]
    return aligned([("phase", "s", *Part, "all"), *rows])


def _cells(spent: Mapping[Part, float]) -> Sequence[str]:
    return [f"{spent[part]:.1f}" for part in Part] + [f"{sum(spent.values()):.1f}"]
