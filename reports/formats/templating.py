"""How every page is made of templates: where they lie, the one gate of what is printed, fragments, and no blanks.

Autoescape is on for everything; text from outside also passes `words.plain`, so that no control character reaches a
page. A variable that a template names and nobody gave is an error, never an empty string.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.model import clock, wording

TEMPLATES = Path(__file__).parent / "templates"


def environment() -> Environment:
    """Templates of this room, with the filters that all pages use."""
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
    """The gate of every printed expression; markup made by the templates themselves passes as it is."""
    return wording.plain(value) if type(value) is str else value


def place(name: str) -> str:
    """The fragment of a requirement or family: its name, which people cite, where a fragment can be that name."""
    if re.fullmatch(r"[A-Za-z0-9._-]+", name):
        return name
    return f"id-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


def without_blanks(text: str) -> str:
    """A page without the lines of blanks that templates leave behind: a quarter smaller, and easier to compare."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"
