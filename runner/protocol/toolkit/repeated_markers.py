"""Markers that a coordinator may have sent again, because a broker or this machine stood still.

A coordinator sends a marker again when it has had no answer for request.timeout.ms. The leader may then append both: the
second one takes an offset and changes nothing else (COORD-08). Seen on 4.0.0, TV2, where an answer was 6.5 s late. So a
claim on the number of markers, or on the end of a log, may be false after a stall, although the brokers did nothing
wrong.

A script that is younger than this time cannot have met it, and every claim of it counts. In an older one a claim that
does not hold counts only where no marker in the case's topics stands directly after an equal one of the same producer.
A case that sends markers itself knows how many there must be: its claims always count.

Limit: two transactions in a row with a partition that they never wrote to leave the same trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fixtures.clusters.brokers.properties import REQUEST_TIMEOUT_S
from wire.errors import WireError
from wire.values import TopicPartition

if TYPE_CHECKING:
    from runner.protocol.toolkit.inspector import Inspector
    from runner.protocol.toolkit.script_recorder import ScriptRecorder
    from wire.client import Client
    from wire.records import Batch, Marker

API = "WriteTxnMarkers"
#: In the seconds before, no coordinator has sent a marker again.
OLD_S = REQUEST_TIMEOUT_S


def repeated(name: str, recording: ScriptRecorder, client: Client, inspect: Inspector) -> list[str]:
    """The partitions of an old case's topics in which a coordinator may have repeated a marker; empty if none can be read.

    The names of the topics begin with that of the case. Old is a case of at least `OLD_S`.
    """
    if any(each.api == API for each in recording.exchanges):
        return []
    try:
        topics = client.metadata().topics
        places = [TopicPartition(topic, index) for topic in topics for index in topics[topic].partitions]
        mine = [at for at in sorted(places) if at.topic.startswith(name)]
        return [str(at) for at in mine if _has_repetition(inspect.batches(at))]
    except WireError:
        return []


def _has_repetition(batches: list[Batch]) -> bool:
    """Whether a marker stands directly after an equal one of the same producer."""
    last: dict[int, tuple[Marker | None, int]] = {}
    for batch in batches:
        marker = (batch.marker(), batch.producer_epoch)
        if marker[0] is not None and last.get(batch.producer_id) == marker:
            return True
        last[batch.producer_id] = marker
    return False
