"""KB-12: a leader asked an older coordinator to verify a transaction.

The signature `verified-by-older-coordinator` needs three facts about a producer whose operations all failed while every
node was up (`verification.evidence.stalls.refused_producers`): at least half of them were answered NETWORK_EXCEPTION, which
librdkafka names so only when a broker answered it; the coordinator ran a release older than 3.6.0, which verifies nothing;
and a node with the bug led a partition of the producer's transactions.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence.run_evidence import RunEvidence
from verification.evidence.stalls import refused_producers
from verification.evidence.transaction_log_rows import NS_PER_MS, wall_clock_ns
from verification.evidence.upgrade_state import leader_at
from verification.known_bugs import catalogue
from verification.known_bugs.signatures.facts import running_at
from verification.vocabulary import releases
from verification.vocabulary.transaction_log import TOPIC
from verification.vocabulary.violations import RawViolation

_NETWORK_EXCEPTION = 13
#: Coordinators from this release on answer the requests by which leaders verify transactions (KIP-890).
_ANSWERS_VERIFICATION = "3.6.0"


def verified_by_older_coordinator(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-12; see the module's docstring."""
    refused, zero_ns = refused_producers.of_violation(evidence, violation), wall_clock_ns(evidence)
    if refused is None or zero_ns is None or evidence.transaction_log is None:
        return False
    codes = [each.error_code for each in refused.answers]
    if 2 * codes.count(_NETWORK_EXCEPTION) < len(codes):
        return False
    at_ns = refused.last.ended_ms * NS_PER_MS - zero_ns
    running, bug = running_at(evidence, at_ns), catalogue.load()["KB-12"]
    own = (each for each in evidence.transaction_log.entries if each.transactional_id == refused.last.transactional_id)
    coordinators = {running.get(str(leader_at(evidence, TOPIC, each.partition, at_ns)), "") for each in own}
    led = {running.get(str(each), "") for each in refused_producers.leaders(evidence, refused)}
    older = all(each and releases.parse(each) < releases.parse(_ANSWERS_VERIFICATION) for each in coordinators)
    return bool(coordinators) and older and any(each and catalogue.affects(bug, each) for each in led)
