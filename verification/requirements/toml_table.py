"""Reads hand-written TOML tables, and names file, entry and field of every mistake.

The normative data is edited by people who know Kafka and not this code. The reader takes each field out of its table once
and checks its type. At the end it refuses the fields that are left, because a misspelt optional field would otherwise be
ignored. Sentences may be wrapped over several lines; white space is collapsed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

Choice = TypeVar("Choice", bound=StrEnum)
#: Makes the exception for a mistake from its sentence.
Complaint = Callable[[str], Exception]


def read_toml(path: Path, complain: Complaint) -> dict[str, Any]:
    """The tables of a TOML file; raises the exception of `complain` when it is missing or not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise complain(f"{path.name} cannot be read: {error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise complain(f"{path.name} is not valid TOML: {error}") from error


class Table:
    """One entry, whose fields are taken out one by one; every mistake names file, entry and field."""

    def __init__(self, body: object, *, file: str, entry: str, complain: Complaint) -> None:
        self._file = file
        self._entry = entry
        self._complain = complain
        if not isinstance(body, dict):
            raise self.error("is not a table")
        self._body: dict[str, Any] = dict(body)

    def error(self, complaint: str) -> Exception:
        """The exception for this entry; `complaint` follows the name of the entry."""
        return self._complain(f"{self._file}, {self._entry}: {complaint}")

    def optional_text(self, name: str) -> str | None:
        """A string field with its white space collapsed, None when it is absent."""
        if name not in self._body:
            return None
        value = self._body.pop(name)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{name} is not a text")
        return " ".join(value.split())

    def text(self, name: str) -> str:
        """A string field that must be there."""
        value = self.optional_text(name)
        if value is None:
            raise self.error(f"{name} is missing")
        return value

    def optional_integer(self, name: str) -> int | None:
        """An integer field, None when it is absent."""
        value = self._body.pop(name, None)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise self.error(f"{name} is not an integer")
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        """A list of distinct strings, empty when it is absent."""
        values = self._body.pop(name, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.error(f"{name} is not a list of texts")
        if len(set(values)) != len(values):
            raise self.error(f"{name} names something twice")
        return tuple(values)

    def choice(self, name: str, choices: type[Choice]) -> Choice:
        """A field that holds one of the values of an enum."""
        return self._chosen(name, self.text(name), choices)

    def choices(self, name: str, choices: type[Choice]) -> tuple[Choice, ...]:
        """A list of values of an enum, empty when it is absent."""
        return tuple(self._chosen(name, value, choices) for value in self.strings(name))

    def table(self, name: str) -> Table:
        """A table within this one that must be there; its mistakes are named with the field."""
        if name not in self._body:
            raise self.error(f"{name} is missing")
        within = f"{self._entry}.{name}"
        return Table(self._body.pop(name), file=self._file, entry=within, complain=self._complain)

    def tables(self, name: str) -> dict[str, Table]:
        """Tables by their names within a table of this one, empty when it is absent."""
        if name not in self._body:
            return {}
        inner = self.table(name)
        return {each: inner.table(each) for each in tuple(inner._body)}

    def alternatives(self) -> dict[str, tuple[str, ...]]:
        """All fields that are left, in their order; each is a text, or a list of alternative texts."""
        return {
            name: self.strings(name) if isinstance(value, list) else (self.text(name),)
            for name, value in tuple(self._body.items())
        }

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """A list of pairs of strings that must be there."""
        values = self._body.pop(name, None)
        if not isinstance(values, list) or not all(_is_pair(value) for value in values):
            raise self.error(f"{name} is not a list of pairs of texts")
        return tuple((first, second) for first, second in values)

    def finish(self) -> None:
        """Refuse fields that were never read; call it after the last field."""
        if self._body:
            raise self.error(f"has unknown fields: {', '.join(sorted(self._body))}")

    def _chosen(self, name: str, value: str, choices: type[Choice]) -> Choice:
        try:
            return choices(value)
        except ValueError:
            raise self.error(f"{name} is {value!r}; known are {', '.join(choices)}") from None


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value)
