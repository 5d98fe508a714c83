"""Facts that several signatures need: the operation of a violation, and the software that nodes ran at a time.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence.run_evidence import RunEvidence
from verification.evidence.upgrade_state import state_at
from verification.vocabulary.history import Operation
from verification.vocabulary.violations import RawViolation


def software(release: str) -> str:
    """A release without the mode that a node has in a migration, such as `3.9.2 KRaft`; it may be empty."""
    return release.partition(" ")[0]


def running_at(evidence: RunEvidence, at_ns: int) -> dict[str, str]:
    """The releases of the nodes that were up, without their modes."""
    return {node: software(release) for node, release in state_at(evidence, at_ns).releases.items()}


def operation_of(evidence: RunEvidence, violation: RawViolation) -> Operation | None:
    """The operation that a violation is about."""
    return next(
        (each for each in evidence.history.of(Operation) if (each.process, each.operation) == violation.operation_key),
        None,
    )
