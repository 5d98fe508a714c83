"""The checks without dataframes: those of the transaction log, `lost-node` and `state-divergence`.

They walk over few rows, in Spark's driver, and cost no job. `verification.evidence.lost_nodes` says for which lost nodes a
release is to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from verification.checks.states import state_divergence
from verification.checks.transaction_log import illegal_transitions, late_completions, refused_producers
from verification.evidence.lost_nodes import described, excuse
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

if TYPE_CHECKING:
    from verification.evidence.row_types import Row, Rows


def lost_nodes(frame: Iterable[Row]) -> Iterator[RawViolation]:
    """Lost nodes for which nothing but their release is to blame. One violation per node; it has no place."""
    for row in frame:
        if not excuse(row):
            yield RawViolation(anomaly=Anomaly.LOST_NODE, detail=described(row))


class RowWalk(NamedTuple):
    """A check without dataframes, and the rows that it reads."""

    frame: str
    find: Callable[[Iterable[Row]], Iterator[RawViolation]]

    def over(self, rows: Rows) -> list[RawViolation]:
        """What it finds in the rows of a run."""
        return list(self.find(rows.get(self.frame, ())))


#: The checks without dataframes, by name.
WALKS: Mapping[str, RowWalk] = {
    "illegal-transition": RowWalk("transaction_log", illegal_transitions),
    "late-completion": RowWalk("transaction_log", late_completions),
    "refused-producer": RowWalk("transaction_log", refused_producers),
    "lost-node": RowWalk("lost_nodes", lost_nodes),
    "state-divergence": RowWalk("counts", state_divergence),
}
