"""Coverage: how much was really tried, counted from the history, so that a pass means something.

Windows come from the faults: *before* ends when the first one begins, *after* begins when the last one is healed,
*during* is every time between a fault's beginning and its healing. A run without faults is all before and all after. A
fault that was never healed has no after. Operations are transactions, appends and copies that had inputs; `init` does not
count. The least number that a scenario needs is a floor of its experiment.

Free of pyspark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from verification.coverage import fault_measures, pipeline_measures, stage_measures
from verification.coverage.fault_measures import last_heal_ns, transactional
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.errors import UnknownFloorError
from verification.vocabulary.experiment import Floor
from verification.vocabulary.history import (
    FENCING_CODES,
    FENCING_NAMES,
    Action,
    FaultRecord,
    Intent,
    Operation,
    Outcome,
)
from verification.vocabulary.verdict import CoverageItem

#: One rise may have another reason, such as the expiration of a producer id. A producer of transaction.version 2 has many.
TV2_RISES = 3


def is_work(operation: Operation) -> bool:
    """Whether an operation counts: `init` does not, nor does a copy that had no input."""
    empty = operation.action is Action.COPY and not operation.inputs and not operation.records
    return operation.action is not Action.INIT and not empty


def worked(evidence: RunEvidence) -> tuple[Operation, ...]:
    """The operations that count."""
    return tuple(filter(is_work, evidence.history.of(Operation)))


def _ok(evidence: RunEvidence) -> tuple[Operation, ...]:
    return tuple(each for each in worked(evidence) if each.outcome is Outcome.OK)


def ok_before(evidence: RunEvidence) -> int:
    """Operations that completed ok before the first step of the schedule began; changes that others make come after it."""
    faults = evidence.history.of(FaultRecord)
    began = min(((each.step, each.began_ns) for each in faults), default=(0, None))[1]
    return sum(1 for each in _ok(evidence) if began is None or (each.completed_ns or each.invoked_ns) < began)


def attempted_during(evidence: RunEvidence) -> int:
    """Operations that were under way at some time while a fault held."""
    windows = [(each.began_ns, each.healed_ns) for each in evidence.history.of(FaultRecord)]
    return sum(
        1
        for each in worked(evidence)
        if any(
            (healed is None or each.invoked_ns <= healed) and (each.completed_ns is None or each.completed_ns >= began)
            for began, healed in windows
        )
    )


def ok_after(evidence: RunEvidence) -> int:
    """Operations that were invoked after the last fault was healed and completed ok."""
    last = last_heal_ns(evidence)
    return sum(1 for each in _ok(evidence) if last is not None and each.invoked_ns > last)


def records(evidence: RunEvidence) -> int:
    """Records of operations that completed ok."""
    return sum(each.records for each in _ok(evidence))


def transactions(evidence: RunEvidence) -> int:
    """Transactions that ended as they were meant to."""
    return sum(1 for each in _ok(evidence) if transactional(each))


def aborted(evidence: RunEvidence) -> int:
    """Transactions that were aborted on purpose and confirmed."""
    return sum(1 for each in _ok(evidence) if transactional(each) and each.intent is Intent.ABORT)


def faults_confirmed(evidence: RunEvidence) -> int:
    """Faults that were seen to take hold, and were applied and healed without an error."""
    faults = evidence.history.of(FaultRecord)
    return sum(1 for each in faults if each.confirmed_ns is not None and each.error is None)


def _successions(evidence: RunEvidence) -> Mapping[str, list[tuple[int, int]]]:
    """By transactional id, in order: the time of each successful `init`, and its process."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for each in evidence.history.of(Operation):
        initialised = each.action is Action.INIT and each.outcome is Outcome.OK
        if initialised and each.transactional_id is not None and each.completed_ns is not None:
            found[each.transactional_id].append((each.completed_ns, each.process))
    return {name: sorted(entries) for name, entries in found.items()}


def fenced_answers(evidence: RunEvidence) -> int:
    """Requests of an old instance that were answered with a fencing error after its successor was initialised."""
    successions = _successions(evidence)
    count = 0
    for each in evidence.history.of(Operation):
        fenced = each.error_name in FENCING_NAMES or each.error_code in FENCING_CODES
        if not fenced or each.transactional_id is None or each.completed_ns is None:
            continue
        before = [entry for entry in successions.get(each.transactional_id, []) if entry[0] < each.completed_ns]
        count += bool(before) and before[-1][1] != each.process
    return count


def epoch_bumps(evidence: RunEvidence) -> int:
    """Changes of a transactional id's owner or epoch, by the answers to clients."""
    by_id = {name: len(entries) - 1 for name, entries in _successions(evidence).items()}
    received: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for each in evidence.history.of(Operation):
        if each.transactional_id is not None and each.producer_id is not None and each.producer_epoch is not None:
            received[each.transactional_id].add((each.producer_id, each.producer_epoch))
    return sum(max(by_id.get(name, 0), len(received[name]) - 1) for name in {*by_id, *received})


def tv2_producers(evidence: RunEvidence) -> int:
    """Transactional ids of producers whose epoch rose from one transaction that ended as meant to the next one.

    With transaction.version 2 every end of a transaction raises it (KIP-890). Before, an instance's epoch rises only after
    an error. The finalized level of the cluster does not say it: a producer learns of it with a new connection.
    """
    rises: dict[str, int] = defaultdict(int)
    last: dict[int, Operation] = {}
    for each in evidence.history.of(Operation):
        if not transactional(each) or each.producer_epoch is None:
            continue
        before, last[each.process] = last.get(each.process, each), each
        rose = before.producer_id != each.producer_id or (before.producer_epoch or 0) < each.producer_epoch
        if rose and before.outcome is each.outcome is Outcome.OK and each.transactional_id is not None:
            rises[each.transactional_id] += 1
    return sum(1 for count in rises.values() if count >= TV2_RISES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One kind of event that is counted; `text` is its name in a report. Counts by part stand for the least of them."""

    count: Callable[[RunEvidence], int | Mapping[str, int]]
    text: str

    def item(self, evidence: RunEvidence, floor: Floor) -> CoverageItem | None:
        """The count next to what the floor needs; the text also names the part that has least.

        None where the history has no such part. A step that failed is a part, and a step that is missing fails its own
        floor (`faults_confirmed`).
        """
        counted = self.count(evidence)
        if isinstance(counted, int):
            return CoverageItem(name=floor.name, have=counted, need=floor.need, text=self.text)
        if not counted:
            return None
        part = min(counted, key=lambda each: counted[each])
        return CoverageItem(name=floor.name, have=counted[part], need=floor.need, text=f"{self.text} (least: {part})")


#: Everything that a floor may name.
MEASURES: dict[str, Measure] = {
    "ok_before": Measure(count=ok_before, text="operations ok before the first fault"),
    "attempted_during": Measure(count=attempted_during, text="operations attempted while a fault stood"),
    "ok_after": Measure(count=ok_after, text="operations ok after the last fault was healed"),
    "records": Measure(count=records, text="records of operations that ended ok"),
    "transactions": Measure(count=transactions, text="transactions that ended as meant"),
    "aborted": Measure(count=aborted, text="transactions aborted on purpose"),
    "faults_confirmed": Measure(count=faults_confirmed, text="faults seen to take hold"),
    "fenced_answers": Measure(count=fenced_answers, text="requests of an old instance answered as fenced"),
    "epoch_bumps": Measure(count=epoch_bumps, text="changes of a transactional id's owner or epoch"),
    "tv2_producers": Measure(count=tv2_producers, text="transactional ids used with transaction.version 2"),
    "observed": Measure(count=fault_measures.observed, text="records given to live observers"),
    "transactions_after": Measure(
        count=fault_measures.transactions_after, text="transactions that ended as meant after the last fault was healed"
    ),
    "struck_after": Measure(
        count=fault_measures.struck_after, text="of those, by each client that was struck or its successor at least"
    ),
    "copied_past": Measure(
        count=fault_measures.copied_past,
        text="input partitions copied past all that was taken up until the last fault was healed",
    ),
    "refused_members": Measure(
        count=fault_measures.refused_members, text="copies refused because the group had gone on without the member"
    ),
    "lso_stood": Measure(
        count=fault_measures.lso_stood,
        text="partitions whose LSO stood at a transaction that a killed client had left open",
    ),
    "undecided_at_strike": Measure(
        count=fault_measures.undecided_at_strike,
        text="commits and aborts asked for and unanswered when a fault had struck",
    ),
    "committed_while_leaderless": Measure(
        count=fault_measures.committed_while_leaderless, text="commits answered ok while a partition had no leader"
    ),
    "held_up": Measure(
        count=fault_measures.held_up,
        text=f"operations that a fault kept from ending, {fault_measures.HELD_UP_S:g} s or more and longer than without it",
    ),
    "observed_during": Measure(
        count=fault_measures.observed_during, text="records given to live observers while a fault stood"
    ),
    "observers_at_end": Measure(
        count=fault_measures.observers_at_end, text="live observers that read to the end of every partition"
    ),
    "transactions_each_stage": Measure(
        count=stage_measures.transactions_each_stage, text="transactions that ended as meant in each stage"
    ),
    "aborted_each_kind": Measure(
        count=stage_measures.aborted_each_kind, text="transactions aborted on purpose in each kind of stage"
    ),
    "offsets_each_kind": Measure(
        count=stage_measures.offsets_each_kind, text="copies that committed their offsets in each kind of stage"
    ),
    "transactions_each_placement": Measure(
        count=stage_measures.transactions_each_placement,
        text="transactions that ended as meant in each placement of roles",
    ),
    "ids_each_taking": Measure(
        count=stage_measures.ids_each_taking,
        text="producer ids in the transaction log that were new whenever some were taken",
    ),
    "spanned_each_roll": Measure(
        count=stage_measures.spanned_each_roll,
        text="transactions begun before each roll stopped its node and decided after it was started again",
    ),
    "copied_together": Measure(
        count=stage_measures.copied_together,
        text="copies by members of the old release while a member of the new one copied, too",
    ),
    "copied_before": Measure(
        count=pipeline_measures.copied_before, text="offsets of outputs decided before the first fault"
    ),
    "copied_after": Measure(
        count=pipeline_measures.copied_after, text="offsets of outputs decided after the last fault was healed"
    ),
    "caught_up": Measure(
        count=pipeline_measures.caught_up,
        text="input partitions whose offsets from before the after-window the pipeline has committed",
    ),
    "copied_again": Measure(
        count=pipeline_measures.copied_again, text="committed outputs beyond those that each input must have"
    ),
    "redelivered": Measure(
        count=pipeline_measures.redelivered,
        text="records that came to the pipeline, or to topics between its parts, beyond one for each row of its database",
    ),
    "drained": Measure(count=pipeline_measures.drained, text="pipelines that left no work in topics of their own"),
    "kept_counts": Measure(count=pipeline_measures.kept_counts, text="keys read from the pipeline's state at the end"),
    "met_work": Measure(
        count=pipeline_measures.met_work,
        text="records of an open transaction when an instance was killed, paused or cut off",
    ),
    "interrupted_copies": Measure(
        count=pipeline_measures.interrupted_copies, text="aborts of the pipeline's transactions, by partition"
    ),
}


def coverage(evidence: RunEvidence) -> tuple[CoverageItem, ...]:
    """Have and need of every floor of the run's experiment; raises UnknownFloorError."""
    items = []
    for floor in evidence.experiment.floors:
        measure = MEASURES.get(floor.name)
        if measure is None:
            raise UnknownFloorError(f"coverage floor {floor.name!r} is unknown; known are {', '.join(MEASURES)}")
        items += [item for item in (measure.item(evidence, floor),) if item is not None]
    return tuple(items)
