"""A late duplicate: one Produce request that the network holds until the client has begun its next transaction.

The client gives up the held request after its socket timeout and sends it again on a new connection. It ends the
transaction, begins the next one, and is held there before it writes anything. Now the held request is released. It
arrives after the end of its own transaction and before the first batch of the next. Any network can do this: the client
has made no error, and every request is a real one.

The proof is the broker's answer to the late request, whatever its code, with the offset of each batch in it. An accepted
batch may have been known already, or the next transaction may have taken it in. The client waits until that answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from chaos.arena import Arena
from chaos.clients import PRODUCER, ClientProcess, SyncPoint
from chaos.errors import UnresolvedTargetError
from chaos.faults.fault import HeldAt, Injection
from chaos.faults.frames import lead_through
from chaos.frames import FrameFilter, FrameLinks, Hold, Rule
from chaos.link_targets import LinkTarget
from wire.values import TopicPartition

#: A socket timeout of some seconds, a reconnect, the end of the transaction, and the pause before the next one.
NEXT_TRANSACTION_WITHIN_S = 30.0
#: A successor starts and initialises in a second; at a load of 19 on two processors one took longer than 1.2 s.
SUCCEEDED_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LateDuplicate:
    """Hold one Produce request of a transactional producer (its position among those that run), on the links of `on`."""

    on: LinkTarget
    producer: int = 0

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"a request of producer {self.producer} held until its next transaction, {self.on.describe()}"

    def futility(self) -> str | None:
        """Positions are counted from 0."""
        return None if self.producer >= 0 else f"there is no producer {self.producer}"

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """The producer, in its next transaction."""
        return ((PRODUCER, SyncPoint.BEFORE_PRODUCE),)

    def inject(self, arena: Arena) -> Injection:
        """Hold the next Produce request of the producer; the rest happens in `confirm`."""
        owner, links = self._owner(arena), self.on.resolve(arena)
        with ExitStack() as undo:
            frames = FrameFilter(api="Produce", transactional_id=owner.transactional_id, count=1)
            relay, rule = lead_through(arena, undo, links, frames, Hold())
            undo.callback(arena.clients.release, (owner,))
            kept = undo.pop_all()
        progress = _Progress(arena=arena, owner=owner, relay=relay, rule=rule)
        return Injection(
            target=str(owner.transactional_id), confirm=progress.confirm, heal=kept.close, processes=(owner.process,)
        )

    def _owner(self, arena: Arena) -> ClientProcess:
        """The producer; one that an earlier step has ended may not have its successor yet."""
        deadline = time.monotonic() + SUCCEEDED_WITHIN_S
        while True:
            owners = [each for each in arena.clients.alive("producer") if each.transactional_id is not None]
            if len(owners) > self.producer:
                return owners[self.producer]
            if time.monotonic() > deadline:
                raise UnresolvedTargetError(
                    f"there is no transactional producer {self.producer}; {len(owners)} are running"
                )
            time.sleep(0.1)


@dataclass(slots=True, kw_only=True)
class _Progress:
    """The steps: the request is held, the client waits in its next transaction, the late request is answered."""

    arena: Arena
    owner: ClientProcess
    relay: FrameLinks
    rule: Rule
    let_go: bool = field(default=False)

    def confirm(self) -> str | None:
        """Take the step that is due; returns the proof after the last. Raises chaos.errors when the client fails."""
        if not self.rule.count:
            return None
        if not self.let_go:
            self.arena.clients.hold(
                SyncPoint.BEFORE_PRODUCE, processes=(self.owner,), timeout_s=NEXT_TRANSACTION_WITHIN_S
            )
            self.let_go = True
            self.rule.release()
        (met,) = self.rule.met
        if met.answer is None:
            return None
        reader = self.relay.reader
        codes = reader.error_codes(met.api, met.version, met.answer)
        offsets = reader.base_offsets(met.version, met.answer)
        self.arena.clients.release((self.owner,))
        return answered_late(self.rule.describe(), codes, offsets)


def answered_late(what: str, codes: tuple[int, ...], offsets: Mapping[TopicPartition, int]) -> str:
    """The proof; `verification.known_bugs.signatures.refused_duplicate` parses it to recognise a known bug."""
    said = f"error codes {codes}"
    for at, offset in offsets.items():
        said += f", base offset {offset} on {at}"
    return f"{what}; it arrived after its transaction and was answered: {said}"
