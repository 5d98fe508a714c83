"""Time in scripts: transactions that time out soon, records that roll segments, and waits for periodic work of brokers."""

from __future__ import annotations

import time
from functools import partial

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.script_recorder import NotApplicableError

#: The timeout of a transaction that is to time out; a shorter one ends while a busy machine still sets up the case.
TIMEOUT_MS = 1000
#: Longer than brokers are away, recover and catch up: an open transaction stays open until the script ends it.
LONG_MS = 300_000
#: Brokers with short intervals expire, clean and abort within a second; the rest is for a busy machine.
SOON_S = 20.0
#: A record with a timestamp this far ahead of the first one rolls a segment with `segment.ms` of a minute at once.
ROLL_MS, SEGMENT_MS = 61_000, "60000"


def now_ms() -> int:
    """The time in milliseconds, as in the timestamps of records."""
    return time.time_ns() // 1_000_000


def short(case: CaseContext, name: str) -> ScriptedProducer:
    """An initialised producer whose transactions time out after a second."""
    return ScriptedProducer(case, f"{case.name}-{name}", timeout_ms=TIMEOUT_MS).ready()


def timed_out(case: CaseContext, producer: ScriptedProducer) -> str | None:
    """Wait until a transaction that timed out is aborted; returns the last state.

    In Kafka that is CompleteAbort. A broker of another make may forget the transaction at once: Empty.
    """
    look = partial(case.inspect.state, str(producer.transactional_id))
    seen: str | None = case.poll_until(look, lambda state: state in ("CompleteAbort", "Empty"), within_s=SOON_S)
    return seen


def expiry_can_be_seen(case: CaseContext) -> None:
    """End a case about a producer's expiry if the release makes it too slow.

    Raises NotApplicableError before 3.4, where brokers check for expired producers every ten minutes.
    """
    if not case.since("3.4.0"):
        raise NotApplicableError("producer.id.expiration.check.interval.ms cannot be set before 3.4")
