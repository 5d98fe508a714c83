"""KB-43: a coordinator acted on a decision that it lost afterwards.

The signature `acted-on-a-lost-decision` needs two facts about a transaction whose producer asked for a commit: a partition
has the commit marker of the transaction; and the log of the coordinators has only the other decision, PrepareAbort, for it.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence.run_evidence import RunEvidence
from verification.evidence.transaction_log_rows import NS_PER_MS, wall_clock_ns
from verification.known_bugs.signatures.facts import operation_of
from verification.vocabulary.history import Intent, Operation
from verification.vocabulary.transaction_log import State
from verification.vocabulary.violations import RawViolation

_DECISIONS = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})


def acted_on_a_lost_decision(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-43; see the module's docstring."""
    ended = operation_of(evidence, violation)
    if ended is None or ended.intent is not Intent.COMMIT or not evidence.experiment.has_log:
        return False
    return _decisions(evidence, ended) == {State.PREPARE_ABORT} and _has_marker(evidence, ended)


def _decisions(evidence: RunEvidence, ended: Operation) -> set[State]:
    """The decisions in the log about the transaction that was open when its end was requested."""
    log, zero_ns = evidence.transaction_log, wall_clock_ns(evidence)
    if log is None or zero_ns is None or ended.decided_ns is None:
        return set()
    asked_ms = (zero_ns + ended.decided_ns) // NS_PER_MS
    return {
        each.state
        for each in log.entries
        if each.transactional_id == ended.transactional_id
        and each.state in _DECISIONS
        and each.began_ms <= asked_ms <= each.updated_ms
    }


def _has_marker(evidence: RunEvidence, ended: Operation) -> bool:
    """Whether the data of the operation is followed by a commit marker on any partition."""
    process, operation = ended.process, ended.operation
    pending = set()
    for topic_index, partition, _, control, writer, number, *_ in evidence.capture_reader.producer_rows(
        process, operation
    ):
        here = (topic_index, partition)
        if (writer, number) == (process, operation):
            pending.add(here)
        elif here in pending:
            pending.discard(here)
            if control == Intent.COMMIT:
                return True
    return False
