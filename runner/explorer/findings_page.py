"""Writes `docs/generated/findings.md`: a table of explorations, and one entry per finding and release.

The table has a row per exploration, which is one state file. Without it, a release without an entry would mean nothing:
the row says how long the release was explored. Rows and entries of other explorations stay as they are.
"""

from __future__ import annotations

import re
from pathlib import Path

from reports.formats.markdown import code
from runner.explorer.known_findings import NAMED
from runner.explorer.store import Store, StoredFinding, ranges
from verification.vocabulary.releases import parse

HEAD = """# Findings of the explorer

Answers that `tox -e explore` received and its model of the specification does not allow. Every entry is one signature on
one release, with the fewest moves that show it. `runner/explorer/known_findings.py` gives `EX` names to defects that the
explorer found and that have no other name. An entry marked NEW has no name and no explanation yet. A to C are rival
instances of one transactional id. The explorer writes this page and rewrites everything between its marks.
"""
BEGIN, END = "<!-- explored: begin -->\n", "<!-- explored: end -->\n"
TABLE = """Each release with the time, the seeds and the version of the explorer. In another version a seed means other
moves. A walk that was too slow for its transaction timeout is not conclusive. The seconds include the replays of findings;
the walks and requests do not.

| Kafka | begun (UTC) | version | walks | of them too slow | requests | seconds | seeds |
|---|---|---|---|---|---|---|---|
"""
_ENTRY = re.compile(r"<!-- finding: (.+?) -->\n.*?<!-- end of finding -->\n", re.DOTALL)
_ROW = re.compile(r"^\| ([0-9][^|]*?) \| ([^|]+?) \|.*\|$", re.MULTILINE)


def entry(found: StoredFinding, replay: str) -> str:
    """The text of one finding."""
    name = found.name or "NEW"
    signature = "" if found.signature == found.name else f"Signature: {code(found.signature)}. "
    text = [
        f"<!-- finding: {found.release} {found.signature} -->",
        f"### {name}, Kafka {found.release}, {found.generation}: {found.nature}",
        "",
        f"{signature}Seed {found.seed}; shown by {found.shown} of {found.tries} replays; version {found.model}.",
        "",
        *([NAMED[found.name], ""] if found.name in NAMED else []),
        *(f"{number}. {line}" for number, line in enumerate(found.script, 1)),
        "",
        f"Replay: {code(replay)}",
        "<!-- end of finding -->",
    ]
    return "\n".join(text) + "\n"


def write(path: Path, found: StoredFinding, replay: str) -> None:
    """Add the entry of a finding, or replace its earlier one."""
    text = _text(path)
    new, key = entry(found, replay), f"{found.release} {found.signature}"
    if any(match[1] == key for match in _ENTRY.finditer(text)):
        text = _ENTRY.sub(lambda match: new if match[1] == key else match[0], text)
    else:
        text = text.rstrip("\n") + "\n\n" + new
    _put(path, text)


def explored(path: Path, store: Store) -> None:
    """Add the exploration's row, or replace its earlier one."""
    text = _text(path)
    before, _, rest = text.partition(BEGIN)
    table, _, after = rest.partition(END)
    rows = {(match[1], match[2]): match[0] for match in _ROW.finditer(table)}
    rows[store.release, store.begun] = _row(store)
    ordered = sorted(rows, key=lambda key: (tuple(-each for each in parse(key[0])), key[1]))
    _put(path, before + BEGIN + TABLE + "".join(f"{rows[key]}\n" for key in ordered) + END + after)


def _row(store: Store) -> str:
    seeds = ", ".join(f"{first}..{last}" if last > first else str(first) for first, last in ranges(store.done))
    numbers = (store.walks, store.slow, store.requests, round(store.seconds))
    cells = (store.release, store.begun, store.model, *map(str, numbers), seeds)
    return f"| {' | '.join(cells)} |"


def _text(path: Path) -> str:
    """The text of the page, with a place for the table after its head."""
    text = path.read_text(encoding="utf-8") if path.is_file() else HEAD
    if BEGIN not in text or END not in text:
        head, mark, entries = text.partition("<!-- finding:")
        text = "\n".join([f"{head.rstrip()}\n", f"{BEGIN}{END}", f"{mark}{entries}"]).rstrip("\n") + "\n"
    return text


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
