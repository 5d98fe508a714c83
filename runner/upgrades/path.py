"""A pair of releases between which a cluster is upgraded, and the rules by which a pair is refused (`rules.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from chaos.cluster import BrokerId
from fixtures.clusters.locks.releases import Release
from fixtures.errors import UsageError
from wire.values import Features

_HERE = Path(__file__).parent


class ImpossibleUpgradeError(UsageError):
    """Kafka forbids this pair, or this command cannot perform it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRange:
    """The levels of a feature that a release line offers, and the level of a cluster that was formatted new."""

    lowest: int
    highest: int
    initial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePath:
    """The release to upgrade from, and the one to upgrade to. Equal releases are the control: restarts only.

    `migrates`: brokers move from ZooKeeper to KRaft instead, within one release.

    Raises ImpossibleUpgradeError with the reason of the first rule that refuses the pair.
    """

    source: Release
    target: Release
    migrates: bool = False

    def __post_init__(self) -> None:
        for rule in table("rules.toml").values():
            if self._refused_by(rule):
                reason = rule["reason"].format(source=self.source, target=self.target)
                raise ImpossibleUpgradeError(" ".join(reason.split()))

    def _refused_by(self, rule: Mapping[str, Any]) -> bool:
        if rule.get("older_target"):
            return self.target < self.source
        if rule.get("migration"):
            return self.migrates and not (self.source == self.target and _within(self.source, rule["within"]))
        return _within(self.source, rule["from"]) and _within(self.target, rule["to"])

    def __str__(self) -> str:
        return f"{self.source}: ZooKeeper → KRaft" if self.migrates else f"{self.source} → {self.target}"

    @property
    def name(self) -> str:
        """The pair in names of directories."""
        return f"{self.source}-to-{self.target}"

    @property
    def raised(self) -> dict[str, tuple[int, ...]]:
        """By feature the levels to finalize, one after the other: metadata.version first, transaction.version second.

        A cluster keeps the levels with which it was formatted, and has level 0 of a feature that is new. Levels of
        metadata.version are not passed one by one: each is a superset of those before.
        """
        old, new = features_of(self.source), features_of(self.target)
        found = {}
        for name, offered in sorted(new.items(), key=lambda each: (_ORDER.get(each[0], _OTHERS), each[0])):
            before = old[name].initial if name in old else 0
            levels = range(before + 1, offered.highest + 1)
            if levels:
                found[name] = (offered.highest,) if name == METADATA else tuple(levels)
        return found


METADATA = "metadata.version"
TRANSACTIONS = "transaction.version"
#: A cluster cannot go back from kraft.version, so it is the last one.
_ORDER = {METADATA: 0, TRANSACTIONS: 1, "group.version": 2, "kraft.version": 9}
_OTHERS = 3


def features_of(release: Release) -> dict[str, FeatureRange]:
    """The features of the release's line, by name; empty for a line that was not measured."""
    line = table("features.toml").get(line_of(release), {})
    return {
        name: FeatureRange(lowest=lowest, highest=highest, initial=initial)
        for name, (lowest, highest, initial) in line.items()
    }


def release_lines(features: Mapping[BrokerId, Features]) -> dict[BrokerId, str]:
    """The line of each broker's release, such as `Kafka 4.3`, by the highest `metadata.version` that it supports.

    No request tells a release. A level of no release is named instead, and a broker without levels is left out.
    """
    lines = {each[METADATA][1]: f"Kafka {line}" for line, each in table("features.toml").items()}
    highest = {broker: each.supported[METADATA] for broker, each in features.items() if METADATA in each.supported}
    return {broker: lines.get(level, f"{METADATA} up to {level}") for broker, level in highest.items()}


def line_of(release: Release) -> str:
    """The line of a release, such as 4.3."""
    return f"{release.major}.{release.minor}"


@cache
def table(name: str) -> Mapping[str, Mapping[str, Any]]:
    """A file of data next to this module."""
    return tomllib.loads((_HERE / name).read_text(encoding="utf-8"))


def _within(release: Release, bounds: Sequence[str]) -> bool:
    lowest, below = bounds
    return (not lowest or Release.parse(lowest) <= release) and (not below or release < Release.parse(below))
