"""A run directory is judged as a whole or refused by name; written and read back, planted evidence means the same."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from reports.loading.finding_records import read
from reports.loading.log_context import around
from tests.support.damaged_runs import DAMAGE, ENTRY, change_captures, change_polls, cut_history, log_bodies, write_log
from tests.support.planted import writes
from tests.support.planted.cases import CASES, MIXED, anomalies, mixed
from tests.support.planted.files import write
from tests.verification.judge.test_agreement import comparable
from tests.verification.judge.test_reference import as_found
from verification.__main__ import main
from verification.checks.transaction_log import illegal_transitions
from verification.evidence import readme_file
from verification.evidence.rows import all_rows
from verification.evidence.run_directory import CONTENTS, RunDirectory
from verification.evidence.run_evidence import RunEvidence, check_distinct, read_run
from verification.evidence.transaction_log_rows import EVER, failing_ms, rows, unjudged
from verification.judge import finding_files
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows, summary
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.history import Action, Entry, FaultRecord, Operation, Outcome, Phase
from verification.vocabulary.transaction_log import TOPIC
from verification.vocabulary.verdict import ExitCode, ScenarioVerdict, Verdict, Violation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A clean run on disk, in a directory whose name needs escaping."""
    return write(writes.clean("on-disk")[0], tmp_path / "a run + 100%")


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_evidence_is_refused_by_name(name: str, directory: RunDirectory) -> None:
    """Whatever is missing, cut or foreign is named in one sentence, before anything is judged."""
    damage, sentence = DAMAGE[name]
    damage(directory)
    with pytest.raises(UnfitEvidenceError, match=sentence):
        read_run(directory)


def test_evidence_of_before_a_column_was_captured_is_whole(directory: RunDirectory) -> None:
    """A log without leader epochs, as earlier versions left it, is judged; one with them under another type is not."""
    (part,) = directory.log.glob("*.parquet")
    log = pq.read_table(part)
    pq.write_table(log.drop_columns(["leader_epoch"]), part)
    assert judge_rows(all_rows(read_run(directory))) == []
    wider = log.schema.get_field_index("leader_epoch")
    pq.write_table(log.set_column(wider, "leader_epoch", log["leader_epoch"].cast("int64")), part)
    with pytest.raises(UnfitEvidenceError, match=r"lacks the columns \['leader_epoch'\]"):
        read_run(directory)


def test_only_the_offsets_of_the_copiers_own_group_count(tmp_path: Path) -> None:
    """What the cluster has for the experiment's group decides; another group's offsets say nothing about these copies."""
    run = write(CASES["clean_copies"]("copies")[0], tmp_path / "copies")
    (own,) = json.loads(run.captures.read_text())["group_offsets"]
    change_captures(run, group_offsets=[own, {**own, "group": "another", "offset": 10}])
    assert judge_rows(all_rows(read_run(run))) == []
    change_captures(run, group_offsets=[{**own, "offset": 5}])
    assert {str(each.anomaly) for each in judge_rows(all_rows(read_run(run)))} == {"output-without-offset"}


def test_the_order_of_fields_in_a_poll_does_not_matter(directory: RunDirectory) -> None:
    """A harness may write a poll's records first; its number and time are found anyway."""

    def records_first(lines: list[bytes]) -> list[bytes]:
        return [json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n" for line in lines]

    before = judge_rows(all_rows(read_run(directory)))
    change_polls(directory, records_first)
    assert judge_rows(all_rows(read_run(directory))) == before
    change_polls(directory, lambda lines: lines[::-1])
    with pytest.raises(UnfitEvidenceError, match="comes after poll"):
        read_run(directory)


def test_one_run_cannot_be_judged_twice_at_once(directory: RunDirectory, tmp_path: Path) -> None:
    """Two directories of one run would mix their records, so they are refused together."""
    copy = tmp_path / "copy"
    shutil.copytree(directory.root, copy)
    with pytest.raises(UnfitEvidenceError, match="both hold run on-disk"):
        check_distinct([read_run(directory), read_run(RunDirectory(copy))])


@pytest.mark.parametrize("name", CASES)
def test_files_say_what_was_planted(name: str, tmp_path: Path) -> None:
    """A planted run that was written and read back is judged as it is in memory."""
    plant, _ = CASES[name]("on-disk")
    again = all_rows(read_run(write(plant, tmp_path / "run")))
    assert comparable(judge_rows(again)) == comparable(judge_rows(plant.rows))


def _check_witnesses(verdicts: dict[str, ScenarioVerdict]) -> None:
    """Each finding names what contradicts what: the places, what decided them, who was given them, what was told."""
    witnesses = {name: {each.anomaly: each.witness for each in verdicts[name].findings} for name in verdicts}
    for found in witnesses.values():
        assert all(each is not None and each.why and each.places and each.operations for each in found.values())
    early, lost = witnesses["early_read"]["early-read"], witnesses["lost_append"]["lost-write"]
    twice, hung = witnesses["copied_twice"]["duplicate"], witnesses["hung"]["hung-transaction"]
    assert early is not None
    assert lost is not None
    assert twice is not None
    assert hung is not None
    assert [each.holds for each in early.places] == ["record", "commit marker"]
    assert early.places[0].given_to == ("committed capture", "uncommitted capture", "careful", "eager")
    assert early.operations[0].told == "committed"
    assert (early.operations[0].decided_ns or 0) > early.operations[0].invoked_ns
    # The acknowledged place holds another operation's record by now.
    held = {(each.process, each.operation) for each in lost.places}
    assert {(each.process, each.operation) for each in lost.operations} > held
    assert [each.topic for each in twice.places if each.holds == "record"] == ["out", "out"]
    assert [(each.holds, each.outcome) for each in hung.places] == [("record", "open")]


@pytest.mark.spark
def test_the_judge_reads_the_same_files(spark: SparkSession, tmp_path: Path) -> None:
    """From files, through Spark, to verdicts.json: findings, folding, a sentence for a cut run, all in one job."""
    from verification.evidence import verdict_file
    from verification.judge.judge import judge

    runs = mixed(tmp_path, " é 100%")
    cut = write(writes.clean("cut")[0], tmp_path / "cut")
    cut_history(cut)
    verdicts = judge(spark, [cut, *runs])
    assert [each.verdict for each in verdicts[:3]] == [Verdict.ERROR, Verdict.PASS, Verdict.FAIL]
    assert "the run was cut" in verdicts[0].reason
    for name, run, verdict in zip(MIXED, runs, verdicts[1:], strict=True):
        expected = anomalies(name)
        assert {each.anomaly for each in verdict.findings} == expected, name
        assert verdict_file.read(run.verdicts) == verdict
        assert {path.name for path in run.findings.iterdir()} == expected if expected else not run.findings.exists()
    _check_witnesses(dict(zip(MIXED, verdicts[1:], strict=True)))
    (hung,) = verdicts[1 + MIXED.index("hung")].findings
    assert (hung.count, hung.consequences) == (1, 1)
    lines = (runs[MIXED.index("lost_append")].findings / "lost-write" / "violations.jsonl").read_text().splitlines()
    (violation,) = [json.loads(line) for line in lines]
    assert (violation["topic"], violation["partition"]) == ("b", 0)
    around = (runs[MIXED.index("lost_append")].findings / "lost-write" / "records.jsonl").read_text().splitlines()
    assert any(json.loads(line)["offset"] == violation["offset"] for line in around)


def test_the_reference_judges_directories(directory: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m verification --reference` needs no Spark, prints a line per scenario and exits by what it found."""
    bad, expected = writes.lost_append("bad")
    write(bad, directory.root.parent / "runs" / "bad")
    assert main(["--reference", str(directory.root)]) == ExitCode.CONFORMANT
    assert main(["--reference", str(directory.root.parent)]) == ExitCode.VIOLATION
    assert f"{len(expected)} lost-write" in capsys.readouterr().out
    assert {as_found(each)[0] for each in judge_rows(bad.rows)} == {"lost-write"}


@pytest.mark.parametrize("arguments", [["--reference"], []])
def test_a_bad_path_is_one_sentence(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that holds no evidence is a usage error with one sentence, and nothing is started."""
    assert main([*arguments, str(tmp_path / "nothing")]) == ExitCode.USAGE
    assert capsys.readouterr().err.count("\n") == 1


def test_a_cut_directory_is_an_environment_error(directory: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """Evidence that cannot be judged ends in ERROR's exit code and names the file."""
    cut_history(directory)
    assert main(["--reference", str(directory.root)]) == ExitCode.ENVIRONMENT
    assert "history.jsonl" in capsys.readouterr().out


def test_the_readme_says_what_was_claimed_and_how_to_go_on(directory: RunDirectory) -> None:
    """README.txt alone explains a directory without its report."""
    experiment = read_run(directory).experiment
    readme_file.write(directory, experiment)
    text = directory.readme.read_text(encoding="utf-8")
    assert experiment.replay in text
    assert " ".join(experiment.claim.split()) in " ".join(text.split())
    assert all(f"\n  {name} " in text for name, _ in CONTENTS)


def _judged_log(run: RunDirectory, *entries: dict[str, object], **header: object) -> str:
    """The reference's verdict on a clean run with this transaction log."""
    write_log(run, *log_bodies(*entries, **header))
    return summary(judge_rows(all_rows(read_run(run))))


def test_a_transaction_log_is_judged_from_the_file(directory: RunDirectory) -> None:
    """A file of another harness needs only the required fields, and both judges judge its histories."""
    ongoing = {**ENTRY, "offset": 4, "state": "Ongoing", "places": ["a-0"]}
    assert _judged_log(directory, ENTRY, ongoing) == "nothing"
    assert _judged_log(directory, ENTRY, {**ongoing, "state": "CompleteAbort", "places": []}) == "1 illegal-transition"
    assert len(list(illegal_transitions(rows(read_run(directory))))) == 1
    assert _judged_log(directory, ENTRY, {**ongoing, "offset": 5, "state": "CompleteAbort", "places": []}) == "nothing"


def test_a_log_that_could_not_be_read_is_not_judged(directory: RunDirectory) -> None:
    """Evidence without a transaction log, or with a reason for that, is judged, but its log does not pass."""
    assert unjudged(read_run(directory)) == "this evidence has no transaction log"
    assert _judged_log(directory, unavailable="not allowed", ranges=[]) == "nothing"
    assert unjudged(read_run(directory)) == "not allowed"
    assert _judged_log(directory, ENTRY) == "nothing"
    assert unjudged(read_run(directory)) == "the transaction log has nothing of this run"
    assert _judged_log(directory, *_of_every_id(read_run(directory))) == "nothing"
    assert unjudged(read_run(directory)) == ""


def _of_every_id(run: RunEvidence) -> list[dict[str, object]]:
    """An entry of each transactional id of a run."""
    used = sorted({each.transactional_id for each in run.history.of(Operation) if each.transactional_id is not None})
    return [
        {**ENTRY, "offset": place, "transactional_id": each, "producer_id": place} for place, each in enumerate(used)
    ]


def test_every_id_that_was_initialised_must_be_in_the_log(directory: RunDirectory) -> None:
    """A log that lacks one of the run's ids was not read whole; who was refused need not be in it."""
    write_log(directory, *log_bodies(*_of_every_id(read_run(directory))))
    run = read_run(directory)
    used = next(each for each in run.history.of(Operation) if each.transactional_id)

    def said(*outcomes: Outcome) -> str | None:
        others = [
            replace(used, operation=1_000 + at, action=Action.INIT, outcome=outcome, transactional_id=f"other-{at}")
            for at, outcome in enumerate(outcomes)
        ]
        return unjudged(replace(run, history=replace(run.history, entries=(*run.history.entries, *others))))

    assert said(Outcome.FAIL, Outcome.INFO) == ""
    assert said(Outcome.OK) == "the transaction log has nothing of other-0, whose initialisation ended ok"
    assert "of other-0, other-1, other-2, other-3 and others, whose" in str(said(*[Outcome.OK] * 5))


def test_appends_may_fail_from_before_the_first_fault_to_the_recovery(directory: RunDirectory) -> None:
    """The history dates when a coordinator may have gone back: by the transaction timeout before the first fault on."""
    run = read_run(directory)
    assert failing_ms(run) is None
    anchor_ms = 1_700_000_000_000
    fault = FaultRecord(step=0, fault="crash", description="", target="", began_ns=20_000_000_000)
    recovery = Phase(name="await recovery", began_ns=30_000_000_000, ended_ns=35_000_000_000)
    anchored = replace(run.history, wall_clock_anchor="2023-11-14T22:13:20+00:00", anchor_ns=10_000_000_000)

    def window(*entries: Entry, runtime: str = "local") -> tuple[int, int] | None:
        history = replace(anchored, entries=(*run.history.entries, *entries))
        told = replace(run.experiment, transaction_timeout_s=6.0, runtime=runtime)
        return failing_ms(replace(run, history=history, experiment=told))

    assert window(fault, recovery) == (anchor_ms + 4_000, anchor_ms + 25_000)
    assert window(fault) == (anchor_ms + 4_000, EVER[1])
    assert window(fault, replace(recovery, note="gave up")) == (anchor_ms + 4_000, EVER[1])
    assert window(fault, recovery, runtime="elsewhere") == EVER


def test_an_illegal_transition_is_shown_among_the_states_around_it(tmp_path: Path) -> None:
    """The finding's files have the records of the same id, and a report shows them with the wrong one marked."""
    plant, expected = CASES["decided_twice"]("twice")
    run = read_run(write(plant, tmp_path / "run"))
    finding_files.write(run, attribute(judge_rows(all_rows(run))), {})
    folder = run.directory.findings / "illegal-transition"
    (line,) = (folder / "violations.jsonl").read_text(encoding="utf-8").splitlines()
    told = json.loads(line)
    ((*_, partition, offset, _),) = expected
    assert (told["topic"], told["partition"], told["offset"]) == ("__transaction_state", partition, offset)
    violation = Violation(anomaly="illegal-transition", topic=TOPIC, partition=partition, offset=offset)
    shown = around(read(folder / "records.jsonl"), violation, run.run)
    assert [row.what.split(": ")[1] for row in shown.rows] == [
        *("Empty", "Ongoing", "PrepareCommit"),
        *("Ongoing", "PrepareCommit", "CompleteCommit"),
    ]
    assert [row.place for row in shown.rows if row.violates] == [f"__transaction_state-{partition}@{offset}"]
    assert shown.rows[0].producer == "id 77, epoch 0"
