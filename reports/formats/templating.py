"""The Jinja environment of all pages: template folder, filters, escaping of texts, fragments, removal of blank lines.

Autoescape is always on. Texts from outside also pass `wording.plain`, so no control character reaches a page. An
undefined variable in a template is an error, never an empty string.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.model import clock, wording
from verification.vocabulary.verdict import Verdict

TEMPLATES = Path(__file__).parent / "templates"
#: The CSS class of a verdict; None is untested.
CSS_CLASS: dict[Verdict | None, str] = {
    Verdict.NOT_APPLICABLE: "na",
    Verdict.PASS: "pass",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.ERROR: "error",
    Verdict.FAIL: "fail",
    None: "untested",
}


def environment() -> Environment:
    """The environment of this package, with the filters that all pages use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters.update(
        place=place, seconds=wording.seconds, number=wording.number, millis=wording.millis, moment=clock.moment
    )
    return made


def _finalize(value: Any) -> Any:
    """Clean every printed expression; markup from the templates themselves stays as it is."""
    return wording.plain(value) if type(value) is str else value


def place(name: str) -> str:
    """The fragment of a requirement or family: its name where that is a valid fragment, else a digest."""
    if re.fullmatch(r"[A-Za-z0-9._-]+", name):
        return name
    return f"id-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


def without_blanks(text: str) -> str:
    """Remove the blank lines that templates leave: the page is a quarter smaller and easier to compare."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"
