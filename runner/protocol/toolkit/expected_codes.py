"""Expected error codes that depend on the version of the request, or on the release.

Versions of requests renamed codes (KIP-588, KIP-890), and so did some releases. A code that is a bug of a release is not
listed here: there the case fails.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.responses import Response
from wire.codes import ErrorCode

#: From these versions on a fenced producer gets PRODUCER_FENCED; below, INVALID_PRODUCER_EPOCH (KIP-588).
_FENCED_SINCE = {"InitProducerId": 4, "AddPartitionsToTxn": 2, "AddOffsetsToTxn": 2, "EndTxn": 2}
#: From these versions on a client gets TRANSACTION_ABORTABLE: it may abort and go on (KIP-890, KIP-1050).
_ABORTABLE_SINCE = {"Produce": 11, "TxnOffsetCommit": 4, "AddPartitionsToTxn": 5}


def fencing_code(answer: Response) -> ErrorCode:
    """The code of a coordinator for a producer whose epoch is not the current one, by the version of the request."""
    since = _FENCED_SINCE[answer.api]
    return ErrorCode.PRODUCER_FENCED if answer.version >= since else ErrorCode.INVALID_PRODUCER_EPOCH


def outside_code(answer: Response) -> ErrorCode:
    """The code for a partition that is not part of the transaction, by the version of the request."""
    since = _ABORTABLE_SINCE[answer.api]
    return ErrorCode.TRANSACTION_ABORTABLE if answer.version >= since else ErrorCode.INVALID_TXN_STATE


def expect_fenced(case: CaseContext, what: str, answer: Response) -> None:
    """Claim that a coordinator fences the producer."""
    case.expect_code(what, answer, fencing_code(answer))


def late_commit_code(case: CaseContext) -> ErrorCode:
    """The code of EndTxn v5 (commit) after the coordinator has aborted that transaction (KAFKA-20785)."""
    return ErrorCode.PRODUCER_FENCED if case.since("4.5.0") else ErrorCode.INVALID_TXN_STATE
