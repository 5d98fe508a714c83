"""`brokers/broker-<i>.log` → what brokers said about a violation, as far as a page has room for it.

Brokers log some thousand lines a minute, and one of them is often the reason: a marker that was skipped, an election
that was unclean. Shown are lines that name the violating transactional id, or a partition of the violation, from
shortly before the operation began until some seconds after it ended; of a partition, everyday lines only close to the end.
Lines that differ in nothing but their numbers are examples of each other: the nearest is shown, with how many there
were. Lines without a time (stack traces) belong to the line above them and stay in the file. A log that cannot be read
gives no lines; no verdict depends on it.
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

#: A broker's clock and the harness's are one; a second is for what led to the operation.
BEFORE = timedelta(seconds=1)
#: A dropped marker shows at once, an election after the session of a killed broker (3 s) and its restart.
AFTER = timedelta(seconds=10)
#: What is said of a partition later than this is about its recovery.
NEAR = timedelta(seconds=2)
#: More lines than this are a copy of the log, which lies beside the page.
LINES_MAX = 6
#: Characters of a line; the longest list the settings of a whole topic.
TEXT_MAX = 360
#: Time with its zone, level, thread, text; without a zone nobody knows when it was.
_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d\d:\d\d))\] ([A-Z]+) (?:\[[^\]]*\] )?(.*)")
#: Levels that are worth reading of a partition, and a word of controllers, which say at INFO that records may be lost.
_LOUD = frozenset({"WARN", "ERROR", "FATAL"})
_UNCLEAN = "UNCLEAN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to look for: names that a line may have, when the operation was, and the zero of the scenario's times.

    `ended` is None for an operation that never completed.
    """

    transaction: str
    partitions: tuple[str, ...]
    began: datetime
    ended: datetime | None
    origin: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    at: datetime
    file: str
    level: str
    text: str
    rank: int

    @property
    def kind(self) -> str:
        """The line without its numbers."""
        return re.sub(r"\d+", "#", self.text)


def around(directory: Path, asked: Asked) -> tuple[BrokerLine, ...]:
    """What the brokers logged about it, in the order of time. Raises nothing for bad content."""
    moment = asked.ended or asked.began
    said = sorted(_said(directory, asked), key=lambda each: (each.rank, abs(each.at - moment), each.file))
    often = Counter((each.rank, each.kind) for each in said)
    nearest: dict[tuple[int, str], _Said] = {}
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


def _said(directory: Path, asked: Asked) -> Iterator[_Said]:
    """The lines of the window that have one of the names; those of the transaction come before those of its places."""
    names = tuple(each for each in (asked.transaction, *asked.partitions) if each)
    transaction, partitions = _naming([asked.transaction]), _naming(asked.partitions)
    for path in sorted(directory.glob("broker-*.log")):
        for at, level, text in _lines(path, names):
            # Differences, because a time at an end of the calendar has nothing beyond it. What never ended is not past.
            past = timedelta(0) if asked.ended is None else at - asked.ended
            if at - asked.began < -BEFORE or past > AFTER:
                continue
            if transaction.search(text):
                rank = 0
            elif partitions.search(text) and (level in _LOUD or _UNCLEAN in text):
                rank = 1
            elif partitions.search(text) and past <= NEAR:
                rank = 2
            else:
                continue
            yield _Said(at=at, file=path.name, level=level, text=text, rank=rank)


def _lines(path: Path, names: tuple[str, ...]) -> Iterator[tuple[datetime, str, str]]:
    """Time, level and text of each line that may have one of the names; nearly all of them have none."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                found = _LINE.match(line) if any(name in line for name in names) else None
                at = instant(found[1]) if found is not None else None
                if found is not None and at is not None:
                    yield at, found[2], found[3].strip()
    except OSError:
        return


def _naming(names: Iterable[str]) -> re.Pattern[str]:
    """Matches any of the names as a whole; what has no name matches nothing."""
    known = [re.escape(each) for each in names if each]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(known)})(?![\w-])") if known else re.compile(r"(?!)")


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
