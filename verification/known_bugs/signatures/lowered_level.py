"""KB-40: a producer of TV2 met a lowered transaction.version.

The signature `lowered-transaction-version` needs two facts: a broker answered the producer's operation with
UNSUPPORTED_VERSION, and transaction.version was lowered before that answer and not raised again before the operation began.

Free of pyspark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from verification.evidence.run_evidence import RunEvidence
from verification.known_bugs.signatures.facts import operation_of
from verification.vocabulary.experiment import FEATURE
from verification.vocabulary.history import FaultRecord
from verification.vocabulary.violations import RawViolation

_TRANSACTION_VERSION = "transaction.version"
_UNSUPPORTED_VERSION = 35
#: The broker's text for that code; client libraries wrap the error in others.
_VERSION_TEXT = "version of api is not supported"


def lowered_transaction_version(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-40; see the module's docstring."""
    ended = operation_of(evidence, violation)
    if ended is None or ended.completed_ns is None:
        return False
    if ended.error_code != _UNSUPPORTED_VERSION and _VERSION_TEXT not in (ended.error_reason or "").lower():
        return False
    return any(
        began_ns < ended.completed_ns and ended.invoked_ns < until_ns for began_ns, until_ns in _lowered(evidence)
    )


def _lowered(evidence: RunEvidence) -> Iterator[tuple[int, float]]:
    """The times from each lowering of transaction.version until it was raised again."""
    before = int(evidence.experiment.versions.get(f"{FEATURE}{_TRANSACTION_VERSION}", "0"))
    since: int | None = None
    for each in evidence.history.of(FaultRecord):
        level = each.levels.get(_TRANSACTION_VERSION)
        if level is None or each.struck_ns is None or each.applied_ns is None:
            continue
        if level > before and since is not None:
            yield since, each.applied_ns
            since = None
        elif level < before and since is None:
            since = each.struck_ns
        before = level
    if since is not None:
        yield since, math.inf
