"""KB-01: a late transactional batch is appended outside any transaction and hangs (KAFKA-12671, KIP-890 part 1).

A leader up to 3.5 never asks the coordinator whether a transactional batch belongs to an open transaction. So two kinds
of batch open a transaction on the partition that the coordinator does not know: one that was delayed until after the
abort, and one for a partition that was never added. Its marker will never be written. The last stable offset stands
there, and every later record is invisible under `read_committed`. From 3.6 on the leader verifies first, unless
`transaction.partition.verification.enable` is false.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.expected_codes import outside_code
from runner.protocol.toolkit.producer import transactional
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.settings import unverified
from runner.regressions.probes import readable_to
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.values import TopicPartition


@reproduces("KB-01", violated=[("2.4.0", "3.5")])
def test_a_batch_after_the_abort(case: CaseContext) -> None:
    """A batch of an aborted transaction that arrives after the abort is refused and holds no reader up."""
    (at,) = case.topic()
    _late(case, at)


@reproduces("KB-01", "/verification-off", since="3.6.0", violated=[("3.6.0", None)])
def test_a_batch_after_the_abort_unverified(case: CaseContext) -> None:
    """Even without the verification, a batch that arrives after the abort is refused and holds no reader up."""
    (at,) = case.topic()
    with unverified(case):
        _late(case, at)


@reproduces("KB-01", "b", violated=[("2.4.0", "3.5")])
def test_a_partition_that_was_never_added(case: CaseContext) -> None:
    """A transactional batch to a partition that is in no transaction is refused and holds no reader up."""
    (at,) = case.topic()
    producer = transactional(case)
    _judge(case, at, producer.produce(at, ["late"]))


def _late(case: CaseContext, at: TopicPartition) -> None:
    producer = transactional(case)
    late = producer.batch(at, ["late"], sequence=0)
    case.set_up("the partition is added", lambda: producer.add(at))
    producer.ends(commit=False)
    _judge(case, at, producer.send_batch(at, late))


def _judge(case: CaseContext, at: TopicPartition, answer: Response) -> None:
    seen = {
        "the batch": code_name(answer.code),
        "readable to the end": readable_to(case, at),
        "the log": case.inspect.values(at),
        "what readers are given": case.inspect.committed(at),
    }
    held = {
        "the batch": code_name(outside_code(answer)),
        "readable to the end": True,
        "the log": ["later"],
        "what readers are given": ["later"],
    }
    violated = {
        "the batch": code_name(Code.NONE),
        "readable to the end": False,
        "the log": ["late", "later"],
        "what readers are given": [],
    }
    decide(case, "the batch outside any transaction", seen, held=held, violated=violated)
