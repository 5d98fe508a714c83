"""The checks without dataframes: of the transaction log, `lost-node`, `no-progress`, `silent-metric` and `state-divergence`.

They walk over few rows, in Spark's driver, and cost no job. In `verification.evidence.stalls`, `lost_nodes` says for which
lost nodes a release is to blame, `standstills` when a pipeline is, `unserved_clients` when a client is, and `silences`
when a metric is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from verification.checks.states import state_divergence
from verification.checks.transaction_log import illegal_transitions, late_completions, refused_producers
from verification.evidence.stalls import lost_nodes as nodes
from verification.evidence.stalls import silences, standstills, unserved_clients
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation

if TYPE_CHECKING:
    from verification.evidence.row_types import Row, Rows


def lost_nodes(frame: Iterable[Row]) -> Iterator[RawViolation]:
    """Lost nodes for which nothing but their release is to blame. One violation per node; it has no place."""
    for row in frame:
        if not nodes.excuse(row):
            yield RawViolation(anomaly=Anomaly.LOST_NODE, detail=nodes.described(row))


def no_progress(standing: Iterable[Row], unserved: Iterable[Row]) -> Iterator[RawViolation]:
    """Pipelines that stand still though inputs wait, and clients that make no progress though another client does.

    One violation per run each: at the next input of a partition that waits, and without a place.
    """
    for row in unserved:
        if not unserved_clients.excuse(row):
            yield RawViolation(anomaly=Anomaly.NO_PROGRESS, detail=unserved_clients.described(row))
    for row in standing:
        if not standstills.excuse(row):
            place = {name: row[name] for name in ("topic_index", "partition", "offset")}
            yield RawViolation(anomaly=Anomaly.NO_PROGRESS, **place, detail=standstills.described(row))


def silent_metrics(frame: Iterable[Row]) -> Iterator[RawViolation]:
    """Metrics that say 0 while a last stable offset stands. One violation per time, at the offset that stood."""
    for row in frame:
        if not silences.excuse(row):
            place = {name: row[name] for name in ("topic_index", "partition", "offset")}
            yield RawViolation(anomaly=Anomaly.SILENT_METRIC, **place, detail=silences.described(row))


class RowWalk(NamedTuple):
    """A check without dataframes, and the rows that it takes, one argument each."""

    frames: tuple[str, ...]
    find: Callable[..., Iterator[RawViolation]]

    def over(self, rows: Rows) -> list[RawViolation]:
        """What it finds in the rows of a run."""
        return list(self.find(*(rows.get(each, ()) for each in self.frames)))


#: The checks without dataframes, by name.
WALKS: Mapping[str, RowWalk] = {
    "illegal-transition": RowWalk(("transaction_log",), illegal_transitions),
    "late-completion": RowWalk(("transaction_log",), late_completions),
    "refused-producer": RowWalk(("transaction_log",), refused_producers),
    "lost-node": RowWalk(("lost_nodes",), lost_nodes),
    "no-progress": RowWalk(("standstills", "unserved_clients"), no_progress),
    "silent-metric": RowWalk(("silences",), silent_metrics),
    "state-divergence": RowWalk(("counts", "kept_counts"), state_divergence),
}
