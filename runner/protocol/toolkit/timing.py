"""Time in scripts: transactions that time out soon, records that roll segments, and what runs several times a second."""

from __future__ import annotations

import time
from functools import partial

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.script_recorder import NotApplicableError

#: The transaction timeout of what is to time out; shorter ones end while a busy machine still sets the stage.
TIMEOUT_MS = 1000
#: Longer than brokers are away, recover and catch up: what is open stays open until the script ends it.
LONG_MS = 300_000
#: What brokers of a short-lived kind do within a second (expiry, cleaning, aborting); the rest is for a busy machine.
SOON_S = 20.0
#: A record with a timestamp this far ahead of the first one rolls a segment with `segment.ms` of a minute at once.
ROLL_MS, SEGMENT_MS = 61_000, "60000"


def now_ms() -> int:
    """The time as records have it."""
    return time.time_ns() // 1_000_000


def short(case: CaseContext, name: str) -> ScriptedProducer:
    """A producer whose transactions time out after a second, initialised."""
    return ScriptedProducer(case, f"{case.name}-{name}", timeout_ms=TIMEOUT_MS).ready()


def timed_out(case: CaseContext, producer: ScriptedProducer) -> str | None:
    """Wait until a transaction was aborted; the state seen last."""
    look = partial(case.inspect.state, str(producer.transactional_id))
    seen: str | None = case.poll_until(look, lambda state: state == "CompleteAbort", within_s=SOON_S)
    return seen


def expiry_can_be_seen(case: CaseContext) -> None:
    """End a case that is about a producer's expiry where none can be waited for.

    Raises NotApplicableError before 3.4, where brokers look for one every ten minutes.
    """
    if not case.since("3.4.0"):
        raise NotApplicableError("producer.id.expiration.check.interval.ms cannot be set before 3.4")
