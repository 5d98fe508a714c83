"""The user's own settings of brokers and topics, from properties files of Java.

A setting that the harness must own is refused by name, with the reason (`harness_settings.toml`): with another value the
run could not start, or could not say what it says. All other settings override those of the harness.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from fixtures.errors import UsageError

_OWNED = Path(__file__).parent / "harness_settings.toml"
# A key ends at the first `=`, `:` or white space that no backslash precedes.
_LINE = re.compile(r"(?P<key>(?:\\.|[^\s=:\\])+)\s*[=:\s]?\s*(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)")


class SettingsOf(StrEnum):
    """The owner of settings in a file."""

    BROKERS = "brokers"
    TOPICS = "topics"


class OwnSettingsError(UsageError):
    """A file of settings cannot be read, or has a setting that the harness must own."""


def read_settings(file: str | None, owner: SettingsOf) -> dict[str, str]:
    """The settings in a properties file, none without a file. Raises OwnSettingsError."""
    if file is None:
        return {}
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OwnSettingsError(f"{file} cannot be read: {reason}.") from error
    settings = dict(parse_properties(text))
    for name in settings:
        if (reason := reason_of(name, owner)) is not None:
            raise OwnSettingsError(f"{file} sets {name}, which the harness must own: {reason}.")
    return settings


def parse_properties(text: str) -> Iterator[tuple[str, str]]:
    """Keys and values of a properties file: comments, continued lines and escaped characters as in Java."""
    continued = ""
    for line in text.splitlines():
        stripped = continued + line.strip()
        continued = ""
        if not stripped or stripped[0] in "#!":
            continue
        if (len(stripped) - len(stripped.rstrip("\\"))) % 2:
            continued = stripped[:-1]
            continue
        if match := _LINE.fullmatch(stripped):
            yield _ESCAPED.sub(r"\1", match["key"]), _ESCAPED.sub(r"\1", match["value"])


def reason_of(name: str, owner: SettingsOf) -> str | None:
    """The reason why the harness must own a setting; None when the user may set it."""
    for entry in _owned(owner):
        if any(fnmatchcase(name, pattern) for pattern in entry["settings"]):
            return str(entry["reason"])
    return None


@cache
def _owned(owner: SettingsOf) -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads(_OWNED.read_text(encoding="utf-8"))[owner])
