"""The user's own settings of brokers and topics, from properties files of Java or from a block of a Kubernetes resource.

A setting that the harness must own is refused with the reason (`harness_settings.toml`): with another value the run could
not start, or could not say what it says. The harness's own value stays where the user's means the same here. All other
settings replace those of the harness, but not those that a scenario or case is about.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fixtures.errors import UsageError
from fixtures.java_properties import parse_properties

_OWNED = Path(__file__).parent / "harness_settings.toml"
_OPTIONS = {"server_properties": "--server-properties", "topic_properties": "--topic-properties"}
# A line of a `config:` block. Java would keep the quotes, and take a comment after a value as part of it.
_YAML = re.compile(r"""\s*(?P<q>["']?)(?P<key>[\w.-]+)(?P=q):(?:\s+(?P<r>["']?)(?P<value>.*?)(?P=r))?\s*(?:\s\#.*)?""")


#: Protocol cases write timestamps of their own, by which segments roll and positions are found.
_CLOCK = ("log.message.timestamp.type", "message.timestamp.type")


class SettingsOf(StrEnum):
    """The owner of settings in a file."""

    BROKERS = "brokers"
    TOPICS = "topics"


class OwnSettingsError(UsageError):
    """A file of settings cannot be read, or has settings that the harness must own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSettings:
    """The user's own settings of brokers and topics; `written` are the options that repeat them in a command."""

    brokers: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    written: str = ""

    @property
    def for_cases(self) -> OwnSettings:
        """The settings that clusters of protocol cases get."""
        brokers, topics = (
            {name: value for name, value in settings.items() if name not in _CLOCK}
            for settings in (self.brokers, self.topics)
        )
        return OwnSettings(brokers=brokers, topics=topics, written=self.written)

    @property
    def configuration(self) -> dict[str, str]:
        """All settings, by owner and name."""
        owners = ((SettingsOf.BROKERS, self.brokers), (SettingsOf.TOPICS, self.topics))
        return {f"{owner}: {name}": value for owner, settings in owners for name, value in settings.items()}


def add_settings_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption("--server-properties", metavar="FILE", help="your own settings of brokers")
    group.addoption("--topic-properties", metavar="FILE", help="your own settings of topics")


def own_settings(options: argparse.Namespace) -> OwnSettings:
    """The settings in the user's files. Raises OwnSettingsError."""
    files = {written: file for name, written in _OPTIONS.items() if (file := getattr(options, name))}
    return OwnSettings(
        brokers=read_settings(options.server_properties, SettingsOf.BROKERS),
        topics=read_settings(options.topic_properties, SettingsOf.TOPICS),
        written="".join(f" {name} {file}" for name, file in files.items()),
    )


def read_settings(file: str | None, owner: SettingsOf) -> dict[str, str]:
    """The settings in a file that brokers or topics get, none without a file. Raises OwnSettingsError."""
    if file is None:
        return {}
    try:
        found = parse_settings(Path(file).read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OwnSettingsError(f"{file} cannot be read: {reason}.") from error
    owned = {name: entry for name in found if (entry := _owner_entry(name, owner)) is not None}
    refused: dict[str, list[str]] = {}
    for name, entry in owned.items():
        if not _harmless(name, found[name], entry):
            refused.setdefault(entry["reason"], []).append(f"{name}={found[name]}")
    if refused:
        lines = (f"\n  {', '.join(names)}: {reason}" for reason, names in refused.items())
        raise OwnSettingsError(f"{file} has settings that the harness must own:{''.join(lines)}.")
    return {name: value for name, value in found.items() if name not in owned}


def parse_settings(content: bytes) -> dict[str, str]:
    """Names and values of a properties file, or of a block of `name: value` as in a Kafka resource of Kubernetes."""
    lines = [line for line in content.decode("latin-1").splitlines() if line.strip() and line.lstrip()[0] not in "#!"]
    block = [_YAML.fullmatch(line) for line in lines]
    if not all(block):
        return {name: value.strip() for name, value in parse_properties(content).items()}
    # A line without a value is the head of the block.
    return {line["key"]: line["value"] for line in block if line and line["value"]}


def reason_of(name: str, owner: SettingsOf) -> str | None:
    """The reason why the harness must own a setting; None when the user may set it."""
    entry = _owner_entry(name, owner)
    return None if entry is None else str(entry["reason"])


def _owner_entry(name: str, owner: SettingsOf) -> dict[str, Any] | None:
    matching = (each for each in _owned(owner) if any(fnmatchcase(name, pattern) for pattern in each["settings"]))
    return next(matching, None)


def _harmless(name: str, value: str, entry: Mapping[str, Any]) -> bool:
    """Whether the value means the same as that of the harness while a run lasts."""
    if f"{name}={value}" in entry.get("same", ()):
        return True
    least = entry.get("least", {}).get(name)
    return least is not None and re.fullmatch(r"-1|[0-9]+", value) is not None and not 0 <= int(value) < least


@cache
def _owned(owner: SettingsOf) -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads(_OWNED.read_text(encoding="utf-8"))[owner])
