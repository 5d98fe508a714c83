"""`docs/findings.md`: one entry per finding and release, written as it is found; other entries stay as they are."""

from __future__ import annotations

import re
from pathlib import Path

from suites.explorer.known import NAMED
from suites.explorer.store import Found

HEAD = """# Findings of the explorer

What `tox -e explore` found that its model of the specification does not allow: every entry is one signature on one
release, with the fewest moves that show it. `EX` names are given in `suites/explorer/known.py` to defects that the
explorer found and that have no other name; an entry without a name is new and not explained yet. A to C are rival
instances of one transactional id. Written by the explorer; everything between its marks is written anew.
"""
_ENTRY = re.compile(r"<!-- finding: (.+?) -->\n.*?<!-- end of finding -->\n", re.DOTALL)


def entry(found: Found, replay: str) -> str:
    """One finding in words."""
    name = found.name or "NEW"
    signature = "" if found.signature == found.name else f"Signature: `{found.signature}`. "
    text = [
        f"<!-- finding: {found.release} {found.signature} -->",
        f"### {name}, Kafka {found.release}, {found.generation}: {found.nature}",
        "",
        f"{signature}Seed {found.seed}; shown by {found.shown} of {found.tries} replays.",
        "",
        *([NAMED[found.name], ""] if found.name in NAMED else []),
        *(f"{number}. {line}" for number, line in enumerate(found.script, 1)),
        "",
        f"Again: `{replay}`",
        "<!-- end of finding -->",
    ]
    return "\n".join(text) + "\n"


def write(path: Path, found: Found, replay: str) -> None:
    """Add the entry, or put it in the place of the one before."""
    text = path.read_text(encoding="utf-8") if path.is_file() else HEAD
    new, key = entry(found, replay), f"{found.release} {found.signature}"
    if any(match[1] == key for match in _ENTRY.finditer(text)):
        text = _ENTRY.sub(lambda match: new if match[1] == key else match[0], text)
    else:
        text = text.rstrip("\n") + "\n\n" + new
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
