"""Words that make sentences hard, in code and prose: `docs/words.txt` lists them, each with the words to use instead."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.checkout import written
from tests.support.paths import ROOT

WORDS = ROOT / "docs" / "words.txt"
_READ = ("*.py", "*.md", "*.j2", "*.toml", "*.ini", "*.sql", "*.yml", "*.yaml")
#: Data: ids of cases, statements that known bugs match, values in requests, fields and values of stored files, settings.
_DATA = re.compile(
    r"-nobody\b|\"nobody\"|-for-nobody-|-of-nobody-|nobody can be asked before 2\.5|the one beside it"
    r"|codes of whoever could not coordinate yet|\"fleeting\"|\bthe lawful answer\b"
    r"|a lawful request of the owner refused|an answer that is not lawful|third-party|allow\.everyone\.if\.no\.acl\.found"
)


@cache
def rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Each expression of the list, and the words to use instead."""
    lines = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pairs = [line.split(" = ", 1) for line in lines]
    return tuple((re.compile(rf"\b(?:{found})\b", re.IGNORECASE), instead) for found, instead in pairs)


def hits(text: str) -> list[str]:
    """The hard words of a text, by line."""
    return [
        f"{number}: {match.group()!r}: say {instead}"
        for number, line in enumerate(_DATA.sub("", text).splitlines(), start=1)
        for found, instead in rules()
        for match in found.finditer(line)
    ]


def test_no_file_has_a_word_of_the_list() -> None:
    """Code, tests and pages use the words of the glossary, and plain ones."""
    read = [path for path in written(*_READ) if path != Path(__file__)]
    assert len(read) > 500
    found = [f"{path.relative_to(ROOT)}:{hit}" for path in read for hit in hits(path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["Waited 30 s in vain.", "nobody answered", "whoever holds it", "the sum thereof"])
def test_a_hard_word_is_found(text: str) -> None:
    """The list is read, and case does not matter."""
    assert hits(text)
    assert hits(text.upper())
