"""KB-07: EndTxn with an epoch that is too high wedges the transaction (KAFKA-9600).

The coordinator up to 2.5 checked the epoch of a client's EndTxn only for being too low. With an epoch higher by one it
prepared the change of state, then refused the request, and kept the prepared state. Every later EndTxn and
InitProducerId is answered CONCURRENT_TRANSACTIONS (51), and the last stable offset stands. The log holds the prepared
decision, so a restart writes a commit marker although every EndTxn was refused.
"""

from __future__ import annotations

from functools import partial

from runner.protocol.toolkit import brokers
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.regressions.probes import STANDS_S, readable_to
from runner.regressions.reproduction import decide, reproduces
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.values import TopicPartition

BUSY = code_name(Code.CONCURRENT_TRANSACTIONS)
#: A broker that was stopped cleanly is back within seconds, and then a coordinator loads and writes its markers.
MARKER_WITHIN_S = 60.0


@reproduces("KB-07", violated=[("2.4.0", "2.5")])
def test_the_owner_can_still_end_it(case: CaseContext) -> None:
    """After EndTxn with an epoch too high was refused, the owner's commit ends its transaction."""
    (at,) = case.topic()
    producer = _refused(case, at)
    own = case.answered(partial(producer.end, commit=True), within_s=STANDS_S)
    again = case.answered(partial(producer.copy().init), within_s=STANDS_S)
    seen = {
        "the owner's commit": code_name(own.code),
        "InitProducerId": code_name(again.code),
        "readable to the end": readable_to(case, at),
    }
    held = {
        "the owner's commit": code_name(Code.NONE),
        "InitProducerId": code_name(Code.NONE),
        "readable to the end": True,
    }
    violated = {"the owner's commit": BUSY, "InitProducerId": BUSY, "readable to the end": False}
    decide(case, "the transaction after a refused EndTxn", seen, held=held, violated=violated)


@reproduces("KB-07", "/restart", until="2.8", violated=[("2.4.0", "2.5")])
def test_a_restart_does_not_commit(case: CaseContext) -> None:
    """After EndTxn(commit) with an epoch too high was refused, no restart commits the transaction."""
    (at,) = case.topic()
    producer = _refused(case, at)
    own = case.answered(partial(producer.end, commit=False), within_s=STANDS_S)
    with brokers.stopped(case, *case.brokers):
        pass
    markers = case.poll_until(lambda: case.inspect.markers(at), bool, within_s=MARKER_WITHIN_S)
    seen = {
        "the owner's abort": code_name(own.code),
        "the markers after a restart": [kind for kind, _, _ in markers],
        "what readers are given": case.inspect.committed(at),
    }
    held = {
        "the owner's abort": code_name(Code.NONE),
        "the markers after a restart": ["abort"],
        "what readers are given": [],
    }
    violated = {
        # The answer to the abort depends on how far the commit has come: 51, or 48 once it is prepared.
        "the markers after a restart": ["commit"],
        "what readers are given": ["a"],
    }
    decide(case, "the transaction after a refused EndTxn(commit)", seen, held=held, violated=violated)


def _refused(case: CaseContext, at: TopicPartition) -> ScriptedProducer:
    producer = transactional(case).writes(at, values=["a"])
    answer = producer.end(commit=True, epoch=producer.now.epoch + 1)
    codes = [code_name(code) for code in (Code.INVALID_PRODUCER_EPOCH, Code.PRODUCER_FENCED)]
    case.require("EndTxn(commit) with an epoch too high", code_name(answer.code), codes, Relation.ONE_OF)
    return producer
