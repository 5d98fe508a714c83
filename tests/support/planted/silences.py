"""Planted histories of a last stable offset that stands for a time, and of the metric that its leader states meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tests.support.planted.busy import Found, busy, found
from tests.support.planted.histories import Plant
from verification.evidence.stalls.silences import BOUND_S, METRIC
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import UP, Metric, Sample

S = 1_000_000_000
LEADER = 1
#: A second and more beyond the bound.
STOOD_S = int(BOUND_S) + 3


def row_of(run: str = "planted", **over: Any) -> dict[str, Any]:
    """The row of a partition whose last stable offset stood at 0, while the metric said so."""
    row = {"run": run, "topic_index": 0, "partition": 0, "offset": 0, "leader": LEADER}
    return {**row, "stood_ms": STOOD_S * 1_000, "stated": 0.0, **over}


def _planted(
    run: str,
    *stated: tuple[float, str, float],
    stood_s: int = STOOD_S,
    down: Collection[int] = (),
    **over: Any,
) -> Plant:
    """A look every second at an offset that stands, and what the leader states: (second, metric, value).

    It answers in every second but those in `down`.
    """
    planted = busy(run)
    began_ns, topic = planted.now, planted.topics[0].name
    for second in range(stood_s + 2):
        stable = 0 if second <= stood_s else 9
        planted.entries.append(
            Sample(
                at_ns=began_ns + second * S,
                topic=topic,
                partition=0,
                leader=LEADER,
                high_watermark=9,
                last_stable_offset=stable,
            )
        )
    read = [(second + 0.5, UP, 1.0) for second in range(-2, stood_s + 2) if second not in down]
    for at_s, name, value in (*read, *stated):
        of = "" if name == UP else f"{topic}-0"
        at_ns = began_ns + round(at_s * S)
        planted.entries.append(Metric(at_ns=at_ns, source=f"broker {LEADER}", name=name, of=of, value=value))
    plant = planted.finish()
    plant.rows["silences"] = [row_of(run, stood_ms=stood_s * 1_000, **over)]
    return plant


def silent(run: str) -> tuple[Plant, set[Found]]:
    """The metric says 0 from before the offset stands, and never anything else; the broker goes away afterwards."""
    return _planted(run, (-1, METRIC, 0), (STOOD_S + 1.9, UP, 0)), {
        found(str(Anomaly.SILENT_METRIC), None, topic_index=0, partition=0, offset=0)
    }


def spoken(run: str) -> tuple[Plant, set[Found]]:
    """The metric says so after some seconds."""
    return _planted(run, (-1, METRIC, 0), (4, METRIC, 9), stated=9.0), set()


def silent_for_a_moment(run: str) -> tuple[Plant, set[Found]]:
    """The offset stands for less than the bound."""
    return _planted(run, (-1, METRIC, 0), stood_s=int(BOUND_S) - 1), set()


def silent_while_down(run: str) -> tuple[Plant, set[Found]]:
    """The broker states nothing in between, so the value is old."""
    return _planted(run, (-1, METRIC, 0), (5, UP, 0), (7, METRIC, 0), down=(5, 6), stated=None), set()


def silent_unread(run: str) -> tuple[Plant, set[Found]]:
    """For some seconds the metric was not read, as on a machine that stood still."""
    return _planted(run, (-1, METRIC, 0), down=range(6, 12), stated=None), set()


def silent_from_late_on(run: str) -> tuple[Plant, set[Found]]:
    """The metric is stated for the first time when the offset has stood for long."""
    return _planted(run, (6, METRIC, 0), stated=None), set()
