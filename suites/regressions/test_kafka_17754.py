"""KB-03 and KB-04: a request of one TV1 transaction that arrives late counts in the next one (KAFKA-17754).

Under TV1 all transactions of a producer share a producer id and an epoch, and nothing in EndTxn or in a batch names the
transaction. A copy of the previous EndTxn, repeated by a client or delayed by a network, decides the current transaction
(KB-03). A batch of an aborted transaction that arrives after the next one has added the partition is committed with the
next one (KB-04). The verification of 3.6 proves that some transaction is open, but not which. KIP-890's epoch per
transaction is the only remedy: under TV2 both are refused.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import transactional
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.transaction_versions import TransactionVersion


@reproduces("KB-03", "/TV1", violated=[("2.4.0", None)])
@reproduces("KB-03", "/TV2", generation=TransactionVersion.TV2, since="4.0.0", violated=[])
def test_a_replayed_end(case: CaseContext) -> None:
    """EndTxn(commit) that arrives again during the next transaction does not decide it."""
    (at,) = case.topic()
    producer = transactional(case).writes(at, values=["a"])
    connection = case.open_connection(case.coordinator(str(producer.transactional_id)))
    replayed = case.request("EndTxn", producer.end_body(commit=True), connection=connection)
    producer.ends(commit=True).writes(at, values=["b", "c"])
    replay = case.send(replayed, connection=connection).receive()
    own = case.answered(lambda: producer.end(commit=False))
    case.inspect.complete(producer.transactional_id)
    seen = {
        "the replay": code_name(replay.code),
        "the owner's abort": code_name(own.code),
        "what readers are given": case.inspect.committed(at),
    }
    held = {
        "the replay": code_name(Code.PRODUCER_FENCED),
        "the owner's abort": code_name(Code.NONE),
        "what readers are given": ["a"],
    }
    violated = {
        "the replay": code_name(Code.NONE),
        "the owner's abort": code_name(Code.INVALID_TXN_STATE),
        "what readers are given": ["a", "b", "c"],
    }
    decide(case, "the replayed EndTxn(commit)", seen, held=held, violated=violated)


@reproduces("KB-04", "/TV1", violated=[("2.4.0", None)])
@reproduces("KB-04", "/TV2", generation=TransactionVersion.TV2, since="4.0.0", violated=[])
def test_a_batch_of_the_aborted_transaction(case: CaseContext) -> None:
    """A batch of an aborted transaction that arrives during the next one is not committed with it."""
    (at,) = case.topic()
    (elsewhere,) = case.topic()
    producer = transactional(case)
    late = producer.batch(at, ["late"], sequence=0)
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("the partition is added to the first one", lambda: producer.add(at))
        producer.ends(commit=False)
        case.set_up("and to the second one", lambda: producer.add(at))
    else:
        # TV2 adds a partition by writing to it.
        producer.writes(elsewhere, values=["z"]).ends(commit=False).writes(at, values=["own"])
    answer = producer.send_batch(at, late)
    producer.ends(commit=True)
    seen = {"the late batch": code_name(answer.code), "late, to readers": "late" in case.inspect.committed(at)}
    held = {"the late batch": code_name(Code.INVALID_PRODUCER_EPOCH), "late, to readers": False}
    violated = {"the late batch": code_name(Code.NONE), "late, to readers": True}
    decide(case, "the batch of the aborted transaction", seen, held=held, violated=violated)
