"""When a coordinator completed a transaction, by its own log.

A coordinator writes Prepare when the end of a transaction is requested, and Complete when it has no marker left to send.
Complete has two times. `updated_ms` is the earlier: the coordinator makes the state before it sends the first marker, or,
after a restart, when it has loaded its partition. `appended_ms` is the time of completion.
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


def sending_ns(evidence: RunEvidence, ended: Operation, place: Partition) -> tuple[int, int] | None:
    """The first and the last time, on the run's clock, at which the coordinator that completed a transaction sent markers.

    After a restart it sends the markers to every partition again, so those of the coordinator before do not count. None
    where its log does not show it, or where the transaction did not have the partition. The transaction is the one that
    was open when the operation requested its end: it began before, and was decided as requested afterwards. The log has
    whole milliseconds, so milliseconds are compared, and the end of the last one is returned.
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
            return after.updated_ms * NS_PER_MS - zero_ns, (after.appended_ms + 1) * NS_PER_MS - zero_ns
    return None
