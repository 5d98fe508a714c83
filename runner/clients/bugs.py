"""`tox -e client-bugs`: known bugs of client libraries, each in a version that has it and in one that has not.

A bug is shown in one of three ways. The client gets one answer in place of its broker's (`runner.clients.answers`), it takes
part in a scenario under a fault, or it follows a script of its own. Both versions are tried in the same way, and a version
that is not as expected is a failure in either case. Where no version is known to be good, another client shows that
the broker is not to blame.

Results are kept as one JSON line per bug and client. The table in `docs/generated/track-record.md` is rendered from them. A
result that is as expected stays valid; its commit is in the line.

Exit code 0: all are as expected; 1: one is not; 4: there is no such bug; 5: a client or cluster cannot be started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fixtures.clients.registry import client_kind
from runner import checkout, matrix_run
from runner.clients.demonstrations import (
    RELEASE,
    Answered,
    BeforeFinalization,
    CommitAcrossARestart,
    Demonstration,
    InScenario,
    LostAcknowledgement,
)
from runner.clients.one_broker import say
from runner.config import OUT, ROOT
from runner.resumable_matrix import (
    CellStore,
    add_resuming_options,
    markdown_table,
    replace_between_markers,
    stored_lines,
)
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.verdict import ExitCode

PROGRAM = "python -m runner.clients.bugs"
LINES = ROOT / "docs" / "generated" / "client-bugs.jsonl"
RECORD = ROOT / "docs" / "generated" / "track-record.md"
BEGIN, END = "<!-- clients: begin -->", "<!-- clients: end -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientBug:
    """A bug: in words, a client with it and one without it, and its report if there is one."""

    id: str
    what: str
    bad: str
    good: str
    shown: Demonstration
    report: str = "none known"


BUGS = (
    ClientBug(
        id="CB-01",
        what="an acknowledged record of an idempotent producer is not in the log",
        bad="franz-go@1.20.6",
        good="franz-go@1.20.7",
        shown=LostAcknowledgement(),
        report="twmb/franz-go#1217",
    ),
    ClientBug(
        id="CB-02",
        what="an abort after a commit without an outcome sends nothing, and the next commit commits both transactions",
        bad="franz-go@1.21.5",
        good="franz-go@1.21.6",
        shown=Answered("EndTxn/UNKNOWN_SERVER_ERROR"),
        report="changelog of 1.21.6",
    ),
    ClientBug(
        id="CB-03",
        what="an abort after refused offsets sends nothing, and the next commit commits both transactions",
        bad="aiokafka@0.14.0",
        good="kafka-python@3.0.12",
        shown=Answered("TxnOffsetCommit/GROUP_AUTHORIZATION_FAILED"),
    ),
    ClientBug(
        id="CB-04",
        what="offsets without their member: a copier that lost its partitions is not fenced (KIP-447)",
        bad="sarama@1.50.1",
        good="sarama@1.61.1",
        shown=InScenario("cut_from_its_group"),
        report="changelog of 1.50.2",
    ),
    ClientBug(
        id="CB-05",
        what="the same in aiokafka",
        bad="aiokafka@0.14.0",
        good="sarama@1.61.1",
        shown=InScenario("cut_from_its_group"),
    ),
    ClientBug(
        id="CB-06",
        what="one answer that comes too late ends the producer",
        bad="kafka-python@3.0.12",
        good="aiokafka@0.14.0",
        shown=Answered("EndTxn/answer comes after 4 s"),
    ),
    ClientBug(
        id="CB-07",
        what="a copier's session calls a transaction committed whose EndTxn was answered with an error",
        bad="franz-go@1.21.3",
        good="franz-go@1.21.6",
        shown=Answered("EndTxn/UNKNOWN_SERVER_ERROR", role="copier"),
        report="changelog of 1.21.4",
    ),
    ClientBug(
        id="CB-08",
        what="a commit whose broker is killed and comes back does not return",
        bad="kafka-python@3.0.12",
        good="aiokafka@0.14.0",
        shown=CommitAcrossARestart(),
    ),
    ClientBug(
        id="CB-09",
        what="requests of TV2 while the finalized transaction.version is 0, which block the transactional id (KB-18)",
        bad="franz-go@1.19.1",
        good="franz-go@1.19.3",
        shown=BeforeFinalization(),
        report="twmb/franz-go#1017",
    ),
)


def shown_by(library: str, scenario: str) -> list[str]:
    """The bugs of a library, such as `aiokafka 0.14.0`, that a scenario shows."""
    return [
        bug.id
        for bug in BUGS
        if isinstance(bug.shown, InScenario)
        and bug.bad == library.replace(" ", "@")
        and bug.shown.keyword in scenario.replace("-", "_")
    ]


#: A result: the bug and the client.
Key = tuple[str, str]
Stored = CellStore[Key, dict[str, Any]]


def perform(bug: ClientBug, client: str) -> dict[str, Any]:
    """Try one client, and return its line. Raises the errors of the environment."""
    directory = OUT / f"client-bug-{bug.id}-{client}-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}"
    directory.mkdir(parents=True)
    began = time.monotonic()
    seen = bug.shown.seen(client_kind(client), directory)
    line = {
        "bug": bug.id,
        "client": client,
        "release": RELEASE,
        "seen": seen,
        "commit": checkout.commit(),
        "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
        "seconds": round(time.monotonic() - began),
    }
    say(f"{bug.id} {client:20} {'as expected' if as_expected(line) else 'MISMATCH':12} {seen or 'nothing'}")
    return line


def as_expected(line: dict[str, Any]) -> bool:
    """Whether the bug was seen in the version that has it, or not in the one that has not."""
    (bug,) = [each for each in BUGS if each.id == line["bug"]]
    return bool(line["seen"]) is (line["client"] == bug.bad)


def render(lines: Sequence[dict[str, Any]]) -> str:
    """The table: a row for each bug."""
    by_key = {(line["bug"], line["client"]): line for line in lines}
    rows = [[bug.id, bug.what, bug.report, _cell(by_key, bug, bug.bad), _cell(by_key, bug, bug.good)] for bug in BUGS]
    return "\n".join(
        ["", *markdown_table(["bug", "what", "report", "client with it", "client without it"], rows), "", ""]
    )


def _cell(by_key: dict[Key, dict[str, Any]], bug: ClientBug, client: str) -> str:
    line = by_key.get((bug.id, client))
    if line is None:
        return f"{client}: not tried"
    mark = "" if as_expected(line) else "**not as expected** "
    return f"{client}: {mark}{line['seen'] or 'nothing seen'} ({line['date']}, {line['commit']})"


def _show(lines: Sequence[dict[str, Any]]) -> None:
    page = RECORD.read_text(encoding="utf-8")
    atomic_write(RECORD, replace_between_markers(page, BEGIN, END, new=render(lines), name=str(RECORD)))


def main(arguments: list[str] | None = None) -> int:
    """Try the clients without a result that is as expected; exit code 0, 1, 4 or 5."""
    parser = Parser(prog=PROGRAM, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bug", action="append", metavar="ID", help="only this bug, such as CB-01; may be repeated")
    add_resuming_options(parser)
    options = parser.parse_args(arguments)
    named = {bug.id: bug for bug in BUGS}
    if unknown := [each for each in options.bug or () if each not in named]:
        parser.error(f"--bug {unknown[0]} is none of {', '.join(named)}")
    stored: Stored = stored_lines(LINES, key=lambda line: (line["bug"], line["client"]), show=_show)
    keys = [(name, each) for name in options.bug or named for each in (named[name].bad, named[name].good)]

    def due() -> list[Key]:
        return stored.outstanding(keys, valid=as_expected, rerun=options.rerun)

    ended = matrix_run.fill(stored, due, lambda key: perform(named[key[0]], key[1]), render_only=options.render_only)
    if ended is not None:
        return ended
    return int(ExitCode.VIOLATION if stored.outstanding(keys, valid=as_expected) else ExitCode.CONFORMANT)


if __name__ == "__main__":
    end_with(main, program=PROGRAM, kept=f"the results so far are in {LINES.relative_to(ROOT)}")
