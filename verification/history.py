"""The history of one run: what every client did and was told, and what went wrong on purpose.

`history.jsonl` is a header line, one line per entry, and a footer line with the number of entries. A missing footer
means that the run was cut; a judge then has an unfit history. A transaction is *one* line, not one per record: the
records' own acknowledgements are in `acks/`. Every time is CLOCK_MONOTONIC of one host in nanoseconds; the header holds
one wall-clock anchor.

An operation completes as Jepsen's operations do: `ok` it happened, `fail` it did not, `info` nobody can know yet. A
history never guesses: an operation whose process died is `info`, or aborted when its commit had not been invoked,
because nobody else ever asks for that commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

FORMAT = 1
#: Instead of a broker id: the metadata says that the partition has no leader; nobody could say who leads.
NO_LEADER = -1
UNSEEN = -2


class Outcome(StrEnum):
    """How an operation completed."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Action(StrEnum):
    """What a process does in one operation."""

    INIT = "init"
    TRANSACTION = "transaction"
    APPEND = "append"
    COPY = "copy"


class Intent(StrEnum):
    """How the process means to end a transaction."""

    COMMIT = "commit"
    ABORT = "abort"


class Told(StrEnum):
    """What the client was told about a transaction; `unknown` must turn out all or nothing."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRange:
    """Input offsets [first, end) that a copy consumed from one partition."""

    topic: str
    partition: int
    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of one process and how it completed.

    `decided_ns` is when commit or abort was invoked, None when the process never got there. `stage` is the last
    step that was begun (init, poll, begin, produce, offsets, commit, abort, done). `fatal` says that by the error the
    client instance can never go on.
    """

    process: int
    operation: int
    action: Action
    outcome: Outcome
    stage: str
    invoked_ns: int
    decided_ns: int | None = None
    completed_ns: int | None = None
    intent: Intent | None = None
    transactional_id: str | None = None
    records: int = 0
    error_code: int | None = None
    error_name: str | None = None
    error_reason: str | None = None
    fatal: bool = False
    producer_id: int | None = None
    producer_epoch: int | None = None
    inputs: tuple[InputRange, ...] = ()

    @property
    def told(self) -> Told:
        """What the client may rely on once the operation is over.

        An abort that was asked for is aborted whatever was answered: nobody ever asked to commit. The same holds
        for a transaction that ended, or whose process died, before commit was invoked.
        """
        if self.intent is not Intent.COMMIT or self.outcome is Outcome.FAIL or self.decided_ns is None:
            return Told.ABORTED
        return Told.COMMITTED if self.outcome is Outcome.OK else Told.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """One client process: a program instance from its start to its end."""

    process: int
    role: str
    client: str
    site: str
    started_ns: int
    ended_ns: int
    end: str
    reason: str = ""
    transactional_id: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """One step of the schedule: when it struck, whom, and the proof that it took hold.

    The blow fell between `struck_ns`, which older evidence lacks, and `applied_ns`.
    A fault whose `confirmed_ns` is None was not seen to take hold; nothing may be concluded from surviving it. One
    with an `error` could not be applied or healed. `processes` are the clients that it struck themselves, `partitions`
    (such as `orders-0`, with the topic's whole name) those whose leader or replicas it was aimed at, where it has some.
    """

    step: int
    fault: str
    description: str
    target: str
    began_ns: int
    struck_ns: int | None = None
    applied_ns: int | None = None
    confirmed_ns: int | None = None
    proof: str | None = None
    healed_ns: int | None = None
    error: str | None = None
    processes: tuple[int, ...] = ()
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase of the experiment, for the timeline and for error messages."""

    name: str
    began_ns: int
    ended_ns: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """High watermark and last stable offset of a partition as its leader stated them; −1 when it did not answer.

    `leader` is what the brokers' metadata says, `NO_LEADER` or `UNSEEN` where it names none. Older evidence has
    `NO_LEADER` also for leaders that did not answer.
    """

    at_ns: int
    topic: str
    partition: int
    leader: int
    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Whether a partition's LSO reached its high watermark within the bound, and whether only fencing did it."""

    topic: str
    partition: int
    bound_s: float
    waited_s: float
    high_watermark: int
    last_stable_offset: int
    before_fencing: bool


Entry = Operation | ProcessRecord | FaultRecord | Phase | Sample | Settled
TAGS: dict[str, type[Any]] = {
    "operation": Operation,
    "process": ProcessRecord,
    "fault": FaultRecord,
    "phase": Phase,
    "sample": Sample,
    "settled": Settled,
}
_TAG_OF = {entry: tag for tag, entry in TAGS.items()}
_FIELDS = {entry: frozenset(field.name for field in fields(entry)) for entry in _TAG_OF}
_ENUMS: dict[str, type[StrEnum]] = {"action": Action, "outcome": Outcome, "intent": Intent}
Chosen = TypeVar("Chosen")


class UnfitHistoryError(Exception):
    """The history cannot be judged: cut, foreign, of a newer format, or not parseable. The message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All entries of one run, in the order in which they were recorded."""

    run: str
    wall_clock_anchor: str
    anchor_ns: int
    entries: tuple[Entry, ...]

    def of(self, entry_type: type[Chosen]) -> tuple[Chosen, ...]:
        """The entries of one type, in order."""
        return tuple(entry for entry in self.entries if isinstance(entry, entry_type))


def header_line(*, run: str, wall_clock_anchor: str, anchor_ns: int) -> str:
    """The first line of a history; `wall_clock_anchor` is ISO 8601 UTC taken at `anchor_ns`."""
    header = {
        "type": "header",
        "format": FORMAT,
        "run": run,
        "clock": "CLOCK_MONOTONIC, nanoseconds",
        "wall_clock_anchor": wall_clock_anchor,
        "anchor_ns": anchor_ns,
    }
    return json.dumps(header)


def entry_line(entry: Entry) -> str:
    """One entry as a line; fields that are None are left out."""
    body = {name: value for name, value in asdict(entry).items() if value is not None}
    return json.dumps({"type": _TAG_OF[type(entry)], **body})


def footer_line(count: int) -> str:
    """The last line of a complete history; `count` entries stand between it and the header."""
    return json.dumps({"type": "footer", "entries": count})


def _entry(body: dict[str, Any]) -> Entry:
    entry_type = TAGS[body.pop("type")]
    known = _FIELDS[entry_type]
    values = body if body.keys() <= known else {name: value for name, value in body.items() if name in known}
    if entry_type is Operation:
        for name in _ENUMS.keys() & values:
            values[name] = _ENUMS[name](values[name])
    if "inputs" in values:
        values["inputs"] = tuple(InputRange(**each) for each in values["inputs"])
    if entry_type is FaultRecord:
        for name in values.keys() & {"processes", "partitions"}:
            values[name] = tuple(values[name])
    entry: Entry = entry_type(**values)
    return entry


def _bodies(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    # As bytes: what is no text is no JSON either, and belongs to a line with a number.
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                # Of bytes it would ask each line anew in which encoding it is.
                body = json.loads(line.decode())
            except ValueError as error:
                raise UnfitHistoryError(f"{path}: line {number} is not JSON ({error}); the run was cut") from error
            if not isinstance(body, dict) or "type" not in body:
                raise UnfitHistoryError(f"{path}: line {number} is not a history entry")
            yield number, body


def read(path: Path, *, allow_cut: bool = False) -> History:
    """Read a history.

    `allow_cut` accepts a missing footer (for showing what there is, never for judging).

    Raises UnfitHistoryError when the file is missing, foreign, of another format or cut.
    """
    if not path.is_file():
        raise UnfitHistoryError(
            f"{path} does not exist; this is not a run directory, or the run was cut before its start"
        )
    bodies = _bodies(path)
    nothing: tuple[int, dict[str, Any]] = (0, {"type": "nothing"})
    _, header = next(bodies, nothing)
    if not {"run", "wall_clock_anchor", "anchor_ns"} <= set(header) and header.get("format") == FORMAT:
        raise UnfitHistoryError(f"{path} begins with a header that names no run or no clock; it was not written by us")
    if header.get("type") != "header" or header.get("format") != FORMAT:
        raise UnfitHistoryError(
            f"{path} begins with type {header.get('type')!r} format {header.get('format')!r}; "
            f"this version reads history format {FORMAT}"
        )
    entries: list[Entry] = []
    footer: dict[str, Any] | None = None
    try:
        for number, body in bodies:
            if body["type"] == "footer":
                footer = body
                continue
            try:
                entries.append(_entry(body))
            except (KeyError, TypeError, ValueError) as error:
                raise UnfitHistoryError(f"{path}: line {number} does not fit its type: {error}") from error
    except UnfitHistoryError:
        if not allow_cut:
            raise
    if not allow_cut and (footer is None or footer.get("entries") != len(entries)):
        raise UnfitHistoryError(f"{path} has no footer that counts its {len(entries)} entries; the run was cut")
    return History(
        run=header["run"],
        wall_clock_anchor=header["wall_clock_anchor"],
        anchor_ns=header["anchor_ns"],
        entries=tuple(entries),
    )


def lines(*, run: str, wall_clock_anchor: str, anchor_ns: int, entries: Iterable[Entry]) -> Iterator[str]:
    """A whole history as lines; for planted histories and for copies."""
    count = 0
    yield header_line(run=run, wall_clock_anchor=wall_clock_anchor, anchor_ns=anchor_ns)
    for entry in entries:
        count += 1
        yield entry_line(entry)
    yield footer_line(count)
