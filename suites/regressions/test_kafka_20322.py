"""KB-10: markers of a 4.2.0 coordinator are refused by older leaders (KAFKA-20322).

The coordinator of 4.2.0 sends WriteTxnMarkers v2 whatever the leader advertises. A leader of an earlier release refuses
the version, the coordinator repeats it for ever, and the transaction stays in PrepareCommit: the last stable offset
stands and the next InitProducerId answers CONCURRENT_TRANSACTIONS (51), until the leader is upgraded.
"""

from __future__ import annotations

from functools import partial

from runner.protocol.toolkit.case import Needs
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.replicas import coordinated, placed
from runner.regressions.probes import STANDS_S, readable_to
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.transaction_versions import TransactionVersion

COORDINATOR, LEADER = 1, 2
#: A marker takes a round trip; in this time the coordinator repeats a refused one many times.
COMPLETE_WITHIN_S = 5.0


@reproduces(
    "KB-10",
    only=("4.2.0", "4.2.1"),
    violated=[("4.2.0", "4.2.0")],
    generation=TransactionVersion.TV2,
    needs=Needs(brokers=2, releases={LEADER: "4.1.2"}),
)
def test_the_leader_is_not_upgraded_yet(case: CaseContext) -> None:
    """An upgraded coordinator completes transactions on leaders that are not upgraded yet."""
    (at,) = placed(case, [LEADER])
    producer = ScriptedProducer(case, coordinated(case, "owner", by=COORDINATOR)).ready().writes(at, values=["a"])
    answer = case.answered(partial(producer.end, commit=True))
    state = case.inspect.complete(producer.transactional_id, within_s=COMPLETE_WITHIN_S)
    seen = {
        "EndTxn(commit)": code_name(answer.code),
        "the state": state,
        "readable to the end": readable_to(case, at),
        "InitProducerId": code_name(case.answered(producer.copy().init, within_s=STANDS_S).code),
    }
    held = {
        "EndTxn(commit)": code_name(Code.NONE),
        "the state": "CompleteCommit",
        "readable to the end": True,
        "InitProducerId": code_name(Code.NONE),
    }
    violated = {
        "EndTxn(commit)": code_name(Code.NONE),
        "the state": "PrepareCommit",
        "readable to the end": False,
        "InitProducerId": code_name(Code.CONCURRENT_TRANSACTIONS),
    }
    decide(case, "a transaction in the middle of an upgrade", seen, held=held, violated=violated)
