"""Markdown for the page of a CI step: literal text, inline code, and the size limit of 50 kB.

GitHub accepts one megabyte per step. Lines beyond the limit are only counted. Texts from outside pass `cell`, which
escapes all Markdown and HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reports.model.wording import one_line

#: Below the limit of 50 kB, with room for the last lines and their encoding.
BYTES_MAX = 40_000
#: Characters of a reason in a table cell; the page has all of it.
REASON_MAX = 200
NAME_MAX = 120
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&@$:-])")


def bounded(given: Iterable[str], *, page: str) -> str:
    """The whole file; `page` is the name of the page that has all lines."""
    lines: list[str] = []
    used = 0
    left_out = 0
    for line in given:
        size = len(line.encode("utf-8", "replace")) + 1
        if used + size > BYTES_MAX:
            left_out += 1
            continue
        lines.append(line)
        used += size
    if left_out:
        lines += ["", f"{left_out} more lines are not shown here; {page} has all of them."]
    return "\n".join(lines) + "\n"


def cell(text: str, length_max: int = REASON_MAX) -> str:
    """Text from outside as literal Markdown on one line."""
    return _SPECIAL.sub(r"\\\1", one_line(text, length_max)).replace("\\<", "&lt;").replace("\\>", "&gt;")


def code(text: str, length_max: int = 0) -> str:
    """A command as inline code, with a fence longer than any run of backticks in it."""
    line = one_line(text, length_max)
    longest = max((len(each) for each in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"
