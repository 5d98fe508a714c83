"""Text from outside as literal Markdown, for CommonMark, GitHub and GitLab alike.

Escaping with backslashes is not enough. GitHub and GitLab look for mentions (`@user`), references (`#1`, `!1`, `$1`,
`GH-1`, commit ids), emoji and addresses in the finished page, where the backslashes are gone. They leave code alone. So
words of letters and plain punctuation stay prose, and every other word becomes inline code.

A cell of a table ends at `|`, also within code, and a backslash before it is ambiguous. So `|` stands as an entity
between two pieces of code.

GitHub accepts one megabyte per step, and a file here has at most 50 kB. Lines beyond the limit are only counted.
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

#: Characters without a meaning in Markdown: letters, digits, everything outside ASCII, and this punctuation. A hyphen
#: joins only letters, because `GH-1` is a reference. A point joins only digits, because `example.com` is an address.
_PROSE = re.compile(
    r"""(?:(?:[a-zA-Z0-9'"(),;?]|[^\x00-\x7f]|(?<=[a-zA-Z])-(?=[a-zA-Z])|(?<=[0-9])\.(?=[0-9]))+[.:!]?"""
    r"""|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)"""
)
#: Seven digits of a commit's id are a link to it.
_COMMIT = re.compile(r"(?<![0-9a-zA-Z])[0-9a-fA-F]{7,40}(?![0-9a-zA-Z])")
#: The first item of a numbered list, when it begins a line.
_ITEM = re.compile(r"[0-9]+[.)]")
#: A word of code without the punctuation of the sentence around it. Brackets within a word belong to the code.
_QUOTED = re.compile(r"""([("']*)([^()]+?)([)"'.,;:]*)""")
_WORD = re.compile(r"()(.+?)([.,;:]*)")
_PIPE = "&#124;"
#: Punctuation of the sentence that follows a command without a space.
_CLOSING = ".,;:"


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


def literal(text: str, length_max: int = 0) -> str:
    """A sentence on one line, in which every word is shown as it is; `length_max` counts the text without markup."""
    pieces: list[str] = []
    words: list[str] = []

    def close() -> None:
        if words:
            pieces.append(code(" ".join(words)))
            words.clear()

    for place, word in enumerate(one_line(text, length_max).split(" ")):
        if _is_prose(word) and not (place == 0 and _ITEM.fullmatch(word)):
            close()
            pieces.append(word)
            continue
        head, core, tail = _parted(word)
        if head:
            close()
        words.append(core)
        if head or tail:
            pieces.append(f"{head}{code(' '.join(words))}{tail}")
            words.clear()
    close()
    return " ".join(pieces)


def code(text: str, length_max: int = 0) -> str:
    """A command, path or name as inline code on one line; a fence is longer than any run of backticks in it."""
    return _PIPE.join(_fenced(each) if each else "" for each in one_line(text, length_max).split("|"))


def with_code(text: str) -> str:
    """A sentence in which the parts between backticks are inline code: commands, metrics and log lines."""
    shown = ""
    for place, part in enumerate(one_line(text).split("`")):
        rest = part if place % 2 else part.lstrip(_CLOSING)
        shown += "" if place % 2 else part[: len(part) - len(rest)]
        if rest.strip():
            shown += (" " if shown else "") + (code(rest) if place % 2 else literal(rest.strip()))
    return shown


def strong(text: str, length_max: int = 0) -> str:
    """A name in bold letters; a dash when it is empty, because four asterisks would be a line."""
    shown = literal(text, length_max)
    return f"**{shown}**" if shown else "–"


def _is_prose(word: str) -> bool:
    return not word or (_PROSE.fullmatch(word) is not None and not _COMMIT.search(word))


def _parted(word: str) -> tuple[str, str, str]:
    parts = _QUOTED.fullmatch(word) or _WORD.fullmatch(word)
    assert parts, "every word has a character"
    return parts[1], parts[2], parts[3]


def _fenced(text: str) -> str:
    longest = max((len(each) for each in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    # One space at both ends is removed from code that is more than spaces.
    pad = " " if {text[0], text[-1]} & {"`"} or (text[0] == text[-1] == " " and text.strip()) else ""
    return f"{fence}{pad}{text}{pad}{fence}"
