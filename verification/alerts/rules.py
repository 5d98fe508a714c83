"""Rules of alerts that an operator can set on metrics, and the anomalies that each of them can show (`alerts.toml`).

Free of pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from verification.requirements.toml_table import Table, read_toml
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.errors import CatalogueError

FILE = Path(__file__).with_name("alerts.toml")
#: Longer than the commit interval of most applications. A run is observed for half a minute after its last fault.
STANDS_S = 15


class When(StrEnum):
    """When an alert fires: while its metric is above 0; each time it rises; when it has not fallen for `STANDS_S`."""

    POSITIVE = "above 0"
    RISES = "rises"
    STANDS = "stands"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A rule. `of` is an expression that limits it to parts of a source; `shows` are the anomalies that it can reveal.

    `bound` takes the place of 0: a value must be above it, or rise by more between two readings.
    """

    name: str
    text: str
    metric: str
    when: When
    shows: frozenset[Anomaly]
    source: str
    of: str | None = None
    bound: int = 0

    def concerns(self, name: str, of: str) -> bool:
        """Whether the rule is about this metric, of this part of a source."""
        return name == self.metric and (self.of is None or re.fullmatch(self.of, of) is not None)


@cache
def load() -> Mapping[str, Alert]:
    """Every rule by its name. Raises CatalogueError for a file that is not as documented."""
    return {name: _alert(name, body) for name, body in read_toml(FILE, CatalogueError).items()}


def _alert(name: str, body: object) -> Alert:
    entry = Table(body, file=FILE.name, entry=name, complain=CatalogueError)
    alert = Alert(
        name=name,
        text=entry.text("text"),
        metric=entry.text("metric"),
        shows=frozenset(entry.choices("shows", Anomaly)),
        source=entry.text("source"),
        when=entry.choice("when", When),
        of=entry.optional_text("of"),
        bound=entry.optional_integer("bound") or 0,
    )
    entry.finish()
    return alert
