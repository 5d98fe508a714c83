"""Where an output of a pipeline names its input: the part of a record whose text begins with the identity of the input.

    value              the value itself
    key                the key
    header:NAME        the last header of this name
    json:FIELD         a text in the JSON object that is the value; the names of nested objects are joined by dots
    regex:PATTERN      the only group of a regular expression, at its first match in the value

An identity is ASCII (`verification.vocabulary.identity`), so it is the same text everywhere. Anything may follow it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache

VALUE = "value"
KINDS = (VALUE, "key", "header:NAME", "json:FIELD", "regex:PATTERN")
Headers = Sequence[tuple[str, bytes | None]]
#: The text that names the input, from a record's key, value and headers; None where there is none.
Finder = Callable[[bytes | None, bytes | None, Headers], bytes | None]


@cache
def finder(reference: str) -> Finder:
    """The function that finds the text in a record; raises ValueError, in one sentence, for a wrong reference."""
    kind, _, said = reference.partition(":")
    if reference == VALUE:
        return lambda _key, value, _headers: value
    if reference == "key":
        return lambda key, _value, _headers: key
    if kind == "header" and said:
        return lambda _key, _value, headers: next((held for name, held in reversed(headers) if name == said), None)
    if kind == "json" and all(names := said.split(".")):
        return lambda _key, value, _headers: _in_json(value, names)
    if kind == "regex" and said:
        pattern = _pattern(reference, said)
        return lambda _key, value, _headers: _matched(value, pattern)
    raise ValueError(f"reference is {reference!r} and must be one of {', '.join(KINDS)}")


def _pattern(reference: str, said: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(said)
    except re.error as error:
        raise ValueError(f"reference is {reference!r}, which is no regular expression: {error}") from None
    if pattern.groups != 1:
        raise ValueError(
            f"reference is {reference!r} and must have one group, around the identity; it has {pattern.groups}"
        )
    return pattern


def _in_json(value: bytes | None, names: Sequence[str]) -> bytes | None:
    try:
        held = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    for name in names:
        held = held.get(name) if isinstance(held, dict) else None
    return _bytes(held) if isinstance(held, str) else None


def _matched(value: bytes | None, pattern: re.Pattern[str]) -> bytes | None:
    try:
        found = pattern.search((value or b"").decode("utf-8"))
    except UnicodeDecodeError:
        return None
    return _bytes(found[1]) if found and found[1] is not None else None


def _bytes(text: str) -> bytes:
    """JSON may have halves of characters, which UTF-8 has not; no identity has one."""
    return text.encode("utf-8", "replace")
