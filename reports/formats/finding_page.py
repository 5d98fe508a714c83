"""The parts of a finding that the page shows: the columns of its examples, and the topic of one of them."""

from __future__ import annotations

from reports.model.findings import Example, FindingReport
from reports.model.report import ScenarioReport

_WITNESS_COLUMNS = (
    ("record", "Operation"),
    ("place", "Topic-partition@offset"),
    ("transaction", "Transactional id"),
    ("producer", "Producer"),
    ("told", "Answer to client"),
    ("observer", "Observer"),
    ("when", "When"),
    ("detail", "Detail"),
)


def topic_of(scenario: ScenarioReport, example: Example) -> str:
    """Partitions, replication factor and min ISR of the topic of an example, empty where it has no place."""
    topic = example.place.partition("@")[0].rpartition("-")[0]
    return next((each for each in scenario.topics if topic and each.startswith(f"{topic}: ")), "")


def columns_of(finding: FindingReport) -> tuple[tuple[str, str], ...]:
    """The columns in which at least one example has a value."""
    return tuple(
        (name, title) for name, title in _WITNESS_COLUMNS if any(getattr(each, name) for each in finding.witnesses)
    )
