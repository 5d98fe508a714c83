"""The end of a protocol run: exit code, report and record; and the verdict of a case without an answer."""

from __future__ import annotations

import io
import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from chaos.frames import FrameFilter, Hold
from fixtures.clusters.docker.cluster import DockerCluster
from fixtures.clusters.errors import ClusterUnhealthyError
from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.local.zookeeper import ZooKeeperCluster
from fixtures.errors import OnceproofError
from reports.model.run_record import Ended
from reports.model.run_record import read as read_record
from runner.protocol.toolkit import settings
from runner.protocol.toolkit.case import SECURED
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.responses import NoAnswerError, Response
from runner.protocol.toolkit.script_recorder import NotApplicableError, ScriptRecorder, UnmetError
from runner.protocol.toolkit.tampering import tampered
from runner.run_plugin import RunPlugin
from tests.support.protocol_run_directories import BROKEN, INAPPLICABLE, PASSED, UNNAMED, VIOLATED, make_case
from tests.support.protocol_testbed import bare_runner, case_of, plugin_of, served_runner
from verification.scripts.script import Relation, Script, judge
from verification.scripts.script import read as read_script
from verification.vocabulary.verdict import Verdict
from wire.transaction_versions import TransactionVersion


def finish(plugin: RunPlugin, exitstatus: int = pytest.ExitCode.OK) -> tuple[int, str]:
    """The exit code of a protocol run, and its closing lines."""
    option = SimpleNamespace(collectonly=False, list_scenarios=False, outline=False, dry_run=False)
    session: Any = SimpleNamespace(exitstatus=exitstatus, config=SimpleNamespace(option=option))
    for _ in plugin.pytest_sessionfinish(session, exitstatus):
        pass
    said: list[str] = []
    plugin.pytest_terminal_summary(SimpleNamespace(write_line=said.append))  # type: ignore[arg-type]
    return session.exitstatus, "\n".join(said)


def ended(
    directory: Path, planned: tuple[Script, ...], performed: tuple[Script, ...], exitstatus: int = pytest.ExitCode.OK
) -> tuple[int, str]:
    """The exit code and closing lines of a protocol run that planned some cases and performed others."""
    plugin = plugin_of(directory, *planned)
    directory.mkdir(parents=True, exist_ok=True)
    for each in performed:
        make_case(directory / "runs" / each.case, each)
        plugin.record.end(Ended(key=each.case, seconds=0.1))
    return finish(plugin, exitstatus)


def test_every_planned_case_needs_a_verdict(tmp_path: Path) -> None:
    """A case without a verdict is named and is an ERROR, for every reason, and not a PASS."""
    code, said = ended(tmp_path / "a", (PASSED, BROKEN), (PASSED,))
    assert code == 5
    assert f"runs/{BROKEN.case}: the planned case left no directory" in said
    assert ended(tmp_path / "b", (UNNAMED, BROKEN), (UNNAMED,))[0] == 1
    assert ended(tmp_path / "c", (PASSED,), (PASSED,))[0] == 0


def test_a_run_that_decided_nothing_is_no_pass(tmp_path: Path) -> None:
    """A run is INCONCLUSIVE if all its cases do not apply, or if it has none."""
    assert ended(tmp_path / "a", (INAPPLICABLE,), (INAPPLICABLE,))[0] == 2
    assert ended(tmp_path / "b", (), ())[0] == 2
    assert ended(tmp_path / "c", (INAPPLICABLE, PASSED), (INAPPLICABLE, PASSED))[0] == 0


def test_an_interruption_is_an_error_unless_something_was_proven(tmp_path: Path) -> None:
    """A violation that was proven before Ctrl-C stays proven; the report says `interrupted`."""
    assert ended(tmp_path / "a", (PASSED, BROKEN), (PASSED,), pytest.ExitCode.INTERRUPTED)[0] == 5
    assert json.loads((tmp_path / "a" / "results.json").read_text(encoding="utf-8"))["interrupted"] is True
    assert ended(tmp_path / "b", (UNNAMED, PASSED), (UNNAMED,), pytest.ExitCode.INTERRUPTED)[0] == 1


def test_a_failure_of_the_harness_is_an_error(tmp_path: Path) -> None:
    """Even where every case has passed."""
    code, said = ended(tmp_path, (PASSED,), (PASSED,), pytest.ExitCode.INTERNAL_ERROR)
    assert code == 5
    assert "the harness failed" in said


def test_a_run_that_cannot_begin_says_why_once(tmp_path: Path) -> None:
    """One sentence replaces a table of cases that were not begun; the report is still written."""
    plugin = plugin_of(tmp_path / "run", PASSED, VIOLATED)
    plugin.record.refuse(OnceproofError("There is no Java."))
    code, said = finish(plugin)
    assert code == 5
    assert said.splitlines() == [
        "Nothing was started (exit code 5): There is no Java.",
        f"report: {tmp_path / 'run' / 'report.html'}",
    ]


def test_a_run_leaves_every_output_format_and_its_record(tmp_path: Path) -> None:
    """Page, results, junit, ctrf, summary, badge; and run.json has the selection and the command to repeat it."""
    plugin = plugin_of(tmp_path, PASSED, keyword="gap")
    make_case(tmp_path / "runs" / PASSED.case, PASSED)
    plugin.record.end(Ended(key=PASSED.case, seconds=0.1))
    code, said = finish(plugin)
    assert code == 0
    assert 'PARTIAL: narrowed to the selection "gap"' in said
    assert f"report: {tmp_path / 'report.html'}" in said
    for name in ("report.html", "results.json", "junit.xml", "ctrf.json", "summary.md", "badge.json"):
        assert (tmp_path / name).is_file(), name
    record = read_record(tmp_path / "run.json")
    assert record.command == 'tox -e protocol -- --kafka 4.3.1 --runtime local -k "gap"'
    assert re.fullmatch(
        r"Onceproof [0-9.]+, commit [0-9a-f]{7,}(-dirty)?|Onceproof [0-9.]+, commit unknown", record.suite
    )
    assert record.planned[0].case
    assert record.seed is None


def test_latest_points_at_the_last_protocol_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Protocol runs are stored next to other runs, `latest` points to them, and they are deleted with them."""
    monkeypatch.setattr("runner.report_files.OUT", tmp_path)
    for number in range(11):
        ended(tmp_path / f"2026112{number:02d}-protocol", (PASSED,), (PASSED,))
        assert (tmp_path / "latest").resolve().name == f"2026112{number:02d}-protocol"
    assert sum(1 for each in tmp_path.iterdir() if each.name != "latest") == 10


def test_a_directory_in_the_place_of_latest_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of old runs that follows links has one: the report is written, its code stays, and one line names it."""
    monkeypatch.setattr("runner.report_files.OUT", tmp_path)
    (tmp_path / "latest").mkdir()
    plugin = plugin_of(tmp_path / "20261121-protocol", PASSED)
    make_case(tmp_path / "20261121-protocol" / "runs" / PASSED.case, PASSED)
    plugin.record.end(Ended(key=PASSED.case, seconds=0.1))
    assert finish(plugin)[0] == 0
    assert (tmp_path / "20261121-protocol" / "report.html").is_file()
    assert isinstance(plugin.console.out, io.StringIO)
    (note,) = plugin.console.out.getvalue().splitlines()
    assert "the report is written anyway" in note
    assert "latest exists and is no symlink" in note


def test_what_was_performed_is_judged_from_the_disk(tmp_path: Path) -> None:
    """The script has exchanges, statements, features and the error that broke the case; the verdict is that of the file."""
    runner = bare_runner(tmp_path)
    recording = ScriptRecorder()
    answer = recording.answered(recording.begin("EndTxn", 5, "broker 1", {"Committed": True}), {"ErrorCode": 51})
    recording.state("the end", answer.code, Relation.EQUALS, 0, required=False)
    client = SimpleNamespace(connection=lambda: SimpleNamespace(features={"transaction.version": 2}))
    case: Any = SimpleNamespace(transaction_version=TransactionVersion.TV2, client=client, recording=recording)
    verdict = runner._judged(runner._performed(case_of(VIOLATED), case, "the broker is gone", 0.2))
    assert verdict.verdict is Verdict.FAIL
    written = read_script(tmp_path / "runs" / VIOLATED.case / "script.json")
    assert judge(written) == verdict
    assert (written.generation, written.features, written.broke) == (
        "TV2",
        {"transaction.version": 2},
        "the broker is gone",
    )
    assert [each.api for each in written.exchanges] == ["EndTxn"]
    inapplicable = runner._judged(replace(runner._empty(case_of(PASSED)), inapplicable="nothing of it applies"))
    assert inapplicable.verdict is Verdict.NOT_APPLICABLE
    assert read_script(tmp_path / "runs" / PASSED.case / "script.json").inapplicable == "nothing of it applies"


@pytest.mark.parametrize(
    ("release", "runtime", "missing", "expected"),
    [
        ("4.3.1", "docker", "not run in containers: clusters there have no secured listener", Verdict.NOT_APPLICABLE),
        ("2.8.2", "local", "there is a metadata quorum", Verdict.INCONCLUSIVE),
    ],
)
def test_what_the_harness_cannot_try_is_not_kept(
    tmp_path: Path, release: str, runtime: str, missing: str, expected: Verdict
) -> None:
    """A case that needs a listener which cannot start here is no PASS, and neither are its requirements."""
    case = replace(case_of(PASSED), needs=SECURED)
    verdict = bare_runner(tmp_path, release=release, runtime=runtime).perform(case)
    assert verdict.verdict is expected
    assert missing in verdict.reason
    assert [(each.id, each.verdict) for each in verdict.requirements] == [("IDEMP-07", expected)]


def test_a_case_that_does_not_apply_needs_no_listener(tmp_path: Path) -> None:
    """TV2 begins with 4.0: such a case does not apply to 2.8.2, even if it needs a secured listener."""
    case = replace(case_of(PASSED), needs=SECURED, transaction_version=TransactionVersion.TV2)
    assert bare_runner(tmp_path, release="2.8.2").perform(case).verdict is Verdict.NOT_APPLICABLE


def test_links_that_cannot_hold_frames_are_an_unmet_precondition() -> None:
    """On a cluster whose links cannot be led through the harness, a case about held requests is INCONCLUSIVE."""
    recording = ScriptRecorder()
    case = object.__new__(CaseContext)
    case.recording, case.cluster = recording, MagicMock(spec=ZooKeeperCluster)
    with pytest.raises(UnmetError), tampered(case, FrameFilter(api="Fetch"), Hold()):
        pytest.fail("nothing can be held")
    assert [(each.required, each.holds) for each in recording.statements] == [(True, False)]


def test_a_case_that_needs_local_processes_is_left_out_in_containers() -> None:
    """It says so, and which runtime it needs; a machine with a Docker engine would have no decision otherwise."""
    case = object.__new__(CaseContext)
    case.recording, case.cluster = ScriptRecorder(), MagicMock(spec=DockerCluster)
    with (
        pytest.raises(NotApplicableError, match=r"not run in containers.*--runtime local"),
        tampered(case, FrameFilter(api="Fetch"), Hold()),
    ):
        pytest.fail("nothing can be held")


def test_a_setting_that_cannot_be_taken_back_ends_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not stop keeps the setting: the next case must get another cluster."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "broker-1.properties").write_text("", encoding="utf-8")
    case = MagicMock()
    case.cluster = MagicMock(spec=LocalCluster, directory=tmp_path)
    stops = MagicMock(side_effect=[nullcontext(), ClusterUnhealthyError("Broker 1 does not stop.")])
    monkeypatch.setattr("runner.protocol.toolkit.brokers.stopped", stops)
    with pytest.raises(ClusterUnhealthyError), settings.restarted(case, 1, "a.setting", "1"):
        case.cluster.close.assert_not_called()
    case.cluster.close.assert_called_once_with()


@pytest.mark.parametrize(
    ("observed", "verdict"), [(0, Verdict.FAIL), (48, Verdict.NOT_APPLICABLE)], ids=["violated", "held"]
)
def test_what_was_violated_before_a_case_proves_inapplicable_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, observed: int, verdict: Verdict
) -> None:
    """A case may find during its script that the release lacks its subject; earlier statements are kept."""

    def play(case: Any) -> None:
        case.recording.state("a late batch", observed, Relation.EQUALS, 48, required=False)
        raise NotApplicableError("the state cannot be read before 3.0")

    runner = served_runner(tmp_path, monkeypatch)
    case = replace(case_of(PASSED), transaction_version=TransactionVersion.TV1, play=play)
    assert runner.perform(case).verdict is verdict
    written = read_script(tmp_path / "runs" / PASSED.case / "script.json")
    assert (written.inapplicable, len(written.statements)) == ("the state cannot be read before 3.0", 1)


def test_an_answer_that_never_came_decides_nothing() -> None:
    """Its code cannot be taken for a wrong one: a slow machine would refute requirements."""
    answer = Response(exchange=3, api="EndTxn", version=4, body=None, error="waited 10 s")
    for look in (lambda: answer.code, lambda: answer.codes, lambda: answer["ErrorCode"]):
        with pytest.raises(NoAnswerError, match=r"answer 3 .* never came: waited 10 s"):
            look()


def test_codes_are_found_by_their_place() -> None:
    """An answer about partitions has a code for each; its own code counts if it is an error."""
    topics = [{"Name": "orders", "Partitions": [{"PartitionIndex": 0, "ErrorCode": 48}]}]
    told = Response(exchange=1, api="TxnOffsetCommit", version=4, body={"ErrorCode": 0, "Topics": topics})
    assert (told.codes, told.code) == ({"orders-0": 48}, 48)
    assert Response(exchange=1, api="EndTxn", version=4, body={"ErrorCode": 90}).codes == {"": 90}


def test_a_new_topic_is_waited_for_at_every_broker() -> None:
    """Brokers get a new topic one after the other. A single broker is not asked, because its leader has answered by then."""
    asked: list[int] = []
    unheard = {1: 0, 2: 2}

    def call(api: str, body: Any, *, broker: int) -> Any:
        assert (api, body["Topics"]) == ("Metadata", [{"Name": "orders"}])
        asked.append(broker)
        unheard[broker] -= 1
        return {"Topics": [{"ErrorCode": 3 if unheard[broker] >= 0 else 0}]}

    case = object.__new__(CaseContext)
    case.recording = ScriptRecorder()
    case.client = SimpleNamespace(metadata=lambda _: SimpleNamespace(brokers=unheard), call=call)  # type: ignore[assignment]
    case.await_topic("orders")
    assert asked == [1, 2, 2, 2]
    assert [(each.required, each.holds) for each in case.recording.statements] == [(True, True)] * 2
    del unheard[2]
    case.await_topic("orders")
    assert asked == [1, 2, 2, 2]
