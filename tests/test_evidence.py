"""A run directory is judged as a whole or refused by name; written and read back, planted evidence means the same."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from reports.surroundings import around
from tests import planted_writes
from tests.planted_cases import CASES
from tests.planted_files import write
from tests.test_agreement import comparable
from tests.test_reference import as_found
from verification import findings, readme_file
from verification.__main__ import main
from verification.coordination import EVER, failing_ms, illegal_transitions, rows, unjudged
from verification.errors import UnfitEvidenceError
from verification.evidence import check_distinct, read_run
from verification.folding import fold
from verification.history import Entry, FaultRecord, Operation, Phase
from verification.layout import CONTENTS, RunDirectory
from verification.reference import judge_rows, summary
from verification.rows import all_rows
from verification.transaction_log import TOPIC
from verification.verdict import ExitCode, ScenarioVerdict, Verdict, Violation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A clean run on disk, in a directory whose name needs escaping."""
    return write(planted_writes.clean("on-disk")[0], tmp_path / "a run + 100%")


def _cut_history(run: RunDirectory) -> None:
    lines = run.history.read_text().splitlines(keepends=True)
    run.history.write_text("".join(lines[:-1]))


def _cut_line(run: RunDirectory) -> None:
    run.history.write_text(run.history.read_text()[:-30])


def _cut_gzip(run: RunDirectory) -> None:
    path = run.observations / "careful.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])


def _cut_parquet(run: RunDirectory) -> None:
    path = next(run.log.glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:200])


def _foreign_parquet(run: RunDirectory) -> None:
    shutil.copy(next(run.committed.glob("*.parquet")), next(run.log.glob("*.parquet")))


def _with_wider_offsets(run: RunDirectory) -> None:
    path = next(run.log.glob("*.parquet"))
    table = pq.read_table(path)
    at = table.schema.get_field_index("offset")
    pq.write_table(table.set_column(at, "offset", table["offset"].cast("float64")), path)


def _with_one_more_column(run: RunDirectory) -> None:
    path = next(run.log.glob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.append_column("mine", table["offset"]), path)


def _without_an_end(run: RunDirectory) -> None:
    body = json.loads(run.captures.read_text())
    run.captures.write_text(json.dumps({**body, "ends": body["ends"][1:]}))


def _with_a_crowd(run: RunDirectory) -> None:
    body = json.loads(run.experiment.read_text())
    crowd = [{**body["observers"][0], "name": f"observer-{number}"} for number in range(64)]
    run.experiment.write_text(json.dumps({**body, "observers": crowd}))


def _captured(run: RunDirectory, **changes: object) -> None:
    body = json.loads(run.captures.read_text())
    run.captures.write_text(json.dumps({**body, **changes}))


def _topic_that(run: RunDirectory, **state: object) -> None:
    _captured(run, topics=[{"topic": "a", "partitions": 2, **state}])


def _with_an_end_too_many(run: RunDirectory) -> None:
    ends = json.loads(run.captures.read_text())["ends"]
    _captured(run, ends=[*ends, {**ends[0], "partition": 7}])


def _with_deleted_records(run: RunDirectory) -> None:
    _captured(run, ends=[{**end, "start": 3} for end in json.loads(run.captures.read_text())["ends"]])


def _back_in_time(run: RunDirectory) -> None:
    lines = run.history.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"decided_ns"' in line)
    body = json.loads(lines[at])
    lines[at] = json.dumps({**body, "completed_ns": body["invoked_ns"] - 1}) + "\n"
    run.history.write_text("".join(lines))


def _polls(run: RunDirectory, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = run.observations / "eager.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(change(lines))))


def _clock_of_an_observer(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], json.dumps({**json.loads(lines[-1]), "received_ns": 1}).encode() + b"\n"]


def _foreign_experiment(run: RunDirectory) -> None:
    run.experiment.write_text(json.dumps({"format": 99}))


def _another_run(run: RunDirectory) -> None:
    run.history.write_text(run.history.read_text().replace('"run": "on-disk"', '"run": "another"', 1))


def _two_inputs(run: RunDirectory) -> None:
    body = json.loads(run.experiment.read_text())
    run.experiment.write_text(json.dumps({**body, "fan_out": 2}))


def _foreign_acks(run: RunDirectory) -> None:
    (run.acks / "witness.jsonl.gz").write_bytes(gzip.compress(b""))


def _some_acks(run: RunDirectory) -> Path:
    return next(path for path in sorted(run.acks.glob("*.jsonl.gz")) if gzip.decompress(path.read_bytes()))


def _junk_acks(run: RunDirectory) -> None:
    _some_acks(run).write_bytes(gzip.compress(b"these are no acknowledgements\n"))


def _narrow_acks(run: RunDirectory) -> None:
    _some_acks(run).write_bytes(gzip.compress(b'{"operation": 0, "acks": [[0, 0, 0]]}\n'))


def _headless(run: RunDirectory) -> None:
    run.history.write_text(run.history.read_text().replace('"run": "on-disk", ', "", 1))


def _undecodable(run: RunDirectory) -> None:
    run.history.write_bytes(run.history.read_bytes() + b"\xff\xfe\n")


#: A header and an entry of a transaction log.
HEADER = ({"type": "header", "format": 1, "run": "on-disk", "ranges": [{"partition": 0, "start": 0, "end": 9}]},)
ENTRY = {"type": "entry", "partition": 0, "offset": 3, "transactional_id": "x", "state": "Empty"}


def _tell(run: RunDirectory, *bodies: dict[str, object]) -> None:
    run.transaction_log.write_bytes(gzip.compress("".join(json.dumps(body) + "\n" for body in bodies).encode()))


def _told(*entries: dict[str, object], **header: object) -> tuple[dict[str, object], ...]:
    return ({**HEADER[0], **header}, *entries, {"type": "footer", "entries": len(entries)})


def _cut_transaction_log(run: RunDirectory) -> None:
    _tell(run, *_told(ENTRY))
    run.transaction_log.write_bytes(run.transaction_log.read_bytes()[:-20])


def _another_log(run: RunDirectory) -> None:
    _tell(run, *_told(run="another"))


def _log_outside(run: RunDirectory) -> None:
    _tell(run, *_told({**ENTRY, "offset": 9}))


def _log_twice(run: RunDirectory) -> None:
    _tell(run, *_told(ENTRY, ENTRY))


def _newer_log(run: RunDirectory) -> None:
    _tell(run, *_told(ENTRY, format=2))


def _junk_log(run: RunDirectory) -> None:
    run.transaction_log.write_bytes(gzip.compress(b"this is no transaction log\n"))


def _typed_log(run: RunDirectory) -> None:
    _tell(run, *_told({**ENTRY, "epoch": "1"}))


DAMAGE: dict[str, tuple[Callable[[RunDirectory], object], str]] = {
    "no experiment": (lambda run: run.experiment.unlink(), "scenario.json does not exist"),
    "foreign experiment": (_foreign_experiment, "scenario.json is not of scenario format"),
    "no history": (lambda run: run.history.unlink(), "history.jsonl does not exist"),
    "history without footer": (_cut_history, "history.jsonl has no footer .* the run was cut"),
    "history cut in a line": (_cut_line, "history.jsonl: line .* the run was cut"),
    "two runs": (_another_run, "history.jsonl is of run another"),
    "no captures": (lambda run: run.captures.unlink(), "captures.json cannot be read"),
    "cut captures": (lambda run: run.captures.write_text("{"), "captures.json cannot be read"),
    "no log": (lambda run: shutil.rmtree(run.log), "log is missing"),
    "unfinished capture": (lambda run: (run.committed / "_SUCCESS").unlink(), "committed is missing or was never"),
    "cut Parquet": (_cut_parquet, "log/.*parquet is not readable Parquet"),
    "foreign Parquet": (_foreign_parquet, "log/.*parquet lacks the columns"),
    "Parquet of other types": (_with_wider_offsets, r"log/.*parquet lacks the columns \['offset'\]"),
    "Parquet with a foreign column": (_with_one_more_column, "log/.*parquet has the columns .*'mine'"),
    "captures without an end": (_without_an_end, "captures.json has no end of "),
    "more observers than bits": (_with_a_crowd, "has 64 observers; at most 63"),
    "no acknowledgements": (lambda run: shutil.rmtree(run.acks), "has no acknowledgement of operation"),
    "acknowledgements of one process gone": (lambda run: _some_acks(run).unlink(), "has no acknowledgement of oper"),
    "junk for acknowledgements": (_junk_acks, "line 1 holds no acknowledgements"),
    "acknowledgements cut in width": (_narrow_acks, "line 1 has an acknowledgement without 5 entries"),
    "history of nobody": (_headless, "names no run or no clock"),
    "history that is no text": (_undecodable, "history.jsonl: line .* the run was cut"),
    "no observations": (lambda run: shutil.rmtree(run.observations), "careful.jsonl.gz is missing"),
    "cut observations": (_cut_gzip, "careful.jsonl.gz does not read to its end"),
    "foreign acks": (_foreign_acks, "witness.jsonl.gz is not named after a process"),
    "cut transaction log": (_cut_transaction_log, "transaction_log.jsonl.gz cannot be read as a transaction log"),
    "transaction log without footer": (lambda run: _tell(run, *HEADER), "transaction_log.jsonl.gz has no footer"),
    "transaction log of another run": (_another_log, "transaction_log.jsonl.gz is of run another"),
    "transaction log outside its range": (
        _log_outside,
        "transaction_log.jsonl.gz: Empty of x at .* outside the ranges",
    ),
    "transaction log with two at one offset": (_log_twice, "shares its offset with another record"),
    "transaction log of a newer format": (_newer_log, "transaction_log.jsonl.gz has format 2"),
    "junk for a transaction log": (_junk_log, "transaction_log.jsonl.gz cannot be read as a transaction log"),
    "transaction log with a text for an epoch": (_typed_log, "an entry has a field of another type"),
    "a compacted topic": (lambda run: _topic_that(run, cleanup_policy="delete, compact"), "a is compacted"),
    "a topic made anew": (lambda run: _topic_that(run, first_id="x", last_id="y"), "a was made anew .*x became y"),
    "a topic that grew": (lambda run: _topic_that(run, partitions=3), "has 3 partitions at the end and not 2"),
    "an unknown partition": (_with_an_end_too_many, "has an end of a-7, which the experiment does not know"),
    "deleted records": (_with_deleted_records, "the log of partition . of topic . begins at 3"),
    "an operation back in time": (_back_in_time, r"history.jsonl: operation \d+ of process \d+ goes back in time"),
    "an observer back in time": (lambda run: _polls(run, _clock_of_an_observer), "eager.* goes back in time"),
    "polls in another order": (lambda run: _polls(run, lambda lines: lines[::-1]), "eager.* comes after poll"),
    "polls without a time": (
        lambda run: _polls(run, lambda _: [b"{}"]),
        "eager.*: line 1 is no poll with poll and received_ns",
    ),
    "copies without one input": (_two_inputs, "copies from 0 input topics"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_evidence_is_refused_by_name(name: str, directory: RunDirectory) -> None:
    """Whatever is missing, cut or foreign is named in one sentence, before anything is judged."""
    damage, sentence = DAMAGE[name]
    damage(directory)
    with pytest.raises(UnfitEvidenceError, match=sentence):
        read_run(directory)


def test_only_the_offsets_of_the_copiers_own_group_count(tmp_path: Path) -> None:
    """What the cluster has for the experiment's group decides; another group's offsets say nothing about these copies."""
    run = write(CASES["clean_copies"]("copies")[0], tmp_path / "copies")
    (own,) = json.loads(run.captures.read_text())["group_offsets"]
    _captured(run, group_offsets=[own, {**own, "group": "somebody else's", "offset": 10}])
    assert judge_rows(all_rows(read_run(run))) == []
    _captured(run, group_offsets=[{**own, "offset": 5}])
    assert {str(each.anomaly) for each in judge_rows(all_rows(read_run(run)))} == {"output-without-offset"}


def test_the_order_of_fields_in_a_poll_does_not_matter(directory: RunDirectory) -> None:
    """A harness may write a poll's records first; its number and time are found all the same."""

    def records_first(lines: list[bytes]) -> list[bytes]:
        return [json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n" for line in lines]

    before = judge_rows(all_rows(read_run(directory)))
    _polls(directory, records_first)
    assert judge_rows(all_rows(read_run(directory))) == before
    _polls(directory, lambda lines: lines[::-1])
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
    from verification import verdict_file
    from verification.judge import judge

    names = ("clean", "lost_append", "skipped", "hung", "without_log", "copied_twice", "early_read")
    runs = [write(CASES[name](name[:12])[0], tmp_path / f"{name} é 100%") for name in names]
    cut = write(planted_writes.clean("cut")[0], tmp_path / "cut")
    _cut_history(cut)
    verdicts = judge(spark, [cut, *runs])
    assert [each.verdict for each in verdicts[:3]] == [Verdict.ERROR, Verdict.PASS, Verdict.FAIL]
    assert "the run was cut" in verdicts[0].reason
    for name, run, verdict in zip(names, runs, verdicts[1:], strict=True):
        _, expected = CASES[name](name[:12])
        folded_away = {("torn-transaction", "hung")}
        anomalies = {each[0] for each in expected if (each[0], name) not in folded_away}
        assert {each.anomaly for each in verdict.findings} == anomalies, name
        assert verdict_file.read(run.verdicts) == verdict
        assert {path.name for path in run.findings.iterdir()} == anomalies if anomalies else not run.findings.exists()
    _check_witnesses(dict(zip(names, verdicts[1:], strict=True)))
    (hung,) = verdicts[1 + names.index("hung")].findings
    assert (hung.count, hung.consequences) == (1, 1)
    lines = (runs[names.index("lost_append")].findings / "lost-write" / "violations.jsonl").read_text().splitlines()
    (violation,) = [json.loads(line) for line in lines]
    assert (violation["topic"], violation["partition"]) == ("b", 0)
    around = (runs[names.index("lost_append")].findings / "lost-write" / "records.jsonl").read_text().splitlines()
    assert any(json.loads(line)["offset"] == violation["offset"] for line in around)


def test_the_reference_judges_directories(directory: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m verification --reference` needs no Spark, prints a line per scenario and exits by what it found."""
    bad, expected = planted_writes.lost_append("bad")
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
    _cut_history(directory)
    assert main(["--reference", str(directory.root)]) == ExitCode.ENVIRONMENT
    assert "history.jsonl" in capsys.readouterr().out


def test_the_readme_says_what_was_claimed_and_how_to_go_on(directory: RunDirectory) -> None:
    """Whoever finds a directory without its report learns what it is, from the file alone."""
    experiment = read_run(directory).experiment
    readme_file.write(directory, experiment)
    text = directory.readme.read_text(encoding="utf-8")
    assert experiment.replay in text
    assert " ".join(experiment.claim.split()) in " ".join(text.split())
    assert all(f"\n  {name} " in text for name, _ in CONTENTS)


def _judged_log(run: RunDirectory, *entries: dict[str, object], **header: object) -> str:
    """What the reference says of a clean run with this transaction log."""
    _tell(run, *_told(*entries, **header))
    return summary(judge_rows(all_rows(read_run(run))))


def test_a_transaction_log_is_judged_from_the_file(directory: RunDirectory) -> None:
    """A file of another harness needs only what is not optional, and its histories are judged by both judges."""
    ongoing = {**ENTRY, "offset": 4, "state": "Ongoing", "places": ["a-0"]}
    assert _judged_log(directory, ENTRY, ongoing) == "nothing"
    assert _judged_log(directory, ENTRY, {**ongoing, "state": "CompleteAbort", "places": []}) == "1 illegal-transition"
    assert len(list(illegal_transitions(rows(read_run(directory))))) == 1
    assert _judged_log(directory, ENTRY, {**ongoing, "offset": 5, "state": "CompleteAbort", "places": []}) == "nothing"


def test_a_log_that_could_not_be_read_is_not_judged(directory: RunDirectory) -> None:
    """Evidence without a transaction log, or with a reason for that, is judged, and nobody takes it for a pass."""
    assert unjudged(read_run(directory)) == "this evidence has no transaction log"
    assert _judged_log(directory, unavailable="not allowed", ranges=[]) == "nothing"
    assert unjudged(read_run(directory)) == "not allowed"
    assert _judged_log(directory, ENTRY) == "nothing"
    assert unjudged(read_run(directory)) == "the transaction log has nothing of this run"
    used = next(each.transactional_id for each in read_run(directory).history.of(Operation) if each.transactional_id)
    assert _judged_log(directory, {**ENTRY, "transactional_id": used}) == "nothing"
    assert unjudged(read_run(directory)) == ""


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
    findings.write(run, fold(judge_rows(all_rows(run))), {})
    folder = run.directory.findings / "illegal-transition"
    (line,) = (folder / "violations.jsonl").read_text(encoding="utf-8").splitlines()
    told = json.loads(line)
    ((*_, partition, offset, _),) = expected
    assert (told["topic"], told["partition"], told["offset"]) == ("__transaction_state", partition, offset)
    violation = Violation(anomaly="illegal-transition", topic=TOPIC, partition=partition, offset=offset)
    shown = around(folder / "records.jsonl", violation, run.run)
    assert [row.what.split(": ")[1] for row in shown.rows] == [
        *("Empty", "Ongoing", "PrepareCommit"),
        *("Ongoing", "PrepareCommit", "CompleteCommit"),
    ]
    assert [row.place for row in shown.rows if row.violates] == [f"__transaction_state-{partition}@{offset}"]
    assert shown.rows[0].producer == "id 77, epoch 0"
