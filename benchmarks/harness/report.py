"""Measures how long a report takes, and how large its page is.

The evidence is one of the suite's own scenarios, run and judged once, and copied two hundred times, as a night of that
many scenarios would leave it. The time from the evidence to every format is compared with parsing the histories as
JSON, the least that any reader must do. The size of the page is compared with two megabytes, the limit for 200
scenarios.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness.judging import conducted, judged, leader_crash
from benchmarks.measuring.errors import WorthlessReportError
from benchmarks.measuring.ratio import Ratio, Unit
from benchmarks.measuring.report_cost import ReportCost, measure_report
from reports.loading.run import load_run
from runner.resources import ScenarioLane
from runner.scenarios.scenario_run import ScenarioRun
from verification.evidence.run_directory import RunDirectory

COPIES = 200
PAGE_MAX_BYTES = 2_000_000
#: The files that the report reads of a scenario that passed; records and broker logs are not copied.
READ = ("scenario.json", "history.jsonl", "verdicts.json")


def measure(lane: ScenarioLane, place: Path, *, pairs: int, say: Callable[[str], None]) -> tuple[Ratio, ...]:
    """Run, judge and report. Raises the errors of a run, WorthlessJudgementError and WorthlessReportError."""
    scenario_run = ScenarioRun(leader_crash(3), lane)
    evidence = conducted(scenario_run, lane)
    judged(lane, evidence)
    return ratios(evidence, place, pairs=pairs, say=say)


def ratios(
    evidence: RunDirectory, place: Path, *, pairs: int, say: Callable[[str], None], copies: int = COPIES
) -> tuple[Ratio, ...]:
    """The ratios of a run of so many copies of one scenario's evidence, laid out in `place`."""
    run = lay_out(evidence, place / "run", copies)
    histories = sorted(run.glob("runs/*/history.jsonl"))
    made: list[tuple[ReportCost, float]] = []
    for _ in range(pairs):
        parsed_s = _parsed(histories)
        made.append((measure_report(lambda: load_run(run), place / "formats"), parsed_s))
    last = made[-1][0]
    if last.tried != copies:
        raise WorthlessReportError(f"The report has {last.tried} of {copies} scenarios.")
    for line in last.lines():
        say(line)
    return (
        Ratio(
            subject=f"report of {copies} scenarios, from evidence to every format",
            against="parsing their histories as JSON",
            unit=Unit.SECONDS,
            pairs=tuple((each.seconds, parsed_s) for each, parsed_s in made),
        ),
        Ratio(
            subject=f"page of {copies} scenarios",
            against="its limit",
            unit=Unit.KILOBYTES,
            pairs=((last.page_bytes / 1000, PAGE_MAX_BYTES / 1000),),
        ),
    )


def lay_out(evidence: RunDirectory, run: Path, copies: int) -> Path:
    """A run directory with so many copies of the files that a report reads."""
    for number in range(copies):
        directory = run / "runs" / f"{evidence.root.name}-{number}"
        directory.mkdir(parents=True)
        for name in READ:
            shutil.copyfile(evidence.root / name, directory / name)
    return run


def _parsed(histories: Sequence[Path]) -> float:
    """Seconds to parse them, and nothing else."""
    began = time.monotonic()
    for path in histories:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                json.loads(line)
    return time.monotonic() - began
