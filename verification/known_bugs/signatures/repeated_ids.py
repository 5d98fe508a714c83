"""KB-42: a migration to KRaft issued producer ids again.

The signature `producer-id-issued-twice` needs two facts: the record of the transaction log has a producer id that the log
also has for another transactional id; and the cluster had its metadata in ZooKeeper at first.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.transaction_log import TOPIC_INDEX
from verification.vocabulary.violations import RawViolation


def producer_id_issued_twice(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-42; see the module's docstring."""
    log = evidence.transaction_log
    if log is None or violation.topic_index != TOPIC_INDEX or not _began_with_zookeeper(evidence):
        return False
    at = (violation.partition, violation.offset)
    users = {each.producer_id: each.transactional_id for each in log.entries if (each.partition, each.offset) == at}
    return any(users.get(each.producer_id, each.transactional_id) != each.transactional_id for each in log.entries)


def _began_with_zookeeper(evidence: RunEvidence) -> bool:
    """Whether nodes were started in that mode, which their release then names."""
    return any("ZooKeeper" in each.split() for each in evidence.experiment.nodes.values())
