"""KB-12: a leader of 3.6 or 3.7.0 sends AddPartitionsToTxn v4 to coordinators that do not know it (KAFKA-16692).

The leader verifies transactional batches with AddPartitionsToTxn v4, whatever the coordinator advertises. A coordinator
without that version closes the connection. The leader passes NETWORK_EXCEPTION (13) on to the producer, as long as the
two releases run side by side. No wrong data is written; transactional producers cannot write at all.
"""

from __future__ import annotations

from functools import partial

from runner.protocol.toolkit.case import Needs
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.replicas import coordinated, placed
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name

LEADER, COORDINATOR = 1, 2
#: The first answer may be about a connection that is not open yet; an error that lasts this long stays.
WRITTEN_WITHIN_S = 5.0


@reproduces(
    "KB-12",
    only=("3.6.0", "3.7.0", "3.7.1"),
    violated=[("3.6.0", "3.7.0")],
    needs=Needs(brokers=2, releases={COORDINATOR: "3.5.2"}),
)
def test_the_coordinator_is_not_upgraded_yet(case: CaseContext) -> None:
    """An upgraded leader accepts transactional batches whose coordinator is not upgraded yet."""
    (at,) = placed(case, [LEADER])
    producer = ScriptedProducer(case, coordinated(case, "owner", by=COORDINATOR)).ready()
    case.set_up("the partition is added", lambda: producer.add(at))
    write = partial(producer.produce, at, ["a"])
    answer = case.poll_until(write, lambda each: each.code == Code.NONE, within_s=WRITTEN_WITHIN_S)
    seen = {"the batch, at last": code_name(answer.code), "the log": case.inspect.values(at)}
    held = {"the batch, at last": code_name(Code.NONE), "the log": ["a"]}
    violated = {"the batch, at last": code_name(Code.NETWORK_EXCEPTION), "the log": []}
    decide(case, "a transactional batch in the middle of an upgrade", seen, held=held, violated=violated)
    case.set_up("the transaction ends", lambda: producer.end(commit=False))
