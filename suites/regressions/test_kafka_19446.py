"""KB-09: a stale marker with the same epoch decides the next TV2 transaction (KAFKA-19446, KIP-1228).

A TV2 marker carries the bumped epoch, in which the next transaction writes its data. A leader of 4.0 or 4.1 accepts a
marker whose epoch is not lower than the current one. So a delayed or repeated marker of the first transaction ends the
second. WriteTxnMarkers v2 (4.2) names the transaction version, and a leader then demands an epoch strictly higher than
that of the open transaction. With v1 it still behaves as before, which is documented compatibility.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.fetching import coordinator_epoch, write_marker
from runner.protocol.toolkit.producer import transactional
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.transaction_versions import TransactionVersion


@reproduces("KB-09", generation=TransactionVersion.TV2, since="4.0.0", violated=[("4.0.0", "4.1")])
def test_a_stale_marker(case: CaseContext) -> None:
    """A commit marker of the transaction before does not decide the open one."""
    _stale(case, version=2 if case.since("4.2.0") else 1)


@reproduces("KB-09", "/v1", generation=TransactionVersion.TV2, since="4.2.0", violated=[("4.2.0", None)])
def test_a_stale_marker_of_the_old_version(case: CaseContext) -> None:
    """A commit marker of the transaction before, sent by an older coordinator, does not decide the open one."""
    _stale(case, version=1)


def _stale(case: CaseContext, *, version: int) -> None:
    (at,) = case.topic()
    producer = transactional(case).writes(at, values=["a"]).ends(commit=True).writes(at, values=["x"])
    answer = write_marker(
        case,
        at,
        producer_id=producer.now.id,
        epoch=producer.now.epoch,
        coordinator_epoch=coordinator_epoch(case, at, producer.now.id),
        commit=True,
        transaction_version=2,
        version=version,
    )
    during = case.inspect.committed(at)
    producer.ends(commit=False)
    seen = {
        "the marker": code_name(answer.code),
        "readers, before the abort": during,
        "after": case.inspect.committed(at),
    }
    held = {"the marker": code_name(Code.INVALID_PRODUCER_EPOCH), "readers, before the abort": ["a"], "after": ["a"]}
    violated = {"the marker": code_name(Code.NONE), "readers, before the abort": ["a", "x"], "after": ["a", "x"]}
    decide(case, "the stale marker", seen, held=held, violated=violated)
