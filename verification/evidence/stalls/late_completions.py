"""Late completions: transactions whose end was decided, and which held back readers for too long although every node was up.

A coordinator that has written Prepare sends the markers at once and then writes Complete, in milliseconds. Until then
readers under read_committed do not go on, and the producer cannot begin anew. While nodes are down that may take as long as
they are down. So only the time counts in which no step of the schedule was under way and no fault stood
(`transaction_log_rows.undisturbed_ms`), and each such time by itself: a coordinator that starts again begins again.

Two things must be so at once. By the log the transaction was decided and not complete. And by the samples the last stable
offset of one of its partitions stood at one value below the high watermark, for longer than the wait for quiescence allows
for markers (`MARKERS_S`). The first alone is no violation: on a machine at a load of 40, a coordinator that took over wrote
Complete 8 s later, when readers had gone on for long. In ten healthy upgrades no last stable offset stood in such a time;
where the known bug KB-10 struck, one stood for 4 to 16 s.

Runs without stages have no such time: what does not end in them shows at quiescence.

Free of pyspark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from verification.evidence.lso_samples import MARKERS_S
from verification.evidence.row_types import Row
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.transaction_log_rows import NS_PER_MS, Look, Window, rows, wall_clock_ns
from verification.evidence.upgrade_state import leader_at
from verification.vocabulary.history import Intent, Operation
from verification.vocabulary.transaction_log import TOPIC_INDEX, Entry, State
from verification.vocabulary.violations import RawViolation

LATE_MS = round(MARKERS_S * 1_000)
DECIDED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
COMPLETED = frozenset({State.COMPLETE_COMMIT, State.COMPLETE_ABORT})


@dataclass(frozen=True, slots=True, kw_only=True)
class LateCompletion:
    """A decision, the partitions that it held back for too long, and the time of the longest (wall-clock milliseconds).

    That time is from the first look to the last one.
    """

    decided: Entry
    held: tuple[str, ...]
    from_ms: int
    until_ms: int

    @property
    def at_ms(self) -> int:
        """The middle: every node is up, and every leader was looked at."""
        return (self.from_ms + self.until_ms) // 2

    def __str__(self) -> str:
        lasted_s = (self.until_ms - self.from_ms) / 1_000
        names, held = ", ".join(sorted(self.decided.places)), ", ".join(self.held)
        return (
            f"{self.decided.state} of {self.decided.transactional_id}, with {names}: not completed, and the LSO of {held} "
            f"stood, for {lasted_s:.1f} s in which every node was up and no fault stood"
        )


def late_completions(row: Row) -> Iterator[LateCompletion]:
    """The late completions of a run, given the row of its transaction log.

    A decision whose next record is missing is left out.
    """
    undisturbed: Sequence[Window] = row["undisturbed_ms"]
    histories: dict[tuple[int, str], list[Entry]] = defaultdict(list)
    entries: Iterable[Entry] = row["log"].entries if undisturbed else ()
    for entry in sorted(entries, key=lambda each: (each.partition, each.offset)):
        histories[entry.partition, entry.transactional_id].append(entry)
    for history in histories.values():
        for decided, following in pairwise([*history, None]):
            if decided is None or decided.state not in DECIDED:
                continue
            if following is None or following.state in COMPLETED:
                ended_ms = undisturbed[-1][1] if following is None else following.appended_ms
                windows = [(max(began, decided.appended_ms), min(ended, ended_ms)) for began, ended in undisturbed]
                yield from _held_back(decided, windows, row["looks_ms"])


def _held_back(
    decided: Entry, windows: Iterable[Window], looks: Mapping[str, Sequence[Look]]
) -> Iterator[LateCompletion]:
    stood = {
        name: max((span for each in windows for span in _stood(looks.get(name, ()), each)), key=_length, default=(0, 0))
        for name in sorted(decided.places)
    }
    held = {name: span for name, span in stood.items() if _length(span) > LATE_MS}
    if held:
        began, ended = max(held.values(), key=_length)
        yield LateCompletion(decided=decided, held=tuple(held), from_ms=began, until_ms=ended)


def _stood(looks: Sequence[Look], window: Window) -> Iterator[Window]:
    """First and last look of each time in which the LSO had one value below the high watermark."""
    if _length(window) <= LATE_MS:
        return
    within = (each for each in looks if window[0] <= each[0] <= window[1])
    for (_, behind), some in groupby(within, key=lambda each: (each[1], each[1] < each[2])):
        if behind:
            times = [each[0] for each in some]
            yield times[0], times[-1]


def _length(window: Window) -> int:
    return window[1] - window[0]


def of_violation(evidence: RunEvidence, violation: RawViolation) -> LateCompletion | None:
    """The late completion that a violation is about; None when it is about something else."""
    if violation.topic_index != TOPIC_INDEX:
        return None
    place = (violation.partition, violation.offset)
    late = (each for row in rows(evidence) for each in late_completions(row))
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


def leaders(evidence: RunEvidence, late: LateCompletion) -> frozenset[int]:
    """The nodes that led the partitions that were held back, as far as known."""
    at_ns = late.at_ms * NS_PER_MS - (wall_clock_ns(evidence) or 0)
    places = (name.rpartition("-") for name in late.held)
    found = (leader_at(evidence, topic, int(partition), at_ns) for topic, _, partition in places)
    return frozenset(each for each in found if each is not None)
