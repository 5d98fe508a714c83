"""KB-05: a first sequence above zero is accepted and shuts out the real first batch (KAFKA-15591).

Since KIP-360 a leader without state for a producer takes any first sequence, because the state may have expired. On a
partition that was never written to, no state can have expired. When a new producer's batches overtake each other, the
later one is appended, and the real first one is answered OUT_OF_ORDER_SEQUENCE_NUMBER (45) for ever. 2.4 answered
UNKNOWN_PRODUCER_ID (59) instead; the fix is merged for 4.5.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import idempotent
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name


@reproduces("KB-05", violated=[("2.5.0", "4.4")])
def test_the_second_batch_first(case: CaseContext) -> None:
    """On a partition that was never written to, a producer's second batch is refused until its first one is there."""
    producer, at = idempotent(case)
    overtaking = producer.batch(at, [f"second {number}" for number in range(5)], sequence=17)
    first = producer.batch(at, [f"first {number}" for number in range(17)], sequence=0)
    early = producer.send_batch(at, overtaking)
    answers = [code_name(producer.send_batch(at, first).code) for _ in range(2)]
    expected = Code.OUT_OF_ORDER_SEQUENCE_NUMBER if case.since("2.5.0") else Code.UNKNOWN_PRODUCER_ID
    seen = {
        "the second batch": code_name(early.code),
        "the first batch, twice": answers,
        "records": len(case.inspect.values(at)),
    }
    held = {
        "the second batch": code_name(expected),
        "the first batch, twice": [code_name(Code.NONE)] * 2,
        "records": 17,
    }
    out_of_order = code_name(Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    violated = {
        "the second batch": code_name(Code.NONE),
        "the first batch, twice": [out_of_order] * 2,
        "records": 5,
    }
    decide(case, "the batches in the wrong order", seen, held=held, violated=violated)
