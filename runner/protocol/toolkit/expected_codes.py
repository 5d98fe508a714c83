"""What is lawful where it is not the same for every version of a request, or every release.

Codes were renamed with versions of requests (KIP-588, KIP-890), and now and then by a release. What a release does wrong
has no place here: there the case fails.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.responses import Response
from wire.codes import ErrorCode

#: From these versions on a fenced producer is told so; below, that its epoch is invalid (KIP-588).
_FENCED_SINCE = {"InitProducerId": 4, "AddPartitionsToTxn": 2, "AddOffsetsToTxn": 2, "EndTxn": 2}
#: From these versions on a client is told that it may abort and go on (KIP-890, KIP-1050).
_ABORTABLE_SINCE = {"Produce": 11, "TxnOffsetCommit": 4, "AddPartitionsToTxn": 5}


def fencing_code(answer: Response) -> ErrorCode:
    """What a coordinator answers to a producer whose epoch is not the current one, by the version that was asked."""
    since = _FENCED_SINCE[answer.api]
    return ErrorCode.PRODUCER_FENCED if answer.version >= since else ErrorCode.INVALID_PRODUCER_EPOCH


def outside_code(answer: Response) -> ErrorCode:
    """What is answered about a partition that is not part of the transaction, by the version that was asked."""
    since = _ABORTABLE_SINCE[answer.api]
    return ErrorCode.TRANSACTION_ABORTABLE if answer.version >= since else ErrorCode.INVALID_TXN_STATE


def expect_fenced(case: CaseContext, what: str, answer: Response) -> None:
    """Claim that a coordinator fences."""
    case.expect_code(what, answer, fencing_code(answer))


def late_commit_code(case: CaseContext) -> ErrorCode:
    """What EndTxn v5(commit) answers when the coordinator has aborted that transaction (KAFKA-20785)."""
    return ErrorCode.PRODUCER_FENCED if case.since("4.5.0") else ErrorCode.INVALID_TXN_STATE
