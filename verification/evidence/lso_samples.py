"""What the samples of a history say about time: when a partition had no leader, and when its last stable offset stood.

Partitions are looked at twice a second. A look becomes a sample when it saw something else than the one before, and
always while a partition is not at rest: without a leader, or with its last stable offset below its high watermark. A
busy machine looks later; so nothing is concluded about the time between two samples, and what stands is what was seen
to stand. Where a leader did not answer, or nobody did, nothing is known until the next answer.

Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, takewhile, zip_longest

from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.experiment import TopicRole
from verification.vocabulary.history import (
    NO_LEADER,
    UNSEEN,
    Action,
    FaultRecord,
    Operation,
    Outcome,
    ProcessRecord,
    Sample,
)

NS = 1_000_000_000
#: Partitions are sampled twice a second, so what a sample says may have been so this long before.
SAMPLED_S = 0.6
#: What a coordinator needs beyond a transaction's timeout before the LSO moves: one round of its abort interval (1 s in
#: our clusters) and 3 s for writing markers on a busy machine. The wait at quiescence takes the same.
MARKERS_S = 1.0 + 3.0

#: (topic index, partition)
Place = tuple[int, int]


def at_place(evidence: RunEvidence, place: Place) -> tuple[Sample, ...]:
    """The samples of one partition, in order of time."""
    name = evidence.topic(place[0])
    found = (each for each in evidence.history.of(Sample) if each.topic == name and each.partition == place[1])
    return tuple(sorted(found, key=lambda each: each.at_ns))


def outputs(evidence: RunEvidence) -> tuple[Place, ...]:
    """Every partition that clients write to."""
    topics = enumerate(evidence.experiment.topics)
    return tuple(
        (index, at) for index, each in topics if each.role is TopicRole.OUTPUT for at in range(each.partitions)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderless:
    """A time without a leader by the metadata: the first and the last look that saw none, and the next one, if any."""

    first_ns: int
    last_ns: int
    until_ns: int | None

    @property
    def began_ns(self) -> int:
        """As early as it may have begun where looks came in time."""
        return self.first_ns - int(SAMPLED_S * NS)


def leaderless(evidence: RunEvidence, place: Place) -> list[Leaderless]:
    """When the metadata named no leader. A moment at which nobody could say ends such a time."""
    alike = groupby(at_place(evidence, place), lambda each: each.leader == NO_LEADER)
    turns = [(none, [each.at_ns for each in looks]) for none, looks in alike]
    return [
        Leaderless(first_ns=looks[0], last_ns=looks[-1], until_ns=None if after is None else after[1][0])
        for (none, looks), after in zip_longest(turns, turns[1:])
        if none
    ]


def answered(evidence: RunEvidence, place: Place) -> tuple[Sample, ...]:
    """The samples of one partition in which its leader said where it ends."""
    return tuple(each for each in at_place(evidence, place) if min(each.high_watermark, each.last_stable_offset) >= 0)


def nobody_seen(evidence: RunEvidence, place: Place, from_ns: int, until_ns: int) -> bool:
    """Whether no leader answered between two moments, and the last look by the second one named none.

    There was none, or nobody could say; while nobody can, a look that saw the same as the one before is no sample.
    """
    if any(from_ns <= each.at_ns <= until_ns for each in answered(evidence, place)):
        return False
    looks = [each for each in at_place(evidence, place) if each.at_ns <= until_ns]
    return bool(looks) and looks[-1].leader in (NO_LEADER, UNSEEN)


def abandoned_ns(evidence: RunEvidence) -> tuple[int, ...]:
    """When clients were killed in the middle of a transaction of which they had not yet asked for the end."""
    open_in = {
        each.process
        for each in evidence.history.of(Operation)
        if each.transactional_id is not None
        and each.action is not Action.INIT
        and each.outcome is Outcome.INFO
        and each.decided_ns is None
    }
    killed = (each for each in evidence.history.of(ProcessRecord) if each.end == "killed")
    return tuple(sorted(each.ended_ns for each in killed if each.process in open_in))


def _looks_from(evidence: RunEvidence, place: Place, at_ns: int) -> list[Sample]:
    """The answered samples from a moment on; none where the first of them saw nothing held back."""
    looks = [each for each in answered(evidence, place) if each.at_ns >= at_ns]
    return looks if looks and looks[0].last_stable_offset < looks[0].high_watermark else []


def stood_s(evidence: RunEvidence, place: Place, since_ns: int) -> float:
    """How long the LSO was seen to stay below what the high watermark was at a moment."""
    looks = _looks_from(evidence, place, since_ns)
    standing = list(takewhile(lambda each: each.last_stable_offset < looks[0].high_watermark, looks))
    return (standing[-1].at_ns - standing[0].at_ns) / NS if standing else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A partition whose LSO was seen below an abandoned transaction after the bound for it had run out."""

    place: Place
    high_watermark: int
    last_stable_offset: int


def overdue(evidence: RunEvidence) -> Iterator[Overdue]:
    """Partitions that an abandoned transaction held back for too long, whatever released them in the end.

    What the first look after the client's death finds written belongs to a transaction that has begun by the second
    look, because the first one was answered by then. From there on the bound is the transaction timeout and `MARKERS_S`,
    and only a look after it convicts: nobody knows when the LSO moved between two looks, on a machine that stood still.
    Looked for where faults struck clients alone: a coordinator that was itself struck may take longer. What nobody
    looked at is left to the wait at quiescence.
    """
    if not all(each.processes for each in evidence.history.of(FaultRecord)):
        return
    bound_ns = int((evidence.experiment.transaction_timeout_s + MARKERS_S) * NS)
    for killed_ns in abandoned_ns(evidence):
        for place in outputs(evidence):
            looks = _looks_from(evidence, place, killed_ns)
            expired = [each for each in looks[2:] if each.at_ns > looks[1].at_ns + bound_ns]
            late = next((each for each in expired if each.last_stable_offset < looks[0].high_watermark), None)
            if late is not None:
                yield Overdue(
                    place=place, high_watermark=late.high_watermark, last_stable_offset=late.last_stable_offset
                )
