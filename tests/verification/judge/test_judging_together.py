"""Many scenarios cost one job, and a run one session, which starts while its first cluster does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import MagicMock

import pytest

from runner.resources import JUDGED_TOGETHER, RunResources
from tests.support.planted.busy import A0, busy
from tests.support.planted.cases import MIXED, mixed
from tests.support.planted.files import write
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import RunEvidence
from verification.fingerprints.strategy import Strategy
from verification.judge import judge as judging
from verification.judge.judge import Checked, judge
from verification.vocabulary.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Longer than a thread takes to start on a busy machine.
PATIENT_S = 60.0


class Jobs:
    """Records the calls of the checks: the runs of each job, and whether by fingerprints first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[bool, list[str]]] = []
        monkeypatch.setattr(judging, "check", self.check)
        monkeypatch.setattr(judging, "in_order", lambda *_: frozenset[str]())

    def check(self, _: SparkSession, runs: Sequence[RunEvidence], *, fingerprints: bool) -> Checked:
        self.asked.append((fingerprints, [run.run for run in runs]))
        return Checked(violations={})

    def judge(self, runs: Sequence[RunDirectory], strategy: Strategy) -> list[Verdict]:
        return [each.verdict for each in judge(cast("SparkSession", None), runs, strategy=strategy)]


def test_all_scenarios_are_checked_in_one_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As long as one job can hold them. One that cannot be judged is left out, and large ones have one job of their own."""
    jobs = Jobs(monkeypatch)
    runs = mixed(tmp_path)
    cut = write(busy("cut").finish(), tmp_path / "cut")
    cut.history.unlink()
    assert jobs.judge([cut, *runs], Strategy.EVERY_RECORD) == [Verdict.ERROR, *[Verdict.PASS] * len(runs)]
    assert jobs.asked == [(False, [name[:12] for name in MIXED])]
    large = [write(busy(name, observers=()).finish(), tmp_path / name) for name in ("large-1", "large-2")]
    jobs.asked.clear()
    jobs.judge([*large, *runs], Strategy.FINGERPRINTS)
    assert jobs.asked == [(False, [name[:12] for name in MIXED]), (True, ["large-1", "large-2"])]


def test_more_than_one_job_holds_is_judged_in_several(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A night's runs need not fit into a JVM at once. Each verdict is written and reported before the next job begins."""
    jobs = Jobs(monkeypatch)
    runs = mixed(tmp_path)
    told: list[str] = []
    known: list[int] = []
    asked = jobs.check

    def check(spark: SparkSession, of: Sequence[RunEvidence], *, fingerprints: bool) -> Checked:
        known.append(len(told))
        return asked(spark, of, fingerprints=fingerprints)

    monkeypatch.setattr(judging, "check", check)
    monkeypatch.setattr(judging, "ROWS_TOGETHER", 0)
    verdicts = judge(cast("SparkSession", None), runs, tell=lambda each: told.append(each.run))
    assert [of for _, of in jobs.asked] == [[name[:12]] for name in MIXED]
    assert known == list(range(len(runs)))
    assert told == [each.run for each in verdicts] == [name[:12] for name in MIXED]
    assert all(run.verdicts.is_file() for run in runs)


@pytest.mark.spark
@pytest.mark.deep
def test_a_file_that_cannot_be_read_is_that_run_s_error(spark: SparkSession, tmp_path: Path) -> None:
    """The others of the same job are judged without it; the reason names the file."""
    plants = {name: busy(name).finish() for name in ("guilty", "rotten", "innocent")}
    plants["guilty"].drop("committed", *A0, 0)
    runs = [write(plant, tmp_path / name) for name, plant in plants.items()]
    (part,) = runs[1].log.glob("*.parquet")
    content = part.read_bytes()
    # Between the magic and the footer, so that only a reader of the rows notices it.
    part.write_bytes(content[:200] + bytes(60) + content[260:])
    guilty, rotten, innocent = judge(spark, runs, strategy=Strategy.EVERY_RECORD)
    assert [each.verdict for each in (guilty, rotten, innocent)] == [Verdict.FAIL, Verdict.ERROR, Verdict.PASS]
    assert str(part) in rotten.reason
    assert (guilty.crashed, innocent.crashed) == ((), ())


def test_the_session_starts_while_the_first_cluster_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No scenario waits for the session before there is evidence to judge, and then there is a session."""
    go_on, started, judged = Event(), [], []

    def start(**_: Any) -> MagicMock:
        started.append(MagicMock())
        assert go_on.wait(PATIENT_S)
        return started[-1]

    def judge_some(session: object, directories: Sequence[RunDirectory]) -> list[str]:
        judged.append((session, len(directories)))
        return [each.root.name for each in directories]

    monkeypatch.setattr("verification.spark.session.start", start)
    monkeypatch.setattr("verification.judge.judge.judge", judge_some)
    environment = MagicMock()
    with RunResources(MagicMock(directory=tmp_path), MagicMock(), environment=environment) as resources:
        verdicts = [
            resources.judge_later(RunDirectory(tmp_path / str(number))) for number in range(JUDGED_TOGETHER + 1)
        ]
        resources.judge_now()
        assert not any(verdict.done() for verdict in verdicts)
        go_on.set()
        said = [cast("str", verdict.result(PATIENT_S)) for verdict in verdicts]
    assert said == [str(number) for number in range(JUDGED_TOGETHER + 1)]
    assert judged == [(started[0], JUDGED_TOGETHER), (started[0], 1)]
    assert len(started) == 1
    started[0].stop.assert_called_once_with()


def test_a_judge_that_breaks_leaves_no_scenario_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its error is the answer for every scenario of the batch."""

    def breaks(*_: object) -> list[str]:
        raise KeyError("answers")

    monkeypatch.setattr("verification.spark.session.start", MagicMock())
    monkeypatch.setattr("verification.judge.judge.judge", breaks)
    with RunResources(MagicMock(directory=tmp_path), MagicMock(), environment=MagicMock()) as resources:
        verdict = resources.judge_later(RunDirectory(tmp_path))
        resources.judge_now()
        assert isinstance(verdict.exception(PATIENT_S), KeyError)


def test_a_judgement_that_is_ended_says_so_of_each_scenario_without_a_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The judge only sees that its JVM is gone, and would blame the memory. A verdict of before stays."""
    gone, passed = MagicMock(verdict=Verdict.ERROR), MagicMock(verdict=Verdict.PASS)

    def ends(*_: object) -> list[MagicMock]:
        resources.abandon_judge()
        return [passed, gone]

    monkeypatch.setattr("verification.spark.session.start", MagicMock())
    monkeypatch.setattr("verification.spark.session.kill", MagicMock())
    monkeypatch.setattr("verification.judge.judge.judge", ends)
    with RunResources(MagicMock(directory=tmp_path), MagicMock(), environment=MagicMock()) as resources:
        kept, lost = resources.judge_later(RunDirectory(tmp_path)), resources.judge_later(RunDirectory(tmp_path))
        resources.judge_now()
        assert kept.result(PATIENT_S) is passed
        assert "The judgement was ended after 0 s" in str(lost.exception(PATIENT_S))
