"""Select the log entries around a violation from `findings/<anomaly>/records.jsonl`.

The file has the log entries of every example's operation and their neighbours. Shown are those of one example: its own
transaction or operation, and its neighbours in the same partition. If there is no room for all, entries with a rare
result come first, because a violation is a difference.

For an illegal transition the file has the transaction log records of one transactional id, which are shown unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports.loading.finding_records import FindingRecords, problem_of
from reports.model.findings import LogRow
from verification.vocabulary.history import Told
from verification.vocabulary.verdict import Violation

#: More rows would copy the log, which is next to the page.
ROWS_MAX = 12
#: Offsets before and after the violation's own.
AROUND = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContext:
    """The rows, the number of log entries in the file, and its problem, if any."""

    rows: tuple[LogRow, ...] = ()
    count: int = 0
    problem: str = ""


def around(records: FindingRecords, violation: Violation, run: str) -> LogContext:
    """The log around one violation; `run` is the topic prefix to leave out. Bad content raises no error."""
    if records.problem:
        return LogContext(problem=records.problem)
    try:
        bodies = records.entries
        ids = {each["transactional_id"] for each in bodies if "state" in each and _is_at(each, violation)}
        chosen = [each for each in bodies if _near(each, violation) or each.get("transactional_id") in ids]
        often = Counter(map(_result, chosen))
        ordered = sorted(chosen, key=lambda each: (often[_result(each)], *_distance(each, violation)))[:ROWS_MAX]
        ordered.sort(key=lambda each: (str(each.get("topic", "")), each["partition"], each["offset"]))
        victims = [each for each in ordered if _is_own(each, violation) and _is_victim(each)]

        def violates(body: Mapping[str, Any]) -> bool:
            own = body in victims if victims else _is_own(body, violation)
            return own or ("state" in body and _is_at(body, violation))

        return LogContext(rows=tuple(_row(each, violates(each), run) for each in ordered), count=len(bodies))
    except (ValueError, KeyError, TypeError) as error:
        return LogContext(problem=problem_of(records.path, error))


def _is_own(body: Mapping[str, Any], violation: Violation) -> bool:
    identity = (body.get("process"), body.get("operation"))
    return identity == (violation.process, violation.operation) and violation.process is not None


def _is_victim(body: Mapping[str, Any]) -> bool:
    """Whether readers received what the client was told is aborted, or not what it was told is committed."""
    return (body.get("told"), bool(body.get("committed", 1))) in ((Told.COMMITTED, False), (Told.ABORTED, True))


def _is_at(body: Mapping[str, Any], violation: Violation) -> bool:
    place = (violation.topic, violation.partition, violation.offset)
    return (body.get("topic"), body.get("partition"), body.get("offset")) == place


def _same_partition(body: Mapping[str, Any], violation: Violation) -> bool:
    return (body.get("topic"), body.get("partition")) == (violation.topic, violation.partition)


def _distance(body: Mapping[str, Any], violation: Violation) -> tuple[bool, int]:
    """The distance from the violation's place; another partition is farther than any offset of this one."""
    return not _same_partition(body, violation), abs(int(body["offset"]) - (violation.offset or 0))


def _near(body: Mapping[str, Any], violation: Violation) -> bool:
    return _is_own(body, violation) or (violation.offset is not None and _distance(body, violation) <= (False, AROUND))


def _result(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The result of a log entry; entries with the same result are examples of each other."""
    names = ("process", "operation", "control", "outcome", "told", "committed", "uncommitted", "received")
    return tuple(str(body.get(name)) for name in names)


def _row(body: Mapping[str, Any], violates: bool, run: str) -> LogRow:
    def count(name: str) -> str:
        return str(body[name]) if name in body else ""

    return LogRow(
        place=f"{str(body.get('topic', '?')).removeprefix(f'{run}-')}-{body['partition']}@{body['offset']}",
        what=_what(body),
        producer=f"id {body['producer_id']}, epoch {body.get('producer_epoch', '?')}"
        if body.get("producer_id", -1) != -1
        else "",
        outcome=str(body.get("outcome", "")) if body.get("in_log", True) else "not in the log",
        told=str(body.get("told", "")),
        committed=count("committed"),
        uncommitted=count("uncommitted"),
        received=count("received"),
        violates=violates,
    )


def _what(body: Mapping[str, Any]) -> str:
    if "state" in body:
        return f"{body['transactional_id']}: {body['state']}"
    if "control" in body:
        return f"marker: {body['control']}"
    if "process" not in body:
        return "record without an identity"
    return f"{body['process']}, {body.get('operation', '?')}, {body.get('index', '?')}"
