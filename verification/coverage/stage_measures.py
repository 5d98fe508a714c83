"""Stage measures: count from the evidence whether clients worked in each stage of an upgrade, and across each roll.

A total hides a stage in which nothing happened, and a stage without work proves nothing about its mix of releases. So these
measures count in every stage, at every roll, or in every kind of stage, and the smallest count is the one that a floor
compares (`verification.coverage.coverage`). The kind is the first word of a stage's name: `finalize` for all feature levels.
What is rare, such as an abort, may be missing from a stage of two seconds, and is counted by kind.

Free of pyspark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import pairwise

from verification.coverage.fault_measures import transactional
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.transaction_log_rows import NS_PER_MS, wall_clock_ns
from verification.evidence.upgrade_state import stages, steps
from verification.vocabulary.history import Action, FaultRecord, Intent, Operation, Outcome, ProcessRecord

#: The fault classes that roll a node, to another release or to its own, and the one that places roles on nodes
#: (`chaos.operations`).
ROLLS, PLACEMENT = ("RollNext", "RestartNext"), "PlaceRoles"
#: How the library of a client begins that has the releases of Kafka.
JAVA_CLIENTS = "kafka-clients "
#: The one that takes new producer ids.
IDS_TAKEN = "TakeProducerIds"


def _counted(evidence: RunEvidence, counts: Callable[[Operation], bool], *, by_kind: bool = False) -> Mapping[str, int]:
    """By stage, or by kind, the transactions that ended as meant within it, and of which `counts` is true."""
    done = [
        each.completed_ns
        for each in evidence.history.of(Operation)
        if each.outcome is Outcome.OK and transactional(each) and each.completed_ns is not None and counts(each)
    ]
    found: dict[str, int] = defaultdict(int)
    for stage in stages(evidence):
        name = stage.name.split()[0] if by_kind else stage.name
        found[name] += sum(stage.began_ns <= each <= stage.ended_ns for each in done)
    return found


def transactions_each_stage(evidence: RunEvidence) -> Mapping[str, int]:
    """Transactions that ended as meant, by stage. A copy without inputs does not count."""
    return _counted(evidence, lambda each: bool(each.inputs or each.records or each.action is not Action.COPY))


def aborted_each_kind(evidence: RunEvidence) -> Mapping[str, int]:
    """Transactions that were aborted on purpose, by kind of stage."""
    return _counted(evidence, lambda each: each.intent is Intent.ABORT, by_kind=True)


def offsets_each_kind(evidence: RunEvidence) -> Mapping[str, int]:
    """Copies that committed the offsets of their inputs in their transaction, by kind of stage."""
    return _counted(evidence, lambda each: bool(each.inputs) and each.intent is Intent.COMMIT, by_kind=True)


def spanned_each_roll(evidence: RunEvidence) -> Mapping[str, int]:
    """By roll: transactions that were begun before the node went down, decided after it was started, and ended as meant."""
    ended = [each for each in evidence.history.of(Operation) if each.outcome is Outcome.OK and transactional(each)]
    rolls = [each for each in steps(evidence) if each.fault in ROLLS]
    return {
        _name(each): sum(
            operation.invoked_ns < each.struck_ns and (operation.decided_ns or 0) > each.applied_ns
            for operation in ended
            if each.struck_ns is not None and each.applied_ns is not None
        )
        for each in rolls
    }


def transactions_each_placement(evidence: RunEvidence) -> Mapping[str, int]:
    """By placement of roles: transactions that ended as meant from its proof until the next step of its stage begins.

    The last placement of a stage spreads the roles again, and nothing is to be tried in it.
    """
    ended = [
        each.completed_ns
        for each in evidence.history.of(Operation)
        if each.outcome is Outcome.OK and transactional(each) and each.completed_ns is not None
    ]
    return {
        _name(placed): sum(
            placed.confirmed_ns <= each < after.began_ns for each in ended if placed.confirmed_ns is not None
        )
        for placed, after in pairwise(steps(evidence))
        if placed.fault == PLACEMENT and placed.stage == after.stage
    }


def copied_together(evidence: RunEvidence) -> int:
    """Copies by members of an older release of kafka-clients, begun after a member of the next release had copied.

    Both were members of the group at once, and each had partitions of its own. Copies that failed or had no inputs do not
    count. Releases are in the order in which they joined.
    """
    members = sorted(evidence.history.of(ProcessRecord), key=lambda each: each.started_ns)
    release = {
        each.process: library.split()[1]
        for each in members
        if each.group == evidence.experiment.group and (library := each.library or "").startswith(JAVA_CLIENTS)
    }
    old = next(iter(release.values()), None)
    copies = [
        each
        for each in evidence.history.of(Operation)
        if each.action is Action.COPY and each.outcome is Outcome.OK and each.inputs and each.process in release
    ]
    joined_ns = [each.completed_ns for each in copies if release[each.process] != old and each.completed_ns is not None]
    return sum(release[each.process] == old and each.invoked_ns > min(joined_ns) for each in copies if joined_ns)


def ids_each_taking(evidence: RunEvidence) -> Mapping[str, int]:
    """By step that took producer ids: ids that the transaction log has from that time on and not before."""
    zero_ns, log = wall_clock_ns(evidence), evidence.transaction_log
    first: dict[int, int] = {}
    for each in () if log is None else log.entries:
        if each.producer_id >= 0:
            first[each.producer_id] = min(first.get(each.producer_id, each.appended_ms), each.appended_ms)
    return {
        _name(each): sum(
            (each.began_ns + zero_ns) // NS_PER_MS <= appended_ms <= (each.confirmed_ns + zero_ns) // NS_PER_MS
            for appended_ms in first.values()
            if each.confirmed_ns is not None and zero_ns is not None
        )
        for each in steps(evidence)
        if each.fault == IDS_TAKEN
    }


def _name(step: FaultRecord) -> str:
    return f"step {step.step}, {step.stage}"
