"""What the samples of a history say about time: when a partition had no leader, and when its last stable offset stood.

A sample is recorded when something changed since the look before, twice a second; between two samples a partition stood
as the earlier one says. Where a leader did not answer, or nobody did, nothing is known until the next answer.

Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from verification.evidence import RunEvidence
from verification.experiment import TopicRole
from verification.history import NO_LEADER, Action, FaultRecord, Operation, Outcome, ProcessRecord, Sample

NS = 1_000_000_000
#: Partitions are sampled twice a second, so what a sample says may have been so this long before.
SAMPLED_S = 0.6
#: What a coordinator needs beyond a transaction's timeout before the LSO moves: one round of its abort interval (1 s in
#: our clusters) and 3 s for writing markers on a busy machine. The wait at
#: quiescence takes the same.
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
    return _places(evidence, TopicRole.OUTPUT)


def inputs(evidence: RunEvidence) -> tuple[Place, ...]:
    """Every partition that copiers consume."""
    return _places(evidence, TopicRole.INPUT)


def _places(evidence: RunEvidence, role: TopicRole) -> tuple[Place, ...]:
    topics = enumerate(evidence.experiment.topics)
    return tuple((index, at) for index, topic in topics if topic.role is role for at in range(topic.partitions))


def leaderless(evidence: RunEvidence, place: Place) -> list[tuple[int, int | None]]:
    """When the metadata named no leader: [from, until) in ns, None while nobody was seen to lead afterwards.

    The beginning is as early as it may have been. A moment at which nobody could say ends a span.
    """
    spans: list[tuple[int, int | None]] = []
    began: int | None = None
    for each in at_place(evidence, place):
        if each.leader == NO_LEADER and began is None:
            began = each.at_ns - int(SAMPLED_S * NS)
        elif each.leader != NO_LEADER and began is not None:
            spans.append((began, each.at_ns))
            began = None
    return spans if began is None else [*spans, (began, None)]


def answered(evidence: RunEvidence, place: Place) -> tuple[Sample, ...]:
    """The samples of one partition in which its leader said where it ends."""
    return tuple(each for each in at_place(evidence, place) if min(each.high_watermark, each.last_stable_offset) >= 0)


def last_before(evidence: RunEvidence, place: Place, at_ns: int) -> Sample | None:
    """How a partition stood at a moment: the last answer until then."""
    return next((each for each in reversed(answered(evidence, place)) if each.at_ns <= at_ns), None)


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


def _first_from(evidence: RunEvidence, place: Place, at_ns: int) -> Sample | None:
    return next((each for each in answered(evidence, place) if each.at_ns >= at_ns), None)


def stood_s(evidence: RunEvidence, place: Place, since_ns: int) -> float:
    """How long the LSO stayed below what the high watermark was at a moment, as far as anybody looked."""
    then = _first_from(evidence, place, since_ns)
    if then is None or then.last_stable_offset >= then.high_watermark:
        return 0.0
    until_ns = then.at_ns
    for each in answered(evidence, place):
        if each.at_ns > then.at_ns:
            until_ns = each.at_ns
            if each.last_stable_offset >= then.high_watermark:
                break
    return (until_ns - then.at_ns) / NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A partition whose LSO had not come past an abandoned transaction when the bound for it ran out."""

    place: Place
    high_watermark: int
    last_stable_offset: int


def overdue(evidence: RunEvidence) -> Iterator[Overdue]:
    """Partitions that an abandoned transaction held back for too long, whatever released them in the end.

    The bound is the transaction timeout and `MARKERS_S`, from the first look after the client's death on: what had been
    written by then belongs to a transaction that had begun by then. Looked for where faults struck clients alone: a
    coordinator that was itself struck may take longer. What nobody saw move is left to the wait at quiescence.
    """
    if not all(each.processes for each in evidence.history.of(FaultRecord)):
        return
    bound_ns = int((evidence.experiment.transaction_timeout_s + MARKERS_S + SAMPLED_S) * NS)
    for killed_ns in abandoned_ns(evidence):
        for place in outputs(evidence):
            then = _first_from(evidence, place, killed_ns)
            for before, after in pairwise(at_place(evidence, place)):
                if then is None or not before.at_ns <= then.at_ns + bound_ns < after.at_ns:
                    continue
                if 0 <= before.last_stable_offset < then.high_watermark:
                    yield Overdue(
                        place=place,
                        high_watermark=before.high_watermark,
                        last_stable_offset=before.last_stable_offset,
                    )
