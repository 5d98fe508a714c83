"""KB-02: a late TxnOffsetCommit stays pending for ever (KAFKA-15449).

The group coordinator up to 3.6 appends transactional offsets without asking the transaction coordinator whether its
partition belongs to an open transaction. Offsets that arrive after the end, or without AddOffsetsToTxn, are written and
never decided. OffsetFetch with RequireStable then answers UNSTABLE_OFFSET_COMMIT (88), and the last stable offset of the
partition of `__consumer_offsets` stands. At its end the script writes the missing marker, as an administrator would.
"""

from __future__ import annotations

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.expected_codes import outside_code
from runner.protocol.toolkit.fetching import write_marker
from runner.protocol.toolkit.producer import transactional
from runner.regressions.probes import STABLE_SINCE, UNSTABLE, pending_partitions, stable_offset
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name


@reproduces("KB-02", violated=[("2.4.0", "3.6")])
def test_offsets_outside_any_transaction(case: CaseContext) -> None:
    """Transactional offsets outside any transaction are refused, and nothing of them stays pending."""
    (at,) = case.topic()
    group = f"{case.name}-group"
    producer = transactional(case)
    case.require("offsets that are pending before", pending_partitions(case), [])
    answer = case.answered(lambda: producer.commit_offsets(group, {at: 7}))
    pending = pending_partitions(case)
    asked = case.since(STABLE_SINCE)
    seen = {
        "TxnOffsetCommit": code_name(answer.code),
        "offset partitions with an open transaction": len(pending),
        "the stable offset": stable_offset(case, group, at) if asked else "nobody can be asked before 2.5",
    }
    held = {"TxnOffsetCommit": code_name(outside_code(answer)), "offset partitions with an open transaction": 0}
    violated = {"TxnOffsetCommit": code_name(Code.NONE), "offset partitions with an open transaction": 1}
    if asked:
        held, violated = held | {"the stable offset": -1}, violated | {"the stable offset": UNSTABLE}
    decide(case, "the offsets outside any transaction", seen, held=held, violated=violated)
    for each in pending:
        # answer dropped: it only tidies up, after the decision
        write_marker(case, each, producer_id=producer.now.id, epoch=producer.now.epoch, coordinator_epoch=0)
