"""Planted runs with their output files, among them one with hostile content, and the parsed page of a report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from reports.comparing.baseline import of_results
from reports.comparing.compare import against
from reports.comparing.results import dumps
from reports.formats.issue_links import JIRA_ISSUE, KIP_SEARCH, LIBRDKAFKA_ISSUE
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.report import Report
from reports.model.run_record import Acceptance
from tests.support.paths import ROOT
from tests.support.plans import FAILED, SMOKE, Plan, found
from tests.support.run_directories import make_run

SCHEMA = json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8"))
#: The addresses that a page may link to.
PUBLIC = re.compile(
    f"{re.escape(KIP_SEARCH.replace('&amp;', '&'))}KIP-[0-9]+|{JIRA_ISSUE}KAFKA-[0-9]+|{LIBRDKAFKA_ISSUE}[0-9]+"
)
VOID = {"meta", "br", "hr", "img", "input", "link"}

#: Markup, template syntax, escape sequences, control characters, Markdown, a bidirectional override, a lone surrogate.
HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}{%x%}`|\x1b[31m\x00\x07\u202egnp\ud800]]>"
#: Evidence with a lone surrogate is not UTF-8, so the history of such a scenario cannot be read.
READABLE = HOSTILE.replace("\ud800", "")


class Page(HTMLParser):
    """Collects tags, ids, local references and text; reports mismatched tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.resources: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the properties that the tests use."""
        values = dict(attrs)
        self.tags.add(tag)
        self.ids += [values["id"]] if values.get("id") else []  # type: ignore[list-item]
        self.references += [values["href"] or ""] if "href" in values else []
        self.resources += [values[name] or "" for name in ("src", "srcset", "data", "action") if name in values]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that closes itself, as those of SVG may."""
        assert not dict(attrs).get("id")
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        """Every end must match."""
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    @property
    def dead_links(self) -> list[str]:
        """The links that lead nowhere when the page is alone: neither to a part of it, nor to a public issue."""
        targets = {f"#{each}" for each in self.ids}
        return [each for each in self.references if each not in targets and not PUBLIC.fullmatch(each)]

    def handle_data(self, data: str) -> None:
        """Visible and invisible text."""
        self.text += data


def rendered(tmp_path: Path, plans: tuple[Plan, ...], **changes: object) -> tuple[Report, Path]:
    """A planted run and the directory of its output files."""
    run = make_run(tmp_path / "run", plans, **changes)
    report = load_run(run)
    write_all(report, run)
    return report, run


def page_of(run: Path) -> Page:
    """The parsed page."""
    page = Page()
    page.feed((run / "report.html").read_text(encoding="utf-8"))
    page.close()
    assert not page.open
    return page


def hostile_plan(text: str = HOSTILE) -> Plan:
    """A scenario in which every field from outside is hostile."""
    return replace(
        FAILED,
        reason=text,
        claim=text,
        topic=text,
        fault=text,
        release=text,
        requirements=("TXN-25", text),
        findings=(found("torn-transaction", topic=text, detail=text, known_bug=text),),
        noise=text,
        replay=text,
    )


def hostile_record(text: str = HOSTILE) -> dict[str, object]:
    """Hostile values that a user, a machine or a tool may have put into the record of a run."""
    return {
        "command": text,
        "profile": text,
        "release": text,
        "runtime": text,
        "suite": text,
        "narrowed_by": text,
        "clients": (text,),
        "problems": (text,),
        "options": {text: text},
        "machine": {text: text},
        "versions": {text: text},
        "digests": {text: text},
        "accepted": (Acceptance(id=text, reason=text, until=text),),
    }


def hostile_run(tmp_path: Path, text: str = HOSTILE) -> tuple[Report, Path]:
    """A hostile run compared with a baseline of another hostile run; a hostile case vanished, one has a hostile id."""
    gone = replace(hostile_plan(text), key="gone")
    # No directory can have this name.
    nameless = replace(hostile_plan(text), key=text, present=False)
    before = load_run(make_run(tmp_path / "before", (SMOKE, gone), **hostile_record(text)))
    run = make_run(tmp_path / "run", (SMOKE, hostile_plan(text), nameless), **hostile_record(text))
    report = against(load_run(run), of_results(json.loads(dumps(before))))
    write_all(report, run)
    return report, run
