"""Observations for reproductions that the toolkit's inspector lacks: a last stable offset or commit that stays stuck."""

from __future__ import annotations

from functools import partial

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import plain
from wire.codes import ErrorCode
from wire.values import TopicPartition

#: "For ever" in a script: markers are written within milliseconds.
STANDS_S = 1.0
OFFSETS_TOPIC = "__consumer_offsets"
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT.name
#: OffsetFetch asks for stable offsets only since v7 (KIP-447).
STABLE_SINCE = "2.5.0"


def readable_to(case: CaseContext, at: TopicPartition) -> bool:
    """Whether the last stable offset reaches the end of the log within a second, behind one more plain record."""
    plain(case, at, "later")
    end = case.inspect.end(at)
    return bool(case.poll_until(partial(case.inspect.stable, at), lambda seen: seen == end, within_s=STANDS_S) == end)


def pending_partitions(case: CaseContext) -> list[TopicPartition]:
    """The partitions of `__consumer_offsets` on which a transaction stays open for a second."""
    indexes = case.client.metadata([OFFSETS_TOPIC]).topics[OFFSETS_TOPIC].partitions
    places = [TopicPartition(OFFSETS_TOPIC, index) for index in sorted(indexes)]

    def look() -> list[TopicPartition]:
        return [at for at in places if case.inspect.stable(at) < case.inspect.end(at)]

    found: list[TopicPartition] = case.poll_until(look, lambda seen: not seen, within_s=STANDS_S)
    return found


def stable_offset(case: CaseContext, group: str, at: TopicPartition) -> int | str:
    """The answer of OffsetFetch with RequireStable once it is stable, or its error after a second."""
    look = partial(case.inspect.offset, group, at, stable=True)
    found: int | str = case.poll_until(look, lambda seen: seen != UNSTABLE, within_s=STANDS_S)
    return found
