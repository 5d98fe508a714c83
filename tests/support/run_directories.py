"""Run directories made of planted data, so that reports can be tested without a cluster and without Spark.

`plan` describes one scenario; `make_run` writes a whole run's directory with the real writers of run.json,
scenario.json, history.jsonl and verdicts.json. Everything is computed from fixed numbers: two calls with the same
arguments write the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reports.model.run_record import Download, Ended, Planned, RunRecord, RunState
from tests.support.plans import ANCHOR, STARTED, WALL_CLOCK, Plan
from tests.support.planted.evidence import entries, experiment, log_rows, transaction_log
from tests.support.planted.upgrade import upgrade_entries, upgraded
from verification.evidence import history_file, transaction_log_file, verdict_file
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.verdict import (
    CoverageItem,
    RequirementVerdict,
    ScenarioVerdict,
    Verdict,
)


def judged(plan: Plan) -> ScenarioVerdict:
    """verdicts.json of a plan that has a verdict."""
    verdict = Verdict.PASS if plan.verdict is None else plan.verdict
    have = plan.coverage_have
    return ScenarioVerdict(
        scenario=plan.key,
        run=plan.run,
        verdict=verdict,
        reason=plan.reason,
        findings=plan.findings,
        coverage=(
            CoverageItem(name="ok-before", have=180, need=50, text="operations ok before the fault"),
            CoverageItem(name="during", have=have, need=50, text="operations attempted during the fault"),
            CoverageItem(name="ok-after", have=120, need=50, text="operations ok after the fault was healed"),
            CoverageItem(name="records", have=12000, need=10000, text="records in all"),
        ),
        requirements=tuple(
            RequirementVerdict(id=id_, verdict=verdict, reason=plan.reason) for id_ in plan.requirements
        ),
        control=bool(plan.expects),
        convicted=plan.convicted,
        counts=(("records", 12000), ("transactions", 240)),
        judged_s=3.4,
        crashed=plan.crashed,
        allowed=plan.allowed,
    )


def make_scenario(directory: Path, plan: Plan) -> RunDirectory:
    """Write one scenario's directory."""
    run = RunDirectory(directory)
    directory.mkdir(parents=True)
    (upgraded if plan.upgrade else experiment)(plan).write(run.experiment)
    planted = upgrade_entries(plan) if plan.upgrade else entries(plan)
    lines = history_file.lines(run=plan.run, wall_clock_anchor=WALL_CLOCK, anchor_ns=ANCHOR, entries=planted)
    run.history.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
    if plan.coordinated:
        transaction_log_file.write(run.transaction_log, transaction_log(plan))
    if plan.verdict is not None:
        verdict_file.write(run.verdicts, judged(plan))
    for finding in plan.findings:
        folder = run.findings / finding.anomaly
        folder.mkdir(parents=True, exist_ok=True)
        rows = (json.dumps(each) + "\n" for each in log_rows(plan))
        (folder / "records.jsonl").write_text("".join(rows), encoding="utf-8")
        run.brokers.mkdir(exist_ok=True)
        said = f"[{WALL_CLOCK[:17]}09.000Z] WARN [handler-1] Lost leader of {plan.topic}-0 {plan.noise}"
        (run.brokers / "broker-1.log").write_text(said, encoding="utf-8", errors="replace")
    (directory / "README.txt").write_text("How to run it again.\n", encoding="utf-8")
    return run


def record(plans: Sequence[Plan], **changes: object) -> RunRecord:
    """run.json of these plans; `changes` are fields of RunRecord."""
    full = RunRecord(
        started=STARTED,
        seed=7,
        profile="quick",
        command="tox -e conformance -- --kafka 4.3.1 --seed 7",
        release="4.3.1",
        runtime="local",
        clients=("confluent",),
        state=RunState.FINISHED,
        suite="onceproof 0.1.0",
        planned=tuple(
            Planned(
                key=plan.key,
                scenario=plan.key,
                claim=plan.claim,
                requirements=plan.requirements,
                expected_s=25.0,
                control=bool(plan.expects),
                client="confluent",
                replay=plan.replay or f"tox -e conformance -- --seed 7 -k {plan.key}",
            )
            for plan in plans
        ),
        ended=tuple(Ended(key=plan.key, seconds=24.5, error=plan.error) for plan in plans if plan.ended),
        options={"kafka": "4.3.1", "profile": "quick", "seed": "7"},
        machine={"processors": "2", "memory": "7.8 GB", "system": "Linux x86_64"},
        versions={"python": "3.11.2"},
        downloads=(Download(name="kafka_2.13-4.3.1.jar", size_bytes=44_000_000, seconds=6.1, digest="sha256:0a1b"),),
        expected_s=25.0 * len(plans),
        duration_s=24.5 * len(plans),
    )
    return replace(full, **changes)  # type: ignore[arg-type]


def make_run(directory: Path, plans: Sequence[Plan], **changes: object) -> Path:
    """Write a whole run's directory and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    record(plans, **changes).write(directory / "run.json")
    for plan in plans:
        if plan.present:
            make_scenario(directory / "runs" / plan.key, plan)
    return directory
