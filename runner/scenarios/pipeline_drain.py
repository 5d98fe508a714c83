"""Waits until a pipeline has worked off what it has taken on, so that it can be stopped and judged.

A pipeline may have topics between its parts, and work in a database. It commits its inputs before their outputs are there.
So one that is stopped too early looks like one that loses inputs.

A pipeline that spans two clusters consists of connectors; its work is counted in records.

Limit: an offset that never passes the markers at the end of a topic counts as work that is left.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from fixtures.databases.run_database import RunDatabase
from fixtures.recording.quiescence import Quiescence
from runner.scenarios.peer_cluster import PeerCluster, records_left
from verification.vocabulary.experiment import ExperimentTopic, TopicRole
from verification.vocabulary.history import DELIVERIES, UNSEEN, Sample
from verification.vocabulary.quiescent_state import PartitionEnd

#: A look costs a few requests, and a pipeline commits once or more in a second.
LOOK_EVERY_S = 0.5


class PipelineDrain:
    """The work that the pipeline of one run, in this group, still has to do; `topics` are those of the run."""

    def __init__(
        self,
        quiescence: Quiescence,
        database: RunDatabase | None,
        peer: PeerCluster | None = None,
        *,
        group: str,
        topics: Sequence[ExperimentTopic],
    ) -> None:
        self._quiescence, self._database, self._peer, self._group = quiescence, database, peer, group
        self._own = quiescence.own_topics(group, [topic.name for topic in topics])
        self._read = (*self._own, *(topic.name for topic in topics if topic.role is TopicRole.INPUT))

    @property
    def needed(self) -> bool:
        """Whether outputs may be ahead of its position or behind it; else it may be stopped at once.

        Behind it, if it reads topics of its own, or has work in its database or on its peer. Ahead of it in a share group,
        whose members acknowledge out of order. One that counts its deliveries is asked for them at rest.
        """
        pipeline = None if self._database is None else self._database.pipeline
        holds = pipeline is not None and bool(pipeline.pending or pipeline.deliveries)
        return bool(self._own) or holds or self._peer is not None or self._quiescence.position == "share"

    def complete(self, *, timeout_s: float) -> str:
        """Wait for the end of the work; nothing may be fed any more. Returns a sentence if it does not come in time."""
        deadline = time.monotonic() + timeout_s
        while left := self._left():
            if time.monotonic() > deadline:
                places = ", ".join(self._read)
                return f"the pipeline is not at the end of {places}: {left} offsets left after {timeout_s:.0f} s"
            time.sleep(LOOK_EVERY_S)
        return ""

    def between(self) -> list[Sample]:
        """How much there is in the topics between the parts, once nothing comes any more; and how many records came.

        The latter is the count of the pipeline in its database, if it has one. Raises WireError and DatabaseError.
        """
        ends = self._quiescence.ends(self._quiescence.places(self._own))
        count = None if self._database is None else self._database.deliveries()
        if count is not None:
            topic = f"{self._group}{DELIVERIES}"
            ends += (PartitionEnd(topic=topic, partition=0, start=0, high_watermark=count, last_stable_offset=count),)
        return [
            Sample(
                at_ns=time.monotonic_ns(),
                topic=end.topic,
                partition=end.partition,
                leader=UNSEEN,
                high_watermark=end.high_watermark,
                last_stable_offset=end.last_stable_offset,
            )
            for end in ends
        ]

    def _left(self) -> int:
        """The offsets that were not read, else the work in the database, else the offsets that followed from it.

        Inputs go through the database to topics of its own, so that nothing is left if each is empty in this order.
        """
        if self._peer is not None:
            return self._left_here(self._peer) or self._left_there(self._peer)
        left = self._quiescence.unread(self._group, self._read)
        if left or self._database is None:
            return left
        return self._database.pending() or self._quiescence.unread(self._group, self._read)

    def _left_here(self, peer: PeerCluster) -> int:
        """The inputs that connectors have not copied to the peer. Positions are asked before ends, as in `unread`."""
        positions = self._quiescence.connector_positions(self._group)
        return records_left(self._quiescence.client, self._quiescence.places(peer.inputs), positions)

    def _left_there(self, peer: PeerCluster) -> int:
        """Their copies on the peer that connectors have not copied back."""
        positions = self._quiescence.connector_positions(self._group)
        return records_left(peer.client, peer.copies(), positions)
