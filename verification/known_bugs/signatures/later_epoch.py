"""KB-41: a message that timed out was appended again in a later epoch.

The signature `repeated-in-a-later-epoch` needs two facts: no two copies of the record in the log have the same producer
epoch, so a later epoch appended what an earlier one had appended; and before that a message of the same producer, which is
not transactional, had timed out in librdkafka, which raises the epoch then.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence.run_evidence import RunEvidence
from verification.known_bugs.signatures.facts import operation_of
from verification.vocabulary.history import Operation
from verification.vocabulary.violations import RawViolation

#: librdkafka's code for a message that was not acknowledged within `message.timeout.ms`.
_MESSAGE_TIMED_OUT = -192


def repeated_in_a_later_epoch(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-41; see the module's docstring."""
    operations = evidence.history.of(Operation)
    repeated = operation_of(evidence, violation)
    if repeated is None or repeated.completed_ns is None or repeated.transactional_id is not None:
        return False
    if not evidence.experiment.has_log or not any(
        each.process == repeated.process
        and each.operation < repeated.operation
        and each.error_code == _MESSAGE_TIMED_OUT
        and (each.producer_epoch or 0) < (repeated.producer_epoch or 0)
        for each in operations
    ):
        return False
    rows = evidence.capture_reader.producer_rows(repeated.process, repeated.operation)
    record = (violation.topic_index, violation.partition, repeated.process, repeated.operation, violation.index)
    epochs = [epoch for at, partition, _, _, *identity, epoch in rows if (at, partition, *identity) == record]
    return len(epochs) > 1 and len(set(epochs)) == len(epochs)
