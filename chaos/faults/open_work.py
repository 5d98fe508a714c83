"""Open transactions of a pipeline, as the ends of its outputs show them, and an instance that is stopped in one of its own.

An instance of a foreign program has no sync points. Its work is seen in the topics: while it has a transaction open, the
last stable offset of an output is below the high watermark. Whose transaction that is, no broker says. So an instance
is stopped (SIGSTOP) first: records that still wait a second later are its own, if the transactions of others are shorter.
Otherwise it is continued, and the next one is stopped a moment later, because an instance may have nothing to do. A
pipeline without transactions never shows that; it is struck at any moment.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from chaos.arena import Arena
from chaos.clients import ClientProcess
from chaos.cluster import Cluster, Position, Site
from chaos.errors import InjectionError, UnresolvedTargetError
from wire.values import TopicPartition

ROLE = "pipeline"
#: An instance that copies in transactions has one open most of the time: a few of its commits.
OPEN_WITHIN_S = 3.0
#: A look costs a request to each leader, 2 ms, and a transaction of a pipeline lasts 100 ms and more.
LOOK_EVERY_S = 0.02
#: A pipeline that keeps a state starts again in 5 to 15 s, and at a load of 20 in twice that; its transactions last seconds.
WORK_WITHIN_S = 60.0
#: Several transactions of the other instances, which last 0.2 to 0.5 s in the pipelines of this suite.
OWN_AFTER_S = 1.0
#: With two instances every second attempt meets a transaction of the one that is stopped: all fail in 1 of 4096 cases.
ATTEMPTS = 12
#: A single one was stopped just now: its next transaction has to begin. It is more each time, or every attempt meets the
#: same moment between two transactions; a worker of Kafka Connect was missed twelve times so.
ONCE_MORE_AFTER_S = 0.1


def others_wrote(arena: Arena, places: tuple[TopicPartition, ...], ends: Mapping[TopicPartition, Position]) -> bool:
    """Whether more was decided in each partition since these ends than the abort of the transaction that was open there."""
    now = arena.cluster.positions(places)
    # An abort is one control record in each partition.
    return all(now[at].last_stable_offset > ends[at].high_watermark + 1 for at in places)


def places_of(arena: Arena, topic: str, partitions: int) -> tuple[TopicPartition, ...]:
    """The partitions of a topic of the run; none with 0 of them."""
    return tuple(arena.partition(topic, partition) for partition in range(partitions))


def stopped(
    arena: Arena, places: tuple[TopicPartition, ...], site: Site | None = None
) -> tuple[ClientProcess, int, Mapping[TopicPartition, Position]]:
    """Stop an instance in a transaction of its own: which one, the records that wait for its end, the ends a second later.

    By then what the instance had sent has arrived, so that it is not taken for the work of others. 0 records when none was
    in a transaction of its own at any attempt; then the oldest is stopped. With `site` it is one of those there.
    """
    for attempt in range(ATTEMPTS):
        is_open = await_open(arena.cluster, places, OPEN_WITHIN_S)
        turns = tuple(each for each in arena.clients.alive(ROLE) if site in (None, each.site))
        if not turns:
            raise UnresolvedTargetError("no instance of the pipeline is running" + (f" at site {site}" if site else ""))
        last = not is_open or attempt == ATTEMPTS - 1
        instance = turns[0 if last else attempt % len(turns)]
        waiting, later = _stopped_for_a_moment(arena, instance, places)
        if waiting or last:
            break
        arena.clients.resume(instance)
        if len(turns) == 1:
            time.sleep(ONCE_MORE_AFTER_S * (attempt + 1))
    return instance, waiting, later


def _stopped_for_a_moment(
    arena: Arena, instance: ClientProcess, places: tuple[TopicPartition, ...]
) -> tuple[int, Mapping[TopicPartition, Position]]:
    """Stop this instance; the records that wait all the time, and the ends after it. It is continued after an error."""
    arena.clients.pause(instance)
    try:
        ends = arena.cluster.positions(places)
        # No condition to wait for: the claim is that nothing moves.
        time.sleep(OWN_AFTER_S)
        later = arena.cluster.positions(places)
    except BaseException:
        arena.clients.resume(instance)
        raise
    waiting = sum(
        later[at].high_watermark - ends[at].last_stable_offset
        for at in places
        if later[at].last_stable_offset == ends[at].last_stable_offset < ends[at].high_watermark
    )
    return waiting, later


def await_next_transaction(cluster: Cluster, places: tuple[TopicPartition, ...]) -> None:
    """Wait until all that was open is decided in every partition, and other records are open."""
    first = {at: ends.high_watermark for at, ends in cluster.positions(places).items()}
    deadline = time.monotonic() + WORK_WITHIN_S
    while True:
        time.sleep(LOOK_EVERY_S)
        found = cluster.positions(places)
        decided = all(ends.last_stable_offset >= first[at] for at, ends in found.items())
        if decided and any(ends.high_watermark > ends.last_stable_offset for ends in found.values()):
            return
        if time.monotonic() > deadline:
            raise InjectionError(f"no transaction of the pipeline ended and another began within {WORK_WITHIN_S:.0f} s")


def await_open(cluster: Cluster, places: tuple[TopicPartition, ...], within_s: float) -> int:
    """The records that wait for the end of a transaction; 0 if none did before the time was over, and for no partition."""
    deadline = time.monotonic() + (within_s if places else 0)
    while True:
        ends = [each for each in cluster.positions(places).values() if each.last_stable_offset >= 0]
        # The last stable offset is asked for later, and may be above the high watermark of before.
        if waiting := sum(max(each.high_watermark - each.last_stable_offset, 0) for each in ends):
            return waiting
        if time.monotonic() > deadline:
            return 0
        time.sleep(LOOK_EVERY_S)
