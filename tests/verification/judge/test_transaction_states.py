"""A coordinator that keeps to the rules passes: a model of it writes the histories, step by step.

The model takes its steps as the coordinators of 2.4 to 4.3 do (`TransactionMetadata` and `TransactionCoordinator`):
those of before KIP-890 and after it, expiry, exhausted epochs, appends that fail after they were done, changes of the
leader, and a log whose beginning was compacted away or not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from tests.verification.judge.test_transitions import ALWAYS, NEVER, found, frame
from verification.checks.transaction_states import IDLE, PREDECESSORS
from verification.vocabulary.transaction_log import Entry, State

#: An epoch that the model's producers may not pass; Kafka's is 32767, which histories of a test do not reach.
EPOCH_MAX = 3
PREPARED = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}
#: The steps of a case. A step that does not fit the state does nothing, as a coordinator would answer with an error.
ACTS = ("init", "init again", "add", "add", "commit", "abort", "complete", "complete", "expire", "lead anew")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The model's knowledge of its transactional id: its current entry, and whether a fence failed."""

    entry: Entry
    fence_failed: bool = False


class Coordinator:
    """The model: one transactional id. `bump` is by how much a fence raises the epoch in TV2: 2 in 4.0.0, then 1."""

    def __init__(self, *, bump: int) -> None:
        self.log: list[Entry] = []
        self.bump = bump
        self.leader_epoch = 0
        self.ids = 0
        self.known: Known | None = None

    def act(self, act: str, *, place: str, tv2: bool, fails: bool) -> None:
        """Take one step, if possible; with `fails` its record is written, but the model keeps its earlier state."""
        if act == "lead anew":
            self.leader_epoch += 1
            last = self.log[-1] if self.log else None
            self.known = None if last is None or last.state is State.DEAD else Known(entry=last)
            return
        before = self.known
        step = self._first(act) if before is None else self._step(before, act, place, tv2=tv2)
        if step is None:
            return
        at = len(self.log)
        step = replace(step, offset=at, leader_epoch=self.leader_epoch, updated_ms=at, appended_ms=at)
        self.log.append(step)
        if not fails:
            self.known = None if step.state is State.DEAD else Known(entry=step)
        elif before is not None and act == "init" and before.entry.state is State.ONGOING and not tv2:
            self.known = Known(entry=replace(before.entry, epoch=step.epoch), fence_failed=True)

    def _new_id(self) -> int:
        self.ids += 1
        return self.ids

    def _first(self, act: str) -> Entry | None:
        if act != "init":
            return None
        return Entry(
            partition=0, offset=0, transactional_id="a", state=State.EMPTY, producer_id=self._new_id(), epoch=0
        )

    def _step(self, known: Known, act: str, place: str, *, tv2: bool) -> Entry | None:
        entry, idle = known.entry, known.entry.state in IDLE
        exhausted = entry.epoch >= EPOCH_MAX - 1
        if act.startswith("init") and idle:
            new = (self._new_id(), 0) if exhausted else (entry.producer_id, entry.epoch + 1)
            # The request is repeated with the earlier epoch, because the answer had not arrived.
            producer_id, epoch = (entry.producer_id, entry.epoch) if act == "init again" else new
            return replace(
                entry, state=State.EMPTY, producer_id=producer_id, epoch=epoch, began_ms=-1, client_version=0
            )
        if act == "init" and entry.state is State.ONGOING:
            raised = entry.epoch if known.fence_failed else entry.epoch + (self.bump if tv2 else 1)
            return replace(entry, state=State.PREPARE_ABORT, epoch=raised, client_version=2 if tv2 else 0)
        if act == "add" and (idle or entry.state is State.ONGOING):
            began_ms = len(self.log) if idle else entry.began_ms
            return replace(entry, state=State.ONGOING, places=entry.places | {place}, began_ms=began_ms)
        if act == "complete" and entry.state in PREPARED:
            following = entry.next_producer_id
            producer_id, epoch = (following, 0) if following >= 0 else (entry.producer_id, entry.epoch)
            over = replace(entry, state=PREPARED[entry.state], places=frozenset(), next_producer_id=-1)
            return replace(over, producer_id=producer_id, epoch=epoch)
        if act == "expire" and idle:
            return Entry(partition=0, offset=0, transactional_id="a", state=State.DEAD)
        return self._end(entry, act, exhausted=exhausted, tv2=tv2)

    def _end(self, entry: Entry, act: str, *, exhausted: bool, tv2: bool) -> Entry | None:
        """EndTxn; in TV2 it raises the epoch, and an abort needs no transaction."""
        nothing = act == "abort" and tv2 and entry.state in IDLE
        if act not in ("commit", "abort") or not (entry.state is State.ONGOING or nothing):
            return None
        state = State.PREPARE_COMMIT if act == "commit" else State.PREPARE_ABORT
        if not tv2:
            return replace(entry, state=state, client_version=0)
        began_ms = len(self.log) if nothing else entry.began_ms
        following = self._new_id() if exhausted else -1
        return replace(
            entry,
            state=state,
            epoch=entry.epoch + 1,
            next_producer_id=following,
            began_ms=began_ms,
            client_version=2,
        )


def compacted(log: Sequence[Entry], until: int) -> list[Entry]:
    """Of the records below an offset only the last is left."""
    return [*log[:until][-1:], *log[until:]]


def written(random: Random, *, failing: bool) -> list[Entry]:
    """The records of one transactional id."""
    model = Coordinator(bump=random.choice((1, 2)))
    for _ in range(random.randint(8, 40)):
        fails = failing and random.random() < 0.3
        model.act(random.choice(ACTS), place=random.choice(("t-0", "t-1")), tv2=random.random() < 0.5, fails=fails)
    return model.log


def test_the_records_of_a_correct_coordinator_pass() -> None:
    """For any requests and any part of its log, neither judge finds an illegal step in 300 histories."""
    random, taken = Random(1), set()
    for number in range(300):
        failing = number % 2 == 0
        log, window = written(random, failing=failing), ALWAYS if failing else NEVER
        cut = random.randint(0, len(log))
        assert found(frame(log, failing=window)) == []
        assert found(frame(compacted(log, cut), failing=window)) == []
        assert found(frame(log[cut:], start=cut, new=False, failing=window)) == []
        taken |= {(one.state, other.state) for one, other in pairwise(log) if not failing}
    # The model took every step of the rules, including those of TV2.
    pairs = {(before, state) for state, allowed in PREDECESSORS.items() for before in allowed}
    assert taken == pairs | {(before, State.PREPARE_ABORT) for before in IDLE}
