"""KB-18: one TV2 request wedges its transactional id while `transaction.version` is 0 (no JIRA is known).

After a Produce v12, TxnOffsetCommit v5 or EndTxn v5 the coordinator remembers that the client speaks TV2. It does so in
a field of the transaction log's record that the format of level 0 cannot hold. Writing the record fails with
UNSUPPORTED_VERSION (35) after the change of state was marked as pending, and the mark is never removed. Every request
of that id is then answered CONCURRENT_TRANSACTIONS (51), and the last stable offset stands, until the coordinator
restarts.
"""

from __future__ import annotations

from functools import partial

from runner.protocol.toolkit.case import Needs
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import transactional
from runner.regressions.probes import STANDS_S
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.transaction_versions import TransactionVersion

ON = ("4.0.2", "4.1.2", "4.2.1", "4.3.1")
BUSY = code_name(Code.CONCURRENT_TRANSACTIONS)


@reproduces("KB-18", only=ON, violated=[("4.0.0", None)], generation=TransactionVersion.TV2, needs=Needs(level=0))
def test_a_tv2_request_at_level_0(case: CaseContext) -> None:
    """A request of TV2 on a cluster that has not finalized it leaves the transactional id usable."""
    _below(case, 0)


@reproduces("KB-18", "/level-1", only=ON, violated=[], generation=TransactionVersion.TV2, needs=Needs(level=1))
def test_a_tv2_request_at_level_1(case: CaseContext) -> None:
    """A request of TV2 on a cluster of level 1 leaves the transactional id usable."""
    _below(case, 1)


def _below(case: CaseContext, level: int) -> None:
    case.require("the finalized level", case.level, level)
    (at,) = case.topic()
    producer = transactional(case)
    case.set_up("the partition is added", lambda: producer.add(at))
    case.set_up("a batch of TV1", partial(producer.produce, at, ["a"], version=11))
    ended = producer.end(commit=True)
    again = case.answered(partial(producer.end, commit=True, version=4), within_s=STANDS_S)
    fresh = case.answered(partial(producer.copy().init), within_s=STANDS_S)
    seen = {
        "EndTxn v5": code_name(ended.code),
        "EndTxn v4": code_name(again.code),
        "InitProducerId": code_name(fresh.code),
    }
    held = {"InitProducerId": code_name(Code.NONE)}
    violated = {
        "EndTxn v5": code_name(Code.UNSUPPORTED_VERSION),
        "EndTxn v4": BUSY,
        "InitProducerId": BUSY,
    }
    decide(case, "the transactional id afterwards", seen, held=held, violated=violated)
