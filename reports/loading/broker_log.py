"""Select the lines of broker logs (`brokers/broker-<i>.log`) that concern a violation.

Brokers log some thousand lines a minute, and one of them is often the reason: a skipped marker, an unclean election.
Shown are lines that name the violating transactional id or a partition of the violation. They are from shortly before
the operation began until some seconds after it ended. INFO lines about a partition are shown only close to the end. Of
lines that differ only in their numbers the nearest is shown, with their count. Lines without a time (stack traces) stay
in the file. An unreadable log gives no lines; no verdict depends on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from reports.model.clock import instant
from reports.model.findings import BrokerLine
from verification.known_bugs.script_matching import alike

#: Brokers and harness share a clock, so one second covers the events just before the operation.
BEFORE = timedelta(seconds=1)
#: A dropped marker is logged at once, an election after the session of a killed broker (3 s) and its restart.
AFTER = timedelta(seconds=10)
#: Later lines about a partition concern its recovery.
NEAR = timedelta(seconds=2)
#: More lines would copy the log, which is next to the page.
LINES_MAX = 6
#: Characters of a line; the longest ones list all settings of a topic.
TEXT_MAX = 360
#: Time with its zone, level, thread, text. Without a zone the time is unknown.
_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d\d:\d\d))\] ([A-Z]+) (?:\[[^\]]*\] )?(.*)")
#: Levels worth showing for a partition, and a word that controllers log at INFO when records may be lost.
_LOUD = frozenset({"WARN", "ERROR", "FATAL"})
UNCLEAN = "UNCLEAN"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLogQuery:
    """The search: names to look for, the time of the operation, and the zero of the scenario's times.

    `ended` is None for an operation that never completed.
    """

    transaction: str
    partitions: tuple[str, ...]
    began: datetime
    ended: datetime | None
    origin: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogLine:
    at: datetime
    file: str
    level: str
    text: str
    rank: int

    @property
    def kind(self) -> str:
        """The line without its numbers."""
        return re.sub(r"\d+", "#", self.text)


def around(directory: Path, asked: BrokerLogQuery) -> tuple[BrokerLine, ...]:
    """The lines of brokers about a violation, in the order of time. Bad content raises no error."""
    moment = asked.ended or asked.began
    said = sorted(_said(directory, asked), key=lambda each: (each.rank, abs(each.at - moment), each.file))
    often = Counter((each.rank, each.kind) for each in said)
    nearest: dict[tuple[int, str], _LogLine] = {}
    for each in said:
        nearest.setdefault((each.rank, each.kind), each)
    shown = sorted(list(nearest.items())[:LINES_MAX], key=lambda each: (each[1].at, each[1].file))
    return tuple(
        BrokerLine(
            at_s=round((each.at - asked.origin).total_seconds(), 3),
            broker=Path(each.file).stem.replace("-", " "),
            file=each.file,
            level=each.level,
            text=_short(each.text),
            alike=often[key] - 1,
            names_it=each.rank == 0,
        )
        for key, each in shown
    )


def _said(directory: Path, asked: BrokerLogQuery) -> Iterator[_LogLine]:
    """The lines of the time window with one of the names; rank 0 names the transactional id."""
    names = tuple(each for each in (asked.transaction, *asked.partitions) if each)
    transaction, partitions = _naming([asked.transaction]), _naming(asked.partitions)
    for path in sorted(directory.glob("broker-*.log")):
        for at, level, text in lines_with(path, names):
            # Differences, because adding to a time at the end of the calendar overflows. An open operation is never past.
            past = timedelta(0) if asked.ended is None else at - asked.ended
            if at - asked.began < -BEFORE or past > AFTER:
                continue
            if transaction.search(text):
                rank = 0
            elif partitions.search(text) and (level in _LOUD or UNCLEAN in text):
                rank = 1
            elif partitions.search(text) and past <= NEAR:
                rank = 2
            else:
                continue
            yield _LogLine(at=at, file=path.name, level=level, text=text, rank=rank)


def lines_with(path: Path, names: tuple[str, ...]) -> Iterator[tuple[datetime, str, str]]:
    """Time, level and text of each line with one of the names; nearly all lines have none."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                found = _LINE.match(line) if any(name in line for name in names) else None
                at = instant(found[1]) if found is not None else None
                if found is not None and at is not None:
                    yield at, found[2], found[3].strip()
    except OSError:
        return


def matching(directory: Path, pattern: str, run: str) -> list[str]:
    """The texts of all lines that fit a pattern of the known bugs and name something of the run."""
    longest = max(pattern.split("*"), key=len)
    return [
        _short(text)
        for path in sorted(directory.glob("broker-*.log"))
        for _, _, text in lines_with(path, (longest,))
        if run in text and alike(f"**{pattern}**", text)
    ]


def _naming(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of the names as a whole word; without names it matches nothing."""
    known = [re.escape(each) for each in names if each]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(known)})(?![\w-])") if known else re.compile(r"(?!)")


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
