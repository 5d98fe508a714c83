"""Late completions: transactions whose end was decided, and which no coordinator completed although every node was up.

A coordinator that has written Prepare sends the markers at once and then writes Complete, in milliseconds. Until then
readers under read_committed do not go on, and the producer cannot begin anew. While nodes are down that may take as long as
they are down. So only the time counts in which no step of the schedule was under way and no fault stood
(`transaction_log_rows.undisturbed_ms`), and in it the longest stretch: a coordinator that starts again begins again.

The bound is the time that the wait for quiescence allows, and half of it more, because clients go on writing. The longest
completion in such a time of seven healthy upgrades took 1.5 s, at a load of 30 on two cores. Runs without stages have no
such time: what does not end in them shows at quiescence.

Free of pyspark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from verification.evidence.lso_samples import MARKERS_S
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.transaction_log_rows import NS_PER_MS, Window, undisturbed_ms, wall_clock_ns
from verification.evidence.upgrade_state import leader_at
from verification.vocabulary.history import Intent, Operation, Sample
from verification.vocabulary.transaction_log import TOPIC_INDEX, Entry, State
from verification.vocabulary.violations import RawViolation

LATE_MS = round(1.5 * MARKERS_S * 1_000)
DECIDED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
COMPLETED = frozenset({State.COMPLETE_COMMIT, State.COMPLETE_ABORT})


@dataclass(frozen=True, slots=True, kw_only=True)
class LateCompletion:
    """A decision, and the longest undisturbed stretch (wall-clock milliseconds) in which it was not completed."""

    decided: Entry
    from_ms: int
    until_ms: int

    @property
    def at_ms(self) -> int:
        """The middle of the stretch: every node is up, and every leader was looked at."""
        return (self.from_ms + self.until_ms) // 2

    def __str__(self) -> str:
        lasted_s = (self.until_ms - self.from_ms) / 1_000
        names = ", ".join(sorted(self.decided.places))
        return (
            f"{self.decided.state} of {self.decided.transactional_id}, with {names}: not completed in {lasted_s:.1f} s in "
            "which every node was up and no fault stood"
        )


def late_completions(entries: Iterable[Entry], undisturbed: Sequence[Window]) -> Iterator[LateCompletion]:
    """Decisions that were not completed within the bound. A decision whose next record is missing is left out."""
    histories: dict[tuple[int, str], list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: (each.partition, each.offset)) if undisturbed else ():
        histories[entry.partition, entry.transactional_id].append(entry)
    for history in histories.values():
        for decided, following in pairwise([*history, None]):
            if decided is None or decided.state not in DECIDED:
                continue
            if following is not None and following.state not in COMPLETED:
                continue
            ended_ms = undisturbed[-1][1] if following is None else following.appended_ms
            stretches = [(max(began, decided.appended_ms), min(ended, ended_ms)) for began, ended in undisturbed]
            began, ended = max(stretches, key=lambda each: each[1] - each[0])
            if ended - began > LATE_MS:
                yield LateCompletion(decided=decided, from_ms=began, until_ms=ended)


def of_violation(evidence: RunEvidence, violation: RawViolation) -> LateCompletion | None:
    """The late completion that a violation is about; None when it is about something else."""
    log = evidence.transaction_log
    if violation.topic_index != TOPIC_INDEX or log is None:
        return None
    place = (violation.partition, violation.offset)
    late = late_completions(log.entries, undisturbed_ms(evidence))
    return next((each for each in late if (each.decided.partition, each.decided.offset) == place), None)


def with_operation(evidence: RunEvidence, violation: RawViolation) -> RawViolation:
    """The violation with the operation that asked for the decision, where it is a late completion and a client did."""
    late, zero_ns = of_violation(evidence, violation), wall_clock_ns(evidence)
    if late is None or zero_ns is None:
        return violation
    intent = Intent.COMMIT if late.decided.state is State.PREPARE_COMMIT else Intent.ABORT
    asked = [
        each
        for each in evidence.history.of(Operation)
        if (each.transactional_id, each.intent) == (late.decided.transactional_id, intent)
        and each.decided_ns is not None
        and late.decided.began_ms <= (zero_ns + each.decided_ns) // NS_PER_MS <= late.decided.appended_ms
    ]
    return replace(violation, process=asked[-1].process, operation=asked[-1].operation) if asked else violation


def unmarked(evidence: RunEvidence, late: LateCompletion) -> Mapping[str, int | None]:
    """The transaction's partitions that had no marker in the stretch, each with its leader as far as known.

    The last stable offset of such a partition did not move. Partitions of other topics, such as those of committed offsets,
    have no such samples: they count where no other partition of the transaction was held back.
    """
    zero_ns = wall_clock_ns(evidence) or 0
    began_ns, at_ns, ended_ns = (each * NS_PER_MS - zero_ns for each in (late.from_ms, late.at_ms, late.until_ms))
    places = {name: _place(name) for name in sorted(late.decided.places)}
    held = {
        name: leader_at(evidence, *place, at_ns)
        for name, place in places.items()
        if _lso_stood(evidence, *place, began_ns, ended_ns)
    }
    return held or {
        name: leader_at(evidence, *place, at_ns)
        for name, place in places.items()
        if evidence.topic_index(place[0]) is None
    }


def _place(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def _lso_stood(evidence: RunEvidence, topic: str, partition: int, began_ns: int, ended_ns: int) -> bool:
    looks = [
        each
        for each in evidence.history.of(Sample)
        if (each.topic, each.partition) == (topic, partition)
        and began_ns <= each.at_ns <= ended_ns
        and min(each.high_watermark, each.last_stable_offset) >= 0
    ]
    behind = all(each.last_stable_offset < each.high_watermark for each in looks)
    return len(looks) > 1 and behind and len({each.last_stable_offset for each in looks}) == 1
