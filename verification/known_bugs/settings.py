"""Names the settings of a user that explain a finding: they bring back the mechanism of a bug, or are refused by a release.

A setting gives no finding the name of a known bug, because the bug is mended on that release: the finding decides, and the
setting is its reason.

Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verification.requirements.toml_table import Table, read_toml
from verification.vocabulary import releases
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.errors import KnownBugsError, ReleaseError

FILE = Path(__file__).with_name("settings.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEffect:
    """What settings do on releases from `since` to `until`; `says` goes on after the setting and its value."""

    settings: tuple[str, ...]
    says: str
    anomalies: tuple[Anomaly, ...]
    values: tuple[str, ...] = ()
    below: int = 0
    since: str = "0.0"
    until: str | None = None
    bug: str = ""

    def brought_by(self, value: str) -> bool:
        """Whether a value of the setting has the effect."""
        return value.lower() in self.values or (value.isascii() and value.isdigit() and int(value) < self.below)


def remarks(configuration: Mapping[str, str], run_by: Collection[str]) -> tuple[str, ...]:
    """A sentence on each setting with an effect on a release of the run."""
    return tuple(dict.fromkeys(text for _, text in _found(configuration, run_by)))


def behind_finding(
    configuration: Mapping[str, str], run_by: Collection[str], anomaly: str, topics: Collection[str] = ()
) -> str:
    """The settings that explain a finding of this anomaly, in sentences; empty without any. The run has these `topics`."""
    return " ".join(text for each, text in _found(configuration, run_by, topics) if anomaly in each.anomalies)


def behind_case(configuration: Mapping[str, str], release: str, shown_by: Collection[str]) -> str:
    """The settings that explain a violated protocol case, which shows these bugs on releases that have them."""
    return " ".join(text for each, text in _found(configuration, (release,)) if each.bug in shown_by)


def _found(
    configuration: Mapping[str, str], run_by: Collection[str], topics: Collection[str] = ()
) -> Iterator[tuple[SettingEffect, str]]:
    for each in load():
        for name, value in configuration.items():
            if name in each.settings and each.brought_by(value) and any(_concerns(each, one) for one in run_by):
                owner, _, setting = name.partition(": ")
                of = f" of {', '.join(sorted(topics))}" if topics and owner == "topics" else ""
                yield each, f"{setting}={value}{of} {each.says}"


def _concerns(effect: SettingEffect, release: str) -> bool:
    try:
        return releases.within(release, effect.since, effect.until)
    except ReleaseError:
        return False


@cache
def load(path: Path = FILE) -> tuple[SettingEffect, ...]:
    """Every effect. Raises KnownBugsError for an entry that does not fit."""
    return tuple(
        _effect(Table(body, file=path.name, entry=f"effect {number}", complain=KnownBugsError))
        for number, body in enumerate(read_toml(path, KnownBugsError)["effects"], start=1)
    )


def _effect(entry: Table) -> SettingEffect:
    effect = SettingEffect(
        settings=entry.strings("settings"),
        says=entry.text("says"),
        anomalies=entry.choices("anomalies", Anomaly),
        values=entry.strings("values"),
        below=entry.optional_integer("below") or 0,
        since=entry.optional_text("since") or "0.0",
        until=entry.optional_text("until"),
        bug=entry.optional_text("bug") or "",
    )
    entry.finish()
    return effect
