"""When a coordinator was done with a transaction, by its own log.

A coordinator writes Prepare when the end of a transaction is asked for, and Complete when it has no marker left to send.
Of Complete's two times `updated_ms` is the earlier: the state is drawn up before the first marker is sent, by a coordinator
that was restarted when it has loaded its partition. `appended_ms` is when it was done.
"""

from __future__ import annotations

from itertools import pairwise

from verification.evidence.run_evidence import RunEvidence
from verification.evidence.transaction_log_rows import NS_PER_MS, wall_clock_ns
from verification.vocabulary.history import Intent, Operation
from verification.vocabulary.transaction_log import State
from verification.vocabulary.violations import Partition

_ENDED = {
    Intent.COMMIT: (State.PREPARE_COMMIT, State.COMPLETE_COMMIT),
    Intent.ABORT: (State.PREPARE_ABORT, State.COMPLETE_ABORT),
}


def completed_ns(evidence: RunEvidence, ended: Operation, place: Partition) -> int | None:
    """Until when, on the run's clock, a coordinator may have sent markers of a transaction that had the partition.

    None where its log does not say so. The transaction is the one that was open when the operation asked for its end: it
    had begun before, and was decided as it was asked for afterwards. The log has whole milliseconds, so what is compared
    is which one a moment is in, and the end of its millisecond is returned.
    """
    log, zero_ns = evidence.transaction_log, wall_clock_ns(evidence)
    if log is None or zero_ns is None or ended.decided_ns is None or ended.intent is None:
        return None
    prepared, completed = _ENDED[ended.intent]
    asked_ms = (zero_ns + ended.decided_ns) // NS_PER_MS
    name = f"{evidence.topic(place[0])}-{place[1]}"
    own = (each for each in log.entries if each.transactional_id == ended.transactional_id)
    for before, after in pairwise(sorted(own, key=lambda each: each.offset)):
        decided = before.state is prepared and before.began_ms <= asked_ms <= before.updated_ms
        if decided and name in before.places and after.state is completed:
            return (after.appended_ms + 1) * NS_PER_MS - zero_ns
    return None
