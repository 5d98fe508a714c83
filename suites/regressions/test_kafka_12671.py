"""KB-01: a late transactional batch is appended outside any transaction and hangs (KAFKA-12671, KIP-890 part 1).

A leader up to 3.5 never asks the coordinator whether a transactional batch belongs to an open transaction. A batch that
was delayed until after the abort, or one for a partition that was never added, opens a transaction on the partition of
which the coordinator knows nothing. Nobody will write its marker: the last stable offset stands there, and every later
record is invisible under `read_committed`. From 3.6 on the leader verifies first, unless it is told not to.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.expected_codes import outside_code
from runner.protocol.toolkit.producer import transactional
from runner.protocol.toolkit.responses import Answer
from runner.protocol.toolkit.settings import unverified
from runner.regressions.probes import readable_to
from runner.regressions.reproduction import decide, shows
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.values import TopicPartition


@shows("KB-01", violated=[("2.4.0", "3.5")])
def test_a_batch_after_the_abort(stage: Stage) -> None:
    """A batch of an aborted transaction that arrives after the abort is refused and holds nobody up."""
    (at,) = stage.topic()
    _late(stage, at)


@shows("KB-01", "/verification-off", since="3.6.0", violated=[("3.6.0", None)])
def test_a_batch_after_the_abort_unverified(stage: Stage) -> None:
    """Without the verification a batch that arrives after the abort is refused and holds nobody up all the same."""
    (at,) = stage.topic()
    with unverified(stage):
        _late(stage, at)


@shows("KB-01", "b", violated=[("2.4.0", "3.5")])
def test_a_partition_that_was_never_added(stage: Stage) -> None:
    """A transactional batch to a partition that is in no transaction is refused and holds nobody up."""
    (at,) = stage.topic()
    producer = transactional(stage)
    _judge(stage, at, producer.produce(at, ["late"]))


def _late(stage: Stage, at: TopicPartition) -> None:
    producer = transactional(stage)
    late = producer.batch(at, ["late"], sequence=0)
    stage.set_up("the partition is added", lambda: producer.add(at))
    producer.ends(commit=False)
    _judge(stage, at, producer.send_batch(at, late))


def _judge(stage: Stage, at: TopicPartition, answer: Answer) -> None:
    seen = {
        "the batch": code_name(answer.code),
        "readable to the end": readable_to(stage, at),
        "the log": stage.see.values(at),
        "what readers are given": stage.see.committed(at),
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
    decide(stage, "the batch outside any transaction", seen, held=held, violated=violated)
