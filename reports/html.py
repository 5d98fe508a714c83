"""`report.html`: one file, no script, nothing loaded from elsewhere; made to be attached to a decision.

The answer comes first: decision, why, subject, counts, the command that repeats it. Then tables, then one section per
scenario with its proof. Every scenario and requirement has an anchor of its own. Verdicts are a sign and a word, so
the page reads without colour and without its style sheet (some CI servers strip it). Autoescape is on for everything;
text from outside also passes `words.plain`, so that no control character reaches the page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports import words
from reports.drawing import draw
from reports.model import FindingReport, Report, RequirementRow
from verification.verdict import Verdict

TEMPLATES = Path(__file__).parent / "templates"
#: Examples shown at once; the others, up to 32, are folded below them.
EXAMPLES_SHOWN = 4
SECTIONS = ("top", "scenarios", "controls", "requirements", "details", "about")
_WITNESS_COLUMNS = (
    ("record", "Record"),
    ("place", "Topic-partition@offset"),
    ("transaction", "Transaction"),
    ("producer", "Producer"),
    ("told", "Told"),
    ("observer", "Observer"),
    ("fault", "Under which fault"),
    ("detail", "Detail"),
)
#: The class that colours a verdict; an untested requirement has the last one.
_CLASS = {
    Verdict.NOT_APPLICABLE: "na",
    Verdict.PASS: "pass",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.ERROR: "error",
    Verdict.FAIL: "fail",
    None: "untested",
}


def render(report: Report, directory: Path) -> str:
    """The whole page; links to evidence are relative to `directory`, where the page will stand."""
    anchors = _anchors(report)
    template = _environment().get_template("report.html.j2")
    text = template.render(
        report=report,
        judgement=report.judgement,
        sentences={row.id: row for row in report.requirements},
        details=(*report.worst_first, *report.controls),
        counted=_counted(report),
        tested=tuple(row for row in report.requirements if row.verdict is not None),
        untested=_families(report),
        anchor=lambda key: anchors.get(key, "top"),
        link=_linker(report.origin, directory),
    )
    # Templates leave lines of blanks behind; without them the page is a quarter smaller and easier to compare.
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.globals.update(
        draw=draw,
        word=words.verdict_word,
        sign=words.verdict_sign,
        scenario_word=words.scenario_word,
        requirement_word=words.requirement_word,
        shown=words.shown_verdict,
        meaning=words.MEANING,
        decision_sign=words.DECISION_SIGN,
        exit_meaning=words.EXIT_MEANING,
        css_class=_CLASS.__getitem__,
        columns=_columns,
        examples_shown=EXAMPLES_SHOWN,
        untested_class="untested",
    )
    environment.filters.update(seconds=words.seconds, number=words.number)
    return environment


def _finalize(value: Any) -> Any:
    """The gate of every printed expression; markup made by the templates themselves passes as it is."""
    return words.plain(value) if type(value) is str else value


def _anchors(report: Report) -> dict[str, str]:
    """A unique fragment per scenario and control; requirement ids keep theirs, because people cite them."""
    taken = {*SECTIONS, *(row.id for row in report.requirements)}
    anchors: dict[str, str] = {}
    for scenario in (*report.scenarios, *report.controls):
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", scenario.key).strip("-") or "scenario"
        name, number = base, 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name)
        anchors[scenario.key] = name
    return anchors


def _linker(origin: Path, directory: Path) -> Callable[[str], str]:
    """Paths below `origin` as references from `directory`."""
    prefix = os.path.relpath(origin, directory)

    def link(path: str) -> str:
        joined = os.path.normpath(os.path.join(prefix, path))  # noqa: PTH118 - a reference, not a file
        slash = "/" if path.endswith("/") else ""
        return quote(joined, safe="/._-", errors="replace") + slash

    return link


def _counted(report: Report) -> tuple[tuple[Verdict, int], ...]:
    """How many scenarios per verdict, the worst first, verdicts that do not occur left out."""
    counted = ((verdict, report.count(verdict)) for verdict in sorted(Verdict, reverse=True))
    return tuple((verdict, count) for verdict, count in counted if count)


def _families(report: Report) -> tuple[tuple[str, str, tuple[RequirementRow, ...]], ...]:
    """Untested requirements by family with its title, in the order of the catalogue."""
    titles = dict(report.families)
    rows: dict[str, list[RequirementRow]] = {}
    for row in report.requirements:
        if row.verdict is None:
            rows.setdefault(row.family, []).append(row)
    return tuple((family, titles.get(family, ""), tuple(each)) for family, each in rows.items())


def _columns(finding: FindingReport) -> tuple[tuple[str, str], ...]:
    """The columns in which at least one example has something to say."""
    return tuple(
        (name, title) for name, title in _WITNESS_COLUMNS if any(getattr(each, name) for each in finding.witnesses)
    )
