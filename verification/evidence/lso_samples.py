"""Times from the samples of a history: when a partition had no leader, and when its last stable offset did not move.

The harness looks at partitions twice a second. A look becomes a sample when it differs from the look before. It always
becomes one while the partition has no leader, or has its last stable offset below its high watermark. A busy machine looks
later, so nothing is concluded about the time between two samples. Where no broker answered, nothing is known until the
next answer.

Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, zip_longest

from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.experiment import EFFECT, TopicRole
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
#: Partitions are sampled twice a second, so the state in a sample may be this much older.
SAMPLED_S = 0.6
#: The time that a coordinator needs beyond a transaction's timeout before the LSO moves: one round of its abort interval
#: (1 s in our clusters) and 3 s for writing markers on a busy machine. The wait at quiescence uses the same.
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


def effects(evidence: RunEvidence) -> tuple[Place, ...]:
    """The outputs that are rows of a database, which no consumer reads."""
    return tuple(place for place in outputs(evidence) if evidence.experiment.topics[place[0]].shape == EFFECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderless:
    """A time without a leader by the metadata: the first and the last look without one, and the look after, if any."""

    first_ns: int
    last_ns: int
    until_ns: int | None

    @property
    def began_ns(self) -> int:
        """The earliest time at which it may have begun, where looks came in time."""
        return self.first_ns - int(SAMPLED_S * NS)


def leaderless(evidence: RunEvidence, place: Place) -> list[Leaderless]:
    """The times when the metadata named no leader. A look that no broker answered ends such a time."""
    alike = groupby(at_place(evidence, place), lambda each: each.leader == NO_LEADER)
    turns = [(none, [each.at_ns for each in looks]) for none, looks in alike]
    return [
        Leaderless(first_ns=looks[0], last_ns=looks[-1], until_ns=None if after is None else after[1][0])
        for (none, looks), after in zip_longest(turns, turns[1:])
        if none
    ]


def answered(evidence: RunEvidence, place: Place) -> tuple[Sample, ...]:
    """The samples of one partition that hold the ends which its leader stated."""
    return tuple(each for each in at_place(evidence, place) if min(each.high_watermark, each.last_stable_offset) >= 0)


def decided(evidence: RunEvidence, place: Place, until_ns: int | None = None) -> int:
    """The highest last stable offset that was sampled until a moment, or at all; 0 without an answered look."""
    looks = (each for each in answered(evidence, place) if until_ns is None or each.at_ns <= until_ns)
    return max((each.last_stable_offset for each in looks), default=0)


def no_leader_seen(evidence: RunEvidence, place: Place, from_ns: int, until_ns: int) -> bool:
    """Whether no leader answered between two moments, and the last look before the second one named none.

    The partition had no leader, or no broker answered for the metadata. In the second case a look that equals the look
    before is no sample.
    """
    if any(from_ns <= each.at_ns <= until_ns for each in answered(evidence, place)):
        return False
    looks = [each for each in at_place(evidence, place) if each.at_ns <= until_ns]
    return bool(looks) and looks[-1].leader in (NO_LEADER, UNSEEN)


def abandoned(evidence: RunEvidence) -> Iterator[tuple[Operation, int]]:
    """Operations within whose transaction clients were killed before they had requested its end, and when."""
    open_in = {
        each.process: each
        for each in evidence.history.of(Operation)
        if each.transactional_id is not None
        and each.action is not Action.INIT
        and each.outcome is Outcome.INFO
        and each.decided_ns is None
    }
    for each in evidence.history.of(ProcessRecord):
        if each.end == "killed" and each.process in open_in:
            yield open_in[each.process], each.ended_ns


def _looks_from(evidence: RunEvidence, place: Place, at_ns: int) -> list[Sample]:
    """The answered samples from a moment on; none where the LSO of the first is not below its high watermark."""
    looks = [each for each in answered(evidence, place) if each.at_ns >= at_ns]
    return looks if looks and looks[0].last_stable_offset < looks[0].high_watermark else []


def lso_stood_s(evidence: RunEvidence, place: Place, left: Operation) -> float:
    """How long samples show the LSO at the first record of an operation's transaction; 0 where it wrote none."""
    rows = evidence.capture_reader.producer_rows(left.process, left.operation)
    # The producer's other transactions are among them.
    own = (*place, left.process, left.operation)
    first = min((row[2] for row in rows if (*row[:2], *row[4:6]) == own), default=UNSEEN)
    held = [each.at_ns for each in answered(evidence, place) if each.last_stable_offset == first < each.high_watermark]
    return (max(held) - min(held)) / NS if held else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A partition whose LSO was still held back by an abandoned transaction after its bound."""

    place: Place
    high_watermark: int
    last_stable_offset: int


def overdue(evidence: RunEvidence) -> Iterator[Overdue]:
    """Partitions that an abandoned transaction held back for too long, however they were released in the end.

    Records that the first look after the client's death finds belong to a transaction that began before the second look.
    From the second look on, the bound is the transaction timeout and `MARKERS_S`. Only a look after the bound counts:
    between two looks, on a machine that stood still, the LSO may have moved at any time. Only runs whose faults struck
    clients alone are examined, because a coordinator that was struck may take longer. The wait at quiescence covers the
    rest.
    """
    if not all(each.processes for each in evidence.history.of(FaultRecord)):
        return
    bound_ns = int((evidence.experiment.transaction_timeout_s + MARKERS_S) * NS)
    for _, killed_ns in abandoned(evidence):
        for place in outputs(evidence):
            looks = _looks_from(evidence, place, killed_ns)
            expired = [each for each in looks[2:] if each.at_ns > looks[1].at_ns + bound_ns]
            late = next((each for each in expired if each.last_stable_offset < looks[0].high_watermark), None)
            if late is not None:
                yield Overdue(
                    place=place, high_watermark=late.high_watermark, last_stable_offset=late.last_stable_offset
                )
