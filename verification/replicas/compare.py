"""Compares the replicas of a partition: they must hold the same records below their common high watermark.

Everything below a broker's high watermark is committed: it is in the log of every in-sync replica, and no election among
those takes it back. So a replica *vouches* for the offsets from its log start to its checkpointed high watermark. At
every offset all replicas that vouch for it must hold the same record. The common high watermark of two replicas is the
lower of theirs; a third replica that fell behind earlier does not change it. Above it replicas may differ: followers lag,
and tails are truncated after elections.

A difference is `inconsistent-offset`: two contents at one offset, or a missing record, also where every log ends below a
high watermark. Exceptions, each by rule:

* Offsets below a replica's log start are not compared; the log start is reported.
* If any broker has compacted the partition, a missing record proves nothing, because every broker cleans for itself. Two
  contents at one offset are still a difference.
* A damaged replica vouches for no offset from the damage on. Without a difference the verdict is then ERROR, not PASS.

Limit: brokers acknowledge records before they are on the disk. After a power failure, or a crash of the operating system,
a replica's log may end below its own checkpoint. It then copies the lost records from the leader, and until then its
files differ from the others'. A crash of the process alone does not do that. Nor do files show an allowed unclean
election: the old leader's committed records and its checkpoint contradict the new leader's log. After such an event a
difference needs an explanation before it is a finding about Kafka.

Batches are compared as bytes, which is enough where replicas are equal; their records are read only where batches
differ. Memory: one chunk of a file and one batch per replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from verification.replicas.cursor import Content, Cursor
from verification.replicas.directory import Replica
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import EXAMPLES_MAX, Finding, Verdict, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSummary:
    """One replica as it was read; `end` is the end of its log, `tail` describes bytes after it that are no batch."""

    replica: Replica
    end: int
    tail: str = ""
    damage: str = ""

    def notes(self) -> Iterator[str]:
        """Its peculiarities, in clauses; none for a complete replica of a broker that was stopped in order."""
        if self.replica.log_start > 0:
            yield f"begins at {self.replica.log_start}; earlier records were deleted"
        if self.replica.compacted_below is not None:
            yield f"is compacted below {self.replica.compacted_below}"
        if self.replica.high_watermark is None:
            yield "has no checkpointed high watermark"
        yield from (each for each in (self.tail, self.damage) if each)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaComparison:
    """The comparison of one partition's replicas, with its verdict.

    `first` and `end` bound the offsets that at least two replicas vouch for (`end` is exclusive). `finding` is None
    without a difference. Verdicts: FAIL for a difference; ERROR for a damaged replica; INCONCLUSIVE if no two replicas
    vouch for the same offset; NOT_APPLICABLE if there is nothing to compare.
    """

    topic: str
    partition: int
    topic_id: str
    held: tuple[ReplicaSummary, ...]
    first: int
    end: int
    verdict: Verdict
    reason: str
    finding: Finding | None = None


def compare(replicas: Sequence[Replica]) -> ReplicaComparison:
    """Compare the replicas of one partition; damage in their files raises nothing, and is in the result."""
    cursors = [Cursor(each) for each in replicas]
    examples: list[Violation] = []
    count = 0
    for offset, found in differences(cursors):
        count += 1
        if len(examples) < EXAMPLES_MAX:
            examples.append(_violation(replicas[0], offset, _detail(found)))
    broken = [each.damage for each in cursors if each.broken]
    # Only now, when every cursor is at its high watermark: records after it are read and not compared.
    held = tuple(_held(each) for each in cursors)
    ended, promised = max(each.end for each in held), max(each.until for each in cursors)
    if not broken and ended < promised:
        count += promised - ended
        detail = f"every log ends here, below the high watermark {promised}"
        examples = [*examples[: EXAMPLES_MAX - 1], _violation(replicas[0], ended, detail)]
    finding = None
    if count:
        finding = Finding(anomaly=str(Anomaly.INCONSISTENT_OFFSET), count=count, examples=tuple(examples))
    first, end = vouched([(each.replica.log_start, each.until) for each in cursors])
    verdict, reason = _judged(replicas, finding, first, end, broken)
    if verdict is Verdict.PASS and ended > end:
        # A few equal offsets say little about many that only one replica vouches for.
        reason += f"; no two of them vouch for the offsets above, up to {ended}"
    return ReplicaComparison(
        topic=replicas[0].topic,
        partition=replicas[0].partition,
        topic_id=replicas[0].topic_id,
        held=held,
        first=first,
        end=end,
        verdict=verdict,
        reason=reason,
        finding=finding,
    )


def vouched(spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The range from the first to the last offset that is in at least two spans [start, end); (0, 0) if there is none."""
    edges = sorted({edge for span in spans for edge in span})
    inside = [(low, high) for low, high in pairwise(edges) if sum(start <= low < end for start, end in spans) > 1]
    return (inside[0][0], inside[-1][1]) if inside else (0, 0)


def differences(cursors: Sequence[Cursor]) -> Iterator[tuple[int, dict[str, Content | None]]]:
    """Every offset at which replicas that vouch for it differ: offset, content by holder (None: no record)."""
    gaps_prove = all(each.replica.compacted_below is None for each in cursors)
    while live := [each for each in cursors if each.head is not None]:
        foremost = min(live, key=_reached)
        head = foremost.head
        assert head is not None
        asked = [each for each in cursors if each.vouches(head.base_offset, head.next_offset)]
        if all(each.head == head for each in asked):
            for each in {*asked, foremost}:
                each.advance()
            continue
        stop = min(each.head.next_offset for each in live if each.head is not None)
        taken = {each: each.take(stop) for each in live}
        for offset in sorted({offset for found in taken.values() for offset in found}):
            held = {
                each.replica.holder: taken.get(each, {}).get(offset)
                for each in cursors
                if each.vouches(offset, offset + 1)
            }
            present = {content for content in held.values() if content is not None}
            if len(present) > 1 or (present and None in held.values() and gaps_prove):
                yield offset, held


def _reached(cursor: Cursor) -> int:
    assert cursor.head is not None
    return cursor.head.next_offset


def _detail(found: dict[str, Content | None]) -> str:
    """The contents and their holders; holders of the same content are named together."""
    holders: dict[Content | None, list[str]] = {}
    for holder, content in found.items():
        holders.setdefault(content, []).append(holder)
    return "; ".join(f"{_listed(names)}: {content or 'nothing'}" for content, names in holders.items())


def _violation(replica: Replica, offset: int, detail: str) -> Violation:
    return Violation(
        anomaly=str(Anomaly.INCONSISTENT_OFFSET),
        topic=replica.topic,
        partition=replica.partition,
        offset=offset,
        detail=detail,
    )


def _held(cursor: Cursor) -> ReplicaSummary:
    end = cursor.read_to_the_end()
    tail = "" if cursor.log.tail is None else str(cursor.log.tail)
    return ReplicaSummary(replica=cursor.replica, end=end, tail=tail, damage=cursor.damage)


def _judged(
    replicas: Sequence[Replica], finding: Finding | None, first: int, end: int, damage: Sequence[str]
) -> tuple[Verdict, str]:
    held = _listed([each.holder for each in replicas])
    if finding is not None:
        first_wrong = finding.examples[0].offset
        return Verdict.FAIL, f"{finding.count} committed offsets are not the same on {held}, the first is {first_wrong}"
    if damage:
        return Verdict.ERROR, "; ".join(damage)
    if len(replicas) < 2:
        return Verdict.NOT_APPLICABLE, f"of these directories only {held} has a replica"
    if first < end:
        return Verdict.PASS, f"{held} hold the same in [{first}, {end})"
    if all((each.high_watermark or 0) <= each.log_start for each in replicas) and _all_known(replicas):
        return Verdict.NOT_APPLICABLE, f"it has no committed record on {held}"
    return Verdict.INCONCLUSIVE, f"no offset is below the high watermarks of two of {held}"


def _all_known(replicas: Iterable[Replica]) -> bool:
    return all(each.high_watermark is not None for each in replicas)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
