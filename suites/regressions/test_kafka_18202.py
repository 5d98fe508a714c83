"""KB-11: TV2 accepts a first batch that does not start at sequence zero (KAFKA-18202).

Every TV2 transaction begins in a new epoch at sequence 0. So a leader without state for the producer can see that an
earlier batch is still on its way. 4.0 did not check: it appended a batch that overtook the first one, and the first one
could then not be written any more.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import transactional
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.transaction_versions import TransactionVersion


@reproduces("KB-11", generation=TransactionVersion.TV2, since="4.0.0", violated=[("4.0.0", "4.0")])
def test_the_second_batch_first(case: CaseContext) -> None:
    """The first batch of a transaction that does not begin at sequence 0 is refused."""
    (at,) = case.topic()
    producer = transactional(case)
    answer = producer.produce(at, ["second"], sequence=5)
    seen = {"the second batch": code_name(answer.code), "the log": case.inspect.values(at)}
    held = {"the second batch": code_name(Code.OUT_OF_ORDER_SEQUENCE_NUMBER), "the log": []}
    violated = {"the second batch": code_name(Code.NONE), "the log": ["second"]}
    decide(case, "the second batch before the first", seen, held=held, violated=violated)
