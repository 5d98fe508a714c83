"""KB-17: one refused duplicate shuts out the first batch of the next transaction (no JIRA is known).

While a leader from 3.6 on verifies a transactional batch, it remembers the batch's sequence as the lowest one of the
producer. It refuses higher ones until that one is appended. A delayed duplicate of the previous TV1 transaction that
arrives before the next one's first AddPartitionsToTxn is refused, but its low sequence stays remembered. The next
transaction's first batch is in order, and is still answered OUT_OF_ORDER_SEQUENCE_NUMBER (45) until that transaction is
ended. No data is wrong; a librdkafka producer fails fatally.
"""

from __future__ import annotations

from functools import partial

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import transactional
from runner.regressions.probes import STANDS_S
from runner.regressions.reproduction import decide, reproduces
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.codes import code_name

#: Up to 3.5 it is known as a duplicate; later releases refuse it, by the version of the request.
KNOWN_OR_REFUSED = [
    code_name(code)
    for code in (Code.NONE, Code.INVALID_PRODUCER_EPOCH, Code.INVALID_TXN_STATE, Code.TRANSACTION_ABORTABLE)
]


@reproduces("KB-17", violated=[("3.6.0", None)])
def test_a_duplicate_after_the_commit(case: CaseContext) -> None:
    """A delayed duplicate of a committed transaction does not keep the next one from writing."""
    _shut_out(case, commit=True)


@reproduces("KB-17", "/abort", violated=[("3.6.0", None)])
def test_a_duplicate_after_the_abort(case: CaseContext) -> None:
    """A delayed duplicate of an aborted transaction does not keep the next one from writing."""
    _shut_out(case, commit=False)


def _shut_out(case: CaseContext, *, commit: bool) -> None:
    (at,) = case.topic()
    producer = transactional(case)
    batch = producer.batch(at, ["a"])
    producer.writes(at, values=["a"]).ends(commit=commit)
    end = case.inspect.end(at)
    duplicate = producer.send_batch(at, batch)
    case.require("the duplicate", code_name(duplicate.code), KNOWN_OR_REFUSED, Relation.ONE_OF)
    case.require("the end of the log after it", case.inspect.end(at), end)
    case.set_up("the partition is added to the next one", lambda: producer.add(at))
    following = producer.batch(at, ["b"])
    answer = case.poll_until(
        partial(producer.send_batch, at, following), lambda each: each.code == Code.NONE, within_s=STANDS_S
    )
    producer.ends(commit=False)
    seen = {"the duplicate": code_name(duplicate.code), "the next transaction's first batch": code_name(answer.code)}
    held = {"the next transaction's first batch": code_name(Code.NONE)}
    violated = {"the next transaction's first batch": code_name(Code.OUT_OF_ORDER_SEQUENCE_NUMBER)}
    decide(case, "the first batch after a refused duplicate", seen, held=held, violated=violated)
