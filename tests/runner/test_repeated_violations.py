"""A violation that no known bug explains is repeated by the run itself, alone, and the report says how often it was seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.run_record import Ended, RunState, read
from runner import run_plugin
from runner.lanes import Performer
from runner.protocol.case_runner import CaseResult, ProtocolCase
from runner.protocol.experiments import ProtocolExperiments
from runner.run_plugin import RunPlugin
from tests.runner.test_running_alone import case
from tests.support.protocol_run_directories import BROKEN, PASSED, UNNAMED, VIOLATED, make_case
from tests.support.protocol_testbed import plugin_of
from verification.scripts.script import Script, judge

HELD = replace(PASSED, case=UNNAMED.case)


@dataclass
class Playing(Performer[ProtocolCase, CaseResult]):
    """Leaves the next script of each case in the directory of its run."""

    directory: Path
    scripts: dict[str, list[Script]]

    def perform_together(self, tasks: Sequence[ProtocolCase]) -> list[CaseResult]:
        """A script that is broken has no verdict."""
        (task,) = tasks
        script = self.scripts[task.key].pop(0)
        if script is BROKEN:
            return [CaseResult(seconds=0.1, broke="no broker")]
        make_case(self.directory / "runs" / task.key, script)
        return [CaseResult(seconds=0.1, verdict=judge(script))]

    def interrupt(self) -> None:
        """Nothing waits."""

    def discard(self, task: ProtocolCase) -> None:
        """Nothing is interrupted."""

    def close(self) -> None:
        """There is no cluster."""


@dataclass
class Run:
    """A run of cases that leave the given scripts, one after the other."""

    root: Path
    monkeypatch: pytest.MonkeyPatch
    plugin: RunPlugin = field(init=False)

    def perform(self, *scripts: Sequence[Script], repeats: int = 5) -> None:
        """Perform each case with its first script, and repeat it with the others."""
        plugin = self.plugin = plugin_of(self.root, *(each[0] for each in scripts))
        played = {each[0].case: list(each) for each in scripts}
        config = replace(plugin.record.config, repeats=repeats)

        def case_runner(_: Any, __: Any, ___: int, *, place: str = "") -> Playing:
            return Playing(self.root / place, played)

        for name, value in {"_case": lambda _, item: item.case, "_case_runner": case_runner}.items():
            self.monkeypatch.setattr(ProtocolExperiments, name, value)
        self.monkeypatch.setattr(plugin.record, "config", config)
        environment = SimpleNamespace(runtime="local", downloads=(), versions={}, digests={})
        self.monkeypatch.setattr(plugin.record, "environment", environment)
        self.monkeypatch.setattr(plugin, "_report", plugin._cases.conclude)
        self.root.mkdir(exist_ok=True)
        plugin._perform([case(each[0].case) for each in scripts])  # type: ignore[list-item]
        plugin._cases.close(interrupted=False)
        record = read(self.root / "run.json")
        replace(record, state=RunState.FINISHED).write(self.root / "run.json")

    def ended(self, key: str) -> Ended:
        """The end of a case in `run.json`."""
        return next(each for each in read(self.root / "run.json").ended if each.key == key)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run in a directory of the test."""
    return Run(tmp_path / "run", monkeypatch)


def test_an_unexplained_violation_is_repeated_and_its_rate_is_in_the_reason(run: Run) -> None:
    """Its evidence is kept, and each format shows the reason. Neither the decision nor any count is different."""
    run.perform([UNNAMED, UNNAMED, HELD, BROKEN], [PASSED], repeats=3)
    assert run.ended(UNNAMED.case).repeats == ("FAIL", "PASS", "ERROR")
    report = load_run(run.root)
    (failed,) = [each for each in report.cases if each.key == UNNAMED.case]
    assert failed.reason.endswith("repeated alone: seen in 2 of 3 runs; 1 repetition decided nothing")
    assert len(report.cases) == 2
    assert [each.parent.name for each in sorted(run.root.glob("repeats/*/runs"))] == ["1", "2"]
    write_all(report, run.root)
    results = json.loads((run.root / "results.json").read_text(encoding="utf-8"))
    assert (results["decision"], results["exit_code"], len(results["cases"])) == ("NO-GO", 1, 2)
    for name in ("report.html", "summary.md"):
        assert "seen in 2 of 3 runs" in (run.root / name).read_text(encoding="utf-8"), name


def test_only_what_nothing_explains_is_repeated(run: Run) -> None:
    """A known bug has its name, a case that passed or broke is no violation, and `--repeat 0` repeats nothing."""
    run.perform([VIOLATED], [PASSED], [BROKEN], repeats=5)
    assert not any(each.repeats for each in read(run.root / "run.json").ended)
    run.root = run.root.with_name("other")
    run.perform([UNNAMED], repeats=0)
    assert run.ended(UNNAMED.case).rate == ""


def test_repetitions_end_with_their_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each violation is repeated once before the first is repeated again."""
    other = replace(UNNAMED, case="another-case")
    clock = iter([0.0, 1.0, 1.0, *range(2, 100)])
    monkeypatch.setattr(run_plugin, "REPEATED_WITHIN_S", 1.5)
    monkeypatch.setattr(run_plugin, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None))
    run.perform([UNNAMED] * 6, [other] * 6)
    repeated = [len(run.ended(each).repeats) for each in (UNNAMED.case, other.case)]
    assert repeated == [1, 0]


@pytest.mark.parametrize(
    ("repeats", "rate"),
    [
        ((), ""),
        (("FAIL", "FAIL"), "repeated alone: seen in 3 of 3 runs"),
        (("PASS",) * 5, "repeated alone: seen in 1 of 6 runs"),
        (("ERROR", "INCONCLUSIVE"), "repeated alone: seen in 1 of 1 runs; 2 repetitions decided nothing"),
    ],
)
def test_the_rate_counts_what_decided(repeats: tuple[str, ...], rate: str) -> None:
    """The first run counts, and a repetition without a verdict does not."""
    assert Ended(key="a", seconds=1.0, repeats=repeats).rate == rate
