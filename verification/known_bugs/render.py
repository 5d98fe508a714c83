"""Renders the rule of the decision with all known bugs as docs/decision.md: `python -m verification.known_bugs.render`.

The rule in words is a template next to this module. The tables are made from the data and the rule that decide a run, so
that the document always agrees with them. Controls are not in them: they are known to be bad, and decide nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from string import Template

from verification.known_bugs.catalogue import BugKind, KnownBug, load
from verification.known_bugs.weight import Weight, is_everywhere, weigh
from verification.vocabulary import releases

TEMPLATE = Path(__file__).with_name("decision.template.md")
DOCUMENT = Path(__file__).parents[2] / "docs" / "decision.md"


def render(bugs: Iterable[KnownBug]) -> str:
    """The whole document as Markdown."""
    shown = [each for each in bugs if each.kind is not BugKind.CONTROL]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        supported=f"{', '.join(releases.SUPPORTED[:-1])} and {releases.SUPPORTED[-1]}",
        decides=_table(shown, Weight.DECIDES),
        risks=_table(shown, Weight.RISK),
        deviations=_table(shown, Weight.DEVIATION),
    )


def write(document: Path = DOCUMENT) -> Path:
    """Write the document and return its path."""
    document.write_text(render(load().values()), encoding="utf-8")
    return document


def _table(bugs: Iterable[KnownBug], weight: Weight) -> str:
    rows = "\n".join(_row(each) for each in bugs if weigh(each) is weight)
    head = "| id | bug or limit | releases | impact | reach | client | transactions | replication | reason |"
    return f"{head}\n|---|---|---|---|---|---|---|---|---|\n{rows}"


def _row(bug: KnownBug) -> str:
    ranges = [bad.first if bad.first == bad.last else f"{bad.first} to {bad.last}" for bad in bug.bad]
    seen = ", ".join(ranges) + (" (every)" if is_everywhere(bug) else "")
    exposure = bug.exposure
    concerns = f"{', '.join(exposure.libraries) or '–'} | {', '.join(exposure.transactions)} | {exposure.replication}"
    return f"| {bug.id} | {bug.title} | {seen} | {bug.impact} | {bug.reach} | {concerns} | {bug.reason} |"


if __name__ == "__main__":
    sys.stdout.write(f"wrote {write()}\n")
