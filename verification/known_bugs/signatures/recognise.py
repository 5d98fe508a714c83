"""Names the known bug that explains violations: each bug with a signature is asked.

Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from verification.evidence.run_evidence import RunEvidence
from verification.known_bugs import catalogue
from verification.known_bugs.catalogue import KnownBug, Signature
from verification.known_bugs.signatures.facts import software
from verification.known_bugs.signatures.later_epoch import repeated_in_a_later_epoch
from verification.known_bugs.signatures.lost_decision import acted_on_a_lost_decision
from verification.known_bugs.signatures.lowered_level import lowered_transaction_version
from verification.known_bugs.signatures.marker_dropped import marker_dropped_while_leaderless
from verification.known_bugs.signatures.older_coordinator import verified_by_older_coordinator
from verification.known_bugs.signatures.older_leader import marker_refused_by_older_leader
from verification.known_bugs.signatures.refused_duplicate import refused_duplicate
from verification.known_bugs.signatures.repeated_ids import producer_id_issued_twice
from verification.vocabulary.errors import ReleaseError
from verification.vocabulary.experiment import Experiment
from verification.vocabulary.violations import RawViolation

SIGNATURES: Mapping[Signature, Callable[[RunEvidence, RawViolation], bool]] = {
    Signature.MARKER_DROPPED_WHILE_LEADERLESS: marker_dropped_while_leaderless,
    Signature.REFUSED_DUPLICATE: refused_duplicate,
    Signature.MARKER_REFUSED_BY_OLDER_LEADER: marker_refused_by_older_leader,
    Signature.VERIFIED_BY_OLDER_COORDINATOR: verified_by_older_coordinator,
    Signature.LOWERED_TRANSACTION_VERSION: lowered_transaction_version,
    Signature.REPEATED_IN_A_LATER_EPOCH: repeated_in_a_later_epoch,
    Signature.PRODUCER_ID_ISSUED_TWICE: producer_id_issued_twice,
    Signature.ACTED_ON_A_LOST_DECISION: acted_on_a_lost_decision,
}


def concerns(bug: KnownBug, experiment: Experiment) -> bool:
    """Whether a release that runs at some time in the run has the bug."""
    try:
        return any(catalogue.affects(bug, software(each)) for each in {experiment.release, *experiment.nodes.values()})
    except ReleaseError:
        return False


def recognise(evidence: RunEvidence, violations: Iterable[RawViolation]) -> str | None:
    """The id of the known bug that explains every one of the violations (of one anomaly); None when none does."""
    every = tuple(violations)
    for bug in catalogue.load().values():
        if bug.signature is None or not concerns(bug, evidence.experiment):
            continue
        matches = SIGNATURES[bug.signature]
        if every and all(each.anomaly in bug.anomalies and matches(evidence, each) for each in every):
            return bug.id
    return None
