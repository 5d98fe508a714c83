"""Damaged run directories: each damage as a function, and the sentence that refuses it."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from verification.evidence.run_directory import RunDirectory


def cut_history(run: RunDirectory) -> None:
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


def _half_copied(run: RunDirectory) -> None:
    path = next(run.uncommitted.glob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.slice(0, table.num_rows // 2), path)


def _marker_alone(run: RunDirectory) -> None:
    change_captures(run, rows={})
    next(run.log.glob("*.parquet")).unlink()


def _without_an_end(run: RunDirectory) -> None:
    body = json.loads(run.captures.read_text())
    run.captures.write_text(json.dumps({**body, "ends": body["ends"][1:]}))


def _with_a_crowd(run: RunDirectory) -> None:
    body = json.loads(run.experiment.read_text())
    crowd = [{**body["observers"][0], "name": f"observer-{number}"} for number in range(64)]
    run.experiment.write_text(json.dumps({**body, "observers": crowd}))


def change_captures(run: RunDirectory, **changes: object) -> None:
    body = json.loads(run.captures.read_text())
    run.captures.write_text(json.dumps({**body, **changes}))


def _topic_that(run: RunDirectory, **state: object) -> None:
    change_captures(run, topics=[{"topic": "a", "partitions": 2, **state}])


def _with_an_end_too_many(run: RunDirectory) -> None:
    ends = json.loads(run.captures.read_text())["ends"]
    change_captures(run, ends=[*ends, {**ends[0], "partition": 7}])


def _with_deleted_records(run: RunDirectory) -> None:
    change_captures(run, ends=[{**end, "start": 3} for end in json.loads(run.captures.read_text())["ends"]])


def _back_in_time(run: RunDirectory) -> None:
    lines = run.history.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"decided_ns"' in line)
    body = json.loads(lines[at])
    lines[at] = json.dumps({**body, "completed_ns": body["invoked_ns"] - 1}) + "\n"
    run.history.write_text("".join(lines))


def _back_to_health(run: RunDirectory) -> None:
    """A fault that was healed before it took hold."""
    *lines, footer = run.history.read_text().splitlines(keepends=True)
    fault = {"type": "fault", "step": 4, "fault": "pause", "description": "d", "target": "t", "began_ns": 5}
    entries = json.loads(footer)["entries"] + 1
    lines += [
        json.dumps({**fault, "applied_ns": 7, "healed_ns": 6}) + "\n",
        json.dumps({**json.loads(footer), "entries": entries}) + "\n",
    ]
    run.history.write_text("".join(lines))


def change_polls(run: RunDirectory, change: Callable[[list[bytes]], list[bytes]]) -> None:
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


def write_log(run: RunDirectory, *bodies: dict[str, object]) -> None:
    run.transaction_log.write_bytes(gzip.compress("".join(json.dumps(body) + "\n" for body in bodies).encode()))


def log_bodies(*entries: dict[str, object], **header: object) -> tuple[dict[str, object], ...]:
    return ({**HEADER[0], **header}, *entries, {"type": "footer", "entries": len(entries)})


def _cut_transaction_log(run: RunDirectory) -> None:
    write_log(run, *log_bodies(ENTRY))
    run.transaction_log.write_bytes(run.transaction_log.read_bytes()[:-20])


def _another_log(run: RunDirectory) -> None:
    write_log(run, *log_bodies(run="another"))


def _log_outside(run: RunDirectory) -> None:
    write_log(run, *log_bodies({**ENTRY, "offset": 9}))


def _log_twice(run: RunDirectory) -> None:
    write_log(run, *log_bodies(ENTRY, ENTRY))


def _newer_log(run: RunDirectory) -> None:
    write_log(run, *log_bodies(ENTRY, format=2))


def _junk_log(run: RunDirectory) -> None:
    run.transaction_log.write_bytes(gzip.compress(b"this is no transaction log\n"))


def _typed_log(run: RunDirectory) -> None:
    write_log(run, *log_bodies({**ENTRY, "epoch": "1"}))


DAMAGE: dict[str, tuple[Callable[[RunDirectory], object], str]] = {
    "no experiment": (lambda run: run.experiment.unlink(), "scenario.json does not exist"),
    "foreign experiment": (_foreign_experiment, "scenario.json is not of scenario format"),
    "no history": (lambda run: run.history.unlink(), "history.jsonl does not exist"),
    "history without footer": (cut_history, "history.jsonl has no footer .* the run was cut"),
    "history cut in a line": (_cut_line, "history.jsonl: line .* the run was cut"),
    "two runs": (_another_run, "history.jsonl is of run another"),
    "no captures": (
        lambda run: run.captures.unlink(),
        "captures.json does not exist; the run ended before its capture",
    ),
    "cut captures": (lambda run: run.captures.write_text("{"), "captures.json is not readable JSON"),
    "no log": (lambda run: shutil.rmtree(run.log), "log is missing"),
    "unfinished capture": (lambda run: (run.committed / "_SUCCESS").unlink(), "committed is missing or was never"),
    "half a capture": (_half_copied, "uncommitted has .* rows and not the .* that were captured"),
    "a capture's marker alone": (_marker_alone, "log holds no Parquet"),
    "rows that are no numbers": (
        lambda run: change_captures(run, rows=[1]),
        "captures.json does not fit captures format 1",
    ),
    "cut Parquet": (_cut_parquet, "log/.*parquet is not readable Parquet"),
    "foreign Parquet": (_foreign_parquet, "log/.*parquet lacks the columns"),
    "Parquet of other types": (_with_wider_offsets, r"log/.*parquet lacks the columns \['offset'\]"),
    "Parquet with a foreign column": (_with_one_more_column, "log/.*parquet has the columns .*'mine'"),
    "captures without an end": (_without_an_end, "captures.json has no end of "),
    "more observers than bits": (_with_a_crowd, "has 64 observers; at most 63"),
    "no acknowledgements": (lambda run: shutil.rmtree(run.acks), "has no acknowledgement of operation"),
    "acknowledgements of one process gone": (lambda run: _some_acks(run).unlink(), "has no acknowledgement of oper"),
    "junk for acknowledgements": (_junk_acks, "line 1 holds no acknowledgements"),
    "acknowledgements cut in width": (_narrow_acks, "line 1 holds no acknowledgements .*at least length 5"),
    "history without an owner": (_headless, "names no run or no clock"),
    "history that is no text": (_undecodable, "history.jsonl: line .* the run was cut"),
    "no observations": (lambda run: shutil.rmtree(run.observations), "careful.jsonl.gz is missing"),
    "cut observations": (_cut_gzip, "careful.jsonl.gz does not read to its end"),
    "foreign acks": (_foreign_acks, "witness.jsonl.gz is not named after a process"),
    "cut transaction log": (_cut_transaction_log, "transaction_log.jsonl.gz cannot be read as a transaction log"),
    "transaction log without footer": (lambda run: write_log(run, *HEADER), "transaction_log.jsonl.gz has no footer"),
    "transaction log of another run": (_another_log, "transaction_log.jsonl.gz is of run another"),
    "transaction log outside its range": (
        _log_outside,
        "transaction_log.jsonl.gz: Empty of x at .* outside the ranges",
    ),
    "transaction log with two at one offset": (_log_twice, "shares its offset with another record"),
    "transaction log of a newer format": (_newer_log, "transaction_log.jsonl.gz has format 2"),
    "junk for a transaction log": (_junk_log, "transaction_log.jsonl.gz cannot be read as a transaction log"),
    "transaction log with a text for an epoch": (_typed_log, "Expected `int`, got `str`"),
    "a compacted topic": (lambda run: _topic_that(run, cleanup_policy="delete, compact"), "a is compacted"),
    "a topic made anew": (lambda run: _topic_that(run, first_id="x", last_id="y"), "a was made anew .*x became y"),
    "a topic that grew": (lambda run: _topic_that(run, partitions=3), "has 3 partitions at the end and not 2"),
    "an unknown partition": (_with_an_end_too_many, "has an end of a-7, which the experiment does not know"),
    "deleted records": (_with_deleted_records, "the log of partition . of topic . begins at 3"),
    "an operation back in time": (_back_in_time, r"history.jsonl: operation \d+ of process \d+ goes back in time"),
    "a fault back in time": (_back_to_health, "history.jsonl: step 4 goes back in time"),
    "an observer back in time": (lambda run: change_polls(run, _clock_of_an_observer), "eager.* goes back in time"),
    "polls in another order": (lambda run: change_polls(run, lambda lines: lines[::-1]), "eager.* comes after poll"),
    "polls without a time": (
        lambda run: change_polls(run, lambda _: [b"{}"]),
        "eager.*: line 1 is no poll with poll and received_ns",
    ),
    "copies without one input": (_two_inputs, "copies from 0 input topics"),
}
