"""KB-10: a coordinator sent markers that an older leader does not know.

The signature `marker-refused-by-older-leader` needs two facts about a decision that was not completed in time
(`verification.evidence.stalls.late_completions`): its coordinator ran 4.2.0 at that time, and a partition of the
transaction whose last stable offset stood, so that it had no marker, was led by a node of an older release.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence.run_evidence import RunEvidence
from verification.evidence.stalls import late_completions
from verification.evidence.transaction_log_rows import NS_PER_MS, wall_clock_ns
from verification.evidence.upgrade_state import leader_at
from verification.known_bugs.signatures.facts import running_at
from verification.vocabulary import releases
from verification.vocabulary.transaction_log import TOPIC
from verification.vocabulary.violations import RawViolation

#: Its coordinators send WriteTxnMarkers v2 to leaders that do not know it.
_SENDS_UNKNOWN_VERSION = "4.2.0"


def marker_refused_by_older_leader(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-10; see the module's docstring."""
    late, zero_ns = late_completions.of_violation(evidence, violation), wall_clock_ns(evidence)
    if late is None or zero_ns is None:
        return False
    at_ns = late.at_ms * NS_PER_MS - zero_ns
    running = running_at(evidence, at_ns)
    coordinator = running.get(str(leader_at(evidence, TOPIC, late.decided.partition, at_ns)))
    leaders = {running.get(str(leader), "") for leader in late_completions.leaders(evidence, late)}
    older = any(each and releases.parse(each) < releases.parse(_SENDS_UNKNOWN_VERSION) for each in leaders)
    return coordinator == _SENDS_UNKNOWN_VERSION and older
