"""KB-06: the log cleaner loses the index of aborted transactions (KAFKA-13727).

When the cleaner's map of keys is full before a segment ends, the rest of the segment is copied unchanged. The index of
aborted transactions of the new segment was built from the cleaned part only. A transaction in the copied part is
missing from it, so readers under `read_committed` receive its aborted records. The cleaner of the script's broker has
room for about 870 keys; the segment has 2000, and then the aborted transaction.
"""

from __future__ import annotations

from runner.protocol.toolkit.compaction import CompactedLog, pairs, transactional
from runner.protocol.toolkit.context import CaseContext
from runner.regressions.reproduction import decide, reproduces

ABORTED = 50


@reproduces("KB-06", violated=[("2.4.0", "2.8.1"), ("3.0.0", "3.0.1"), ("3.1.0", "3.1.0")])
def test_a_segment_that_takes_several_passes(case: CaseContext) -> None:
    """Aborted records stay hidden when the cleaner needs several passes for the segment that they are in."""
    log = CompactedLog(case)
    producer = transactional(case, "ends")
    log.sentinel()
    for batch in range(20):
        log.plain(*pairs([f"{batch}-{number}" for number in range(100)], "plain"))
    log.writes(producer, *pairs([f"aborted-{number}" for number in range(ABORTED)], "aborted"))
    producer.ends(commit=False)
    log.sentinel()
    case.require("visible records before", len(log.committed()), 2000)
    log.cleaned()
    aborted = [each for each in log.committed() if each.startswith("aborted")]
    seen = {"aborted records that readers are given": len(aborted)}
    held, violated = ({"aborted records that readers are given": count} for count in (0, ABORTED))
    decide(case, "what is visible after cleaning", seen, held=held, violated=violated)
