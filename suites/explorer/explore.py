"""An exploration of one release: walk after walk, by seeds, until the time or the seeds are over.

What a walk showed is on disk before anything is made of it. The first time that a signature appears it must appear
again: the walk is replayed, its moves are made fewer, and what is left is replayed a number of times, which is the rate
that is stated. A signature that does not appear again is kept as fleeting and is no finding.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from suites.explorer import page
from suites.explorer.known import name_of
from suites.explorer.moves import LONG_MS, Move, Plan, plan
from suites.explorer.performing import cut, perform, shrunk
from suites.explorer.state import Rules
from suites.explorer.store import Found, Store, write_plan
from suites.explorer.telling import lines
from suites.explorer.walk import Answerer, Walk
from suites.protocol.generations import Generation
from suites.protocol.recording import Recording

#: How often the fewest moves are replayed to state a rate, and a walk before it is called fleeting.
RATE_TRIES, AGAIN_TRIES = 10, 5
#: What is known from elsewhere has its own recipes: it is counted, and not followed up.
EXPLAINED = "KB-"
#: State is written after so many walks: a few seconds of work.
WRITE_EVERY = 50


class Recorded(Answerer, Protocol):
    """Who answers one walk, with every exchange; `slow` says that time may have changed what the walk relies on."""

    recording: Recording
    slow: bool


class Ground(Protocol):
    """Where walks are performed: each gets an answerer of its own. A field of a real broker is one."""

    generations: tuple[Generation, ...]

    def rules(self, generation: Generation) -> Rules:
        """What the model must know."""

    def broker(self, rules: Rules, *, timeout_ms: int) -> Recorded:
        """The answerer of one walk."""


class Explorer:
    """Performs walks on a field and keeps what they show."""

    def __init__(self, field: Ground, store: Store, *, page_at: Path | None, say: Callable[[str], None]) -> None:
        self.field = field
        self.store = store
        self._page = page_at
        self._say = say

    def explore(self, seeds: Iterable[int], *, seconds: float) -> None:
        """Perform the walks of the seeds that are not done; state is on disk whatever ends it."""
        began_s = time.monotonic()
        before_s = self.store.seconds
        try:
            for seed in seeds:
                if time.monotonic() - began_s > seconds:
                    break
                if seed in self.store.done:
                    continue
                self.walk(seed)
                self.store.done.add(seed)
                self.store.seconds = before_s + time.monotonic() - began_s
                if self.store.walks % WRITE_EVERY == 0:
                    self.store.write()
        finally:
            self.store.write()

    def plan(self, seed: int) -> Plan:
        """The moves of a seed; its generation is one that the brokers offer."""
        generations = self.field.generations
        return plan(seed, self.field.rules(generations[seed % len(generations)]))

    def walk(self, seed: int) -> Walk:
        """Perform the walk of a seed, and follow up what it showed for the first time."""
        planned = self.plan(seed)
        walk, broker = self.perform(planned)
        self.store.walks += 1
        self.store.requests += len(broker.recording.exchanges)
        if broker.slow and (walk.finding or planned.timeout_ms != LONG_MS):
            self.store.slow += 1  # the coordinator may have aborted what the model believes to be open
            return walk
        for signature in sorted(walk.signatures):
            self.store.seen[signature] += 1
            followed = signature in self.store.found or signature in self.store.fleeting
            if not followed and not name_of(signature, self.store.release).startswith(EXPLAINED):
                self._follow(planned, walk, broker, signature)
        return walk

    def perform(self, planned: Plan) -> tuple[Walk, Recorded]:
        """Perform moves on a topic and an id of their own."""
        rules = self.field.rules(planned.generation)
        broker = self.field.broker(rules, timeout_ms=planned.timeout_ms)
        return perform(planned.moves, rules, broker), broker

    def _follow(self, planned: Plan, walk: Walk, broker: Recorded, signature: str) -> None:
        place = self._evidence(planned, walk, broker, signature)
        moves = cut(planned, walk, signature)

        def play(chosen: Sequence[Move]) -> Walk:
            return self.perform(planned._replace(moves=tuple(chosen)))[0]

        if not any(signature in play(moves).signatures for _ in range(AGAIN_TRIES)):
            self.store.fleeting[signature] = planned.seed
            self._say(f"fleeting (seed {planned.seed}, {planned.generation}): {signature}")
            return
        fewest = shrunk(moves, signature, play)
        walks = [play(fewest) for _ in range(RATE_TRIES)]
        showing = [each for each in walks if signature in each.signatures]
        shown = showing[0] if showing else walk
        found = Found(
            signature=signature,
            name=name_of(signature, self.store.release),
            nature=str(shown.finding.nature) if shown.finding else "an answer that is not lawful",
            release=self.store.release,
            generation=str(planned.generation),
            seed=planned.seed,
            shown=len(showing),
            tries=RATE_TRIES,
            moves=tuple(each.plain() for each in fewest),
            script=tuple(lines(shown)),
        )
        self._keep(found, planned._replace(moves=fewest), place)

    def _evidence(self, planned: Plan, walk: Walk, broker: Recorded, signature: str) -> Path:
        """Every exchange of the walk, and its moves, before anything is decided."""
        place = self.store.directory / "findings" / f"{planned.seed}-{len(self.store.found)}"
        place.mkdir(parents=True, exist_ok=True)
        write_plan(place / "walk.json", planned, self.store.release)
        script = {
            "signature": signature,
            "steps": lines(walk),
            "exchanges": [asdict(each) for each in broker.recording.exchanges],
        }
        (place / "script.json").write_text(json.dumps(script, indent=1) + "\n", encoding="utf-8")
        return place

    def _keep(self, found: Found, fewest: Plan, place: Path) -> None:
        self.store.found[found.signature] = found
        write_plan(place / "moves.json", fewest, found.release)
        self.store.write()
        self._say(f"{found.name or 'NEW'} (seed {found.seed}, {found.shown}/{found.tries}): {found.signature}")
        for line in found.script:
            self._say(f"    {line}")
        if self._page is not None:
            publish(self._page, found, fewest)


def publish(path: Path, found: Found, fewest: Plan) -> None:
    """Write the entry, and the moves beside it: a seed means other moves when the explorer changes, a file does not."""
    moves = path.parent / path.stem / f"{found.release}-{found.slug}.json"
    moves.parent.mkdir(parents=True, exist_ok=True)
    write_plan(moves, fewest, found.release)
    shown = moves.relative_to(path.parent.parent)
    page.write(path, found, f"tox -e explore -- --kafka {found.release} --replay {shown.as_posix()}")
