"""KB-09: a stale marker with the same epoch decides the next TV2 transaction (KAFKA-19446, KIP-1228).

A TV2 marker carries the bumped epoch, in which the next transaction writes its data. A leader of 4.0 or 4.1 takes a
marker whose epoch is not lower than the current one, so that a delayed or repeated marker of the first transaction ends
the second. WriteTxnMarkers v2 (4.2) names the transaction version, and a leader then demands an epoch strictly higher
than that of the open transaction. With v1 it still behaves as before, which is documented compatibility.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.fetching import coordinator_epoch, write_marker
from runner.protocol.toolkit.producer import transactional
from runner.regressions.reproduction import decide, shows
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.transaction_versions import Generation


@shows("KB-09", generation=Generation.TV2, since="4.0.0", violated=[("4.0.0", "4.1")])
def test_a_stale_marker(stage: Stage) -> None:
    """A commit marker of the transaction before does not decide the open one."""
    _stale(stage, version=2 if stage.since("4.2.0") else 1)


@shows("KB-09", "/v1", generation=Generation.TV2, since="4.2.0", violated=[("4.2.0", None)])
def test_a_stale_marker_of_the_old_version(stage: Stage) -> None:
    """A commit marker of the transaction before, sent by an older coordinator, does not decide the open one."""
    _stale(stage, version=1)


def _stale(stage: Stage, *, version: int) -> None:
    (at,) = stage.topic()
    producer = transactional(stage).writes(at, values=["a"]).ends(commit=True).writes(at, values=["x"])
    answer = write_marker(
        stage,
        at,
        producer_id=producer.now.id,
        epoch=producer.now.epoch,
        coordinator_epoch=coordinator_epoch(stage, at, producer.now.id),
        commit=True,
        transaction_version=2,
        version=version,
    )
    during = stage.see.committed(at)
    producer.ends(commit=False)
    seen = {"the marker": code_name(answer.code), "readers, before the abort": during, "after": stage.see.committed(at)}
    held = {"the marker": code_name(Code.INVALID_PRODUCER_EPOCH), "readers, before the abort": ["a"], "after": ["a"]}
    violated = {"the marker": code_name(Code.NONE), "readers, before the abort": ["a", "x"], "after": ["a", "x"]}
    decide(stage, "the stale marker", seen, held=held, violated=violated)
