"""Performs the walk of a seed, and replays and shrinks it when it shows a new signature.

The evidence of a walk is on disk before anything is decided. A new signature must appear again: the walk is replayed and
its moves are made fewer. The fewest moves are replayed several times, which gives the rate that is stated. A signature
that no replay shows is kept as flaky and is no finding. The next seeds that show it are replayed in their turn, because
a race at one seed may be certain at another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from runner.explorer import findings_page
from runner.explorer.describe import lines
from runner.explorer.execute import cut, perform
from runner.explorer.exit_codes import is_conclusive
from runner.explorer.generate import plan
from runner.explorer.known_findings import name_of
from runner.explorer.moves import Move, WalkPlan
from runner.explorer.replay import followed
from runner.explorer.shared_state import EndedError, SharedState
from runner.explorer.store import Flaky, Store, StoredFinding, UnfitPlanError, slug, write_plan
from runner.explorer.walk import Recorded, Testbed, Walk

#: A signature is followed up at so many seeds before it stays flaky: each takes seconds.
FOLLOW_MOST = 4
#: A known bug has its own reproduction: its signature is counted, and not followed up.
EXPLAINED = "KB-"


class Explorer:
    """Performs walks on a testbed and keeps their signatures; `walks` counts the conclusive ones of this object.

    Several explorers of one store have one SharedState, and a testbed each.
    """

    def __init__(
        self,
        testbed: Testbed,
        store: Store,
        *,
        shared: SharedState | None = None,
        page_at: Path | None,
        say: Callable[[str], None],
    ) -> None:
        self.testbed = testbed
        self.store = store
        self.shared = shared or SharedState()
        self.page_at = page_at
        self.walks = 0
        self._say = say

    def plan(self, seed: int) -> WalkPlan:
        """The moves of a seed; its generation is one that the brokers offer."""
        generations = self.testbed.generations
        return plan(seed, self.testbed.rules(generations[seed % len(generations)]))

    def walk(self, seed: int) -> Walk:
        """Perform the walk of a seed, and follow up its new signatures."""
        planned = self.plan(seed)
        walk, broker = self.perform(planned)
        conclusive = is_conclusive(planned, walk, broker)
        if conclusive:
            for signature in sorted(walk.signatures):
                self._follow_up(planned, walk, broker, signature)
        # Counted when all is done: an interrupted seed is walked again.
        with self.shared.lock:
            self.walks += conclusive
            self.store.walks += 1
            self.store.slow += not conclusive
            self.store.requests += len(broker.recording.exchanges)
            self.store.seen.update(walk.signatures if conclusive else ())
        return walk

    def _follow_up(self, planned: WalkPlan, walk: Walk, broker: Recorded, signature: str) -> None:
        """Follow up a signature that is due; while another walker follows it up, this walk of it is postponed.

        That walker may find the signature flaky at its own seed; at this one it may be certain.
        """
        shared, reserved = self.shared, {signature, name_of(signature, self.store.release)} - {""}
        with shared.lock:
            if not self.due(signature, planned.seed):
                return
            if reserved & shared.following:
                shared.postponed.append((planned, walk, broker, signature))
                return
            shared.following |= reserved
        try:
            self._follow(planned, walk, broker, signature)
        finally:
            with shared.lock:
                shared.following -= reserved
        with shared.lock:
            left, shared.postponed = shared.postponed, []
        for each in left:
            self._follow_up(*each)

    def due(self, signature: str, seed: int) -> bool:
        """Whether a signature is to be followed up at this seed."""
        name = name_of(signature, self.store.release)
        # A consequence of a finding has its name, and may take long to show: a transaction that does not end.
        if signature in self.store.found or name in self.store.found or name.startswith(EXPLAINED):
            return False
        flaky = self.store.flaky.get(signature)
        return flaky is None or (seed not in flaky.seeds and len(flaky.seeds) < FOLLOW_MOST)

    def perform(self, planned: WalkPlan) -> tuple[Walk, Recorded]:
        """Perform moves on a new topic and transactional id.

        Raises UnfitPlanError for requests that are not offered, and EndedError when the exploration has ended meanwhile.
        """
        if planned.generation not in self.testbed.generations:
            release = self.store.release
            raise UnfitPlanError(f"The moves are {planned.generation} requests, which Kafka {release} does not offer.")
        rules = self.testbed.rules(planned.generation)
        broker = self.testbed.broker(rules, timeout_ms=planned.timeout_ms)
        walk = perform(planned.moves, rules, broker)
        if self.shared.ended.is_set():
            raise EndedError
        return walk, broker

    def _follow(self, planned: WalkPlan, walk: Walk, broker: Recorded, signature: str) -> None:
        place = self._evidence(planned, walk, broker, signature)

        def play(chosen: Sequence[Move]) -> Walk | None:
            replay = planned._replace(moves=tuple(chosen))
            again, answerer = self.perform(replay)
            return again if is_conclusive(replay, again, answerer) else None

        shown = followed(cut(planned, walk, signature), signature, play)
        if shown is None or shown.walk is None:
            self._keep_flaky(planned, walk, signature)
            return
        found = StoredFinding(
            signature=signature,
            name=name_of(signature, self.store.release),
            nature=_nature(shown.walk, signature),
            release=self.store.release,
            generation=str(planned.generation),
            seed=planned.seed,
            shown=shown.shown,
            tries=shown.tries,
            moves=tuple(each.plain() for each in shown.moves),
            script=tuple(lines(shown.walk)),
            model=self.store.model,
        )
        self._keep(found, planned._replace(moves=shown.moves), place)

    def _keep_flaky(self, planned: WalkPlan, walk: Walk, signature: str) -> None:
        with self.shared.lock:
            before = self.store.flaky.get(signature) or Flaky(nature=_nature(walk, signature))
            self.store.flaky[signature] = replace(before, seeds=(*before.seeds, planned.seed))
            self._say(f"flaky (seed {planned.seed}, {planned.generation}): {signature}")

    def _evidence(self, planned: WalkPlan, walk: Walk, broker: Recorded, signature: str) -> Path:
        """Every exchange of the walk, and its moves, before anything is decided."""
        place = self.store.directory / "findings" / f"{planned.seed}-{slug(signature)}"
        place.mkdir(parents=True, exist_ok=True)
        write_plan(place / "walk.json", planned, self.store.release)
        script = {
            "signature": signature,
            "steps": lines(walk),
            "exchanges": [asdict(each) for each in broker.recording.exchanges],
        }
        (place / "script.json").write_text(json.dumps(script, indent=1) + "\n", encoding="utf-8")
        return place

    def _keep(self, found: StoredFinding, fewest: WalkPlan, place: Path) -> None:
        write_plan(place / "moves.json", fewest, found.release)
        with self.shared.lock:
            self.store.found[found.signature] = found
            self.store.flaky.pop(found.signature, None)
            self.store.write()
            self._say(f"{found.name or 'NEW'} (seed {found.seed}, {found.shown}/{found.tries}): {found.signature}")
            for line in found.script:
                self._say(f"    {line}")
            if self.page_at is not None:
                publish(self.page_at, found, fewest)


def _nature(walk: Walk, signature: str) -> str:
    """The nature of the finding that has the signature; a known name has none of its own."""
    found = walk.finding
    return str(found.nature) if found and found.signature == signature else "an answer that is not lawful"


def publish(path: Path, found: StoredFinding, fewest: WalkPlan) -> None:
    """Write the entry, and a file of its moves: a changed explorer gives a seed other moves, a file keeps them."""
    moves = path.parent / path.stem / f"{found.release}-{found.slug}.json"
    moves.parent.mkdir(parents=True, exist_ok=True)
    write_plan(moves, fewest, found.release)
    shown = moves.relative_to(path.parent.parent)
    findings_page.write(path, found, f"tox -e explore -- --kafka {found.release} --replay {shown.as_posix()}")
