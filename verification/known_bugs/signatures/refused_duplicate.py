"""KB-17: a batch was refused after a late duplicate of it.

The signature `refused-duplicate` needs two facts: the producer received the answer that its batch is out of order, and one
of its earlier requests had arrived late, after its transaction. The leader had begun to verify that request and did not
append it: either the transaction was over, or the coordinator was busy, or the batch was known. A batch is known if its
answer names the offset that an earlier operation of the producer received. With any other offset it was appended, to
another transaction (KB-04).

Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
import re

from verification.evidence.run_evidence import RunEvidence
from verification.known_bugs.signatures.facts import operation_of
from verification.vocabulary.history import FaultRecord, Operation
from verification.vocabulary.violations import RawViolation

#: A leader's answers to a late batch that it does not append: INVALID_TXN_STATE and TRANSACTION_ABORTABLE, because its
#: transaction is over; NOT_ENOUGH_REPLICAS to TV1 producers, because the coordinator is busy
#: (ReplicaManager.handleProduceAppend), after the leader has begun to verify.
_NOT_APPENDED = frozenset({19, 48, 120})
#: The proof that `chaos.faults.late_duplicate` writes.
_LATE = re.compile(
    r"arrived after its transaction and was answered: error codes \((?P<code>-?\d+),?\)"
    r"(, base offset (?P<offset>\d+) on (?P<topic>\S+)-(?P<partition>\d+)$)?"
)
_OUT_OF_ORDER = 45
#: The broker's text for that code, and librdkafka's for its consequence.
_ERROR_TEXTS = ("out of order sequence", "sequence desynchronization")


def refused_duplicate(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-17; see the module's docstring."""
    refused = operation_of(evidence, violation)
    if refused is None or refused.completed_ns is None:
        return False
    reason = (refused.error_reason or "").lower()
    if refused.error_code != _OUT_OF_ORDER and not any(words in reason for words in _ERROR_TEXTS):
        return False
    return any(
        each.target == refused.transactional_id
        and each.confirmed_ns is not None
        and each.confirmed_ns < refused.completed_ns
        and _not_appended(evidence, refused, each.proof or "")
        for each in evidence.history.of(FaultRecord)
    )


def _not_appended(evidence: RunEvidence, refused: Operation, proof: str) -> bool:
    """Whether a late request was answered without having been appended then."""
    late = _LATE.search(proof)
    if late is None or late["code"] != "0":
        return late is not None and int(late["code"]) in _NOT_APPENDED
    if late["offset"] is None or refused.process not in evidence.acks:
        return False
    place = (evidence.topic_index(late["topic"]), int(late["partition"]), int(late["offset"]))
    with gzip.open(evidence.acks[refused.process], "rb") as lines:
        bodies = map(json.loads, lines)
        earlier = (body["acks"] for body in bodies if body["operation"] < refused.operation)
        return any(tuple(ack[1:4]) == place for acks in earlier for ack in acks)
