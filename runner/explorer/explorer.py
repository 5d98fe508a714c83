"""A walker of an exploration: performs the walk of a seed and follows up what it shows for the first time.

What a walk showed is on disk before anything is made of it. The first time that a signature appears it must appear
again: the walk is replayed, its moves are made fewer, and what is left is replayed a number of times, which is the rate
that is stated. A signature that does not appear again is kept as fleeting and is no finding; the next seeds that show it
are followed up in their turn, for what is a race at one seed may be certain at another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from runner.explorer import findings_page
from runner.explorer.describe import lines
from runner.explorer.execute import cut, perform
from runner.explorer.exit_codes import told
from runner.explorer.generate import plan
from runner.explorer.known_findings import name_of
from runner.explorer.moves import Move, WalkPlan
from runner.explorer.replay import followed
from runner.explorer.shared_state import EndedError, SharedState
from runner.explorer.store import Flaky, Store, StoredFinding, UnfitPlanError, slug, write_plan
from runner.explorer.walk import Recorded, Testbed, Walk

#: At so many seeds a signature is followed up before it stays fleeting: each takes seconds.
FOLLOW_MOST = 4
#: What is known from elsewhere has its own recipes: it is counted, and not followed up.
EXPLAINED = "KB-"


class Explorer:
    """Performs walks on a field and keeps what they show; `walks` are those of this object that say something.

    Several explorers of one store have one `share`, and a field each.
    """

    def __init__(
        self,
        field: Testbed,
        store: Store,
        *,
        share: SharedState | None = None,
        page_at: Path | None,
        say: Callable[[str], None],
    ) -> None:
        self.field = field
        self.store = store
        self.share = share or SharedState()
        self.page_at = page_at
        self.walks = 0
        self._say = say

    def plan(self, seed: int) -> WalkPlan:
        """The moves of a seed; its generation is one that the brokers offer."""
        generations = self.field.generations
        return plan(seed, self.field.rules(generations[seed % len(generations)]))

    def walk(self, seed: int) -> Walk:
        """Perform the walk of a seed, and follow up what it showed for the first time."""
        planned = self.plan(seed)
        walk, broker = self.perform(planned)
        telling = told(planned, walk, broker)
        if telling:
            for signature in sorted(walk.signatures):
                self._follow_up(planned, walk, broker, signature)
        # Counted when all is done: what was interrupted is walked again.
        with self.share.lock:
            self.walks += telling
            self.store.walks += 1
            self.store.slow += not telling
            self.store.requests += len(broker.recording.exchanges)
            self.store.seen.update(walk.signatures if telling else ())
        return walk

    def _follow_up(self, planned: WalkPlan, walk: Walk, broker: Recorded, signature: str) -> None:
        """Follow up a signature that is due; while another walker follows it up, this walk of it is left to him.

        For he may find it fleeting where he saw it, and it may be certain here.
        """
        share, reserved = self.share, {signature, name_of(signature, self.store.release)} - {""}
        with share.lock:
            if not self.due(signature, planned.seed):
                return
            if reserved & share.following:
                share.left.append((planned, walk, broker, signature))
                return
            share.following |= reserved
        try:
            self._follow(planned, walk, broker, signature)
        finally:
            with share.lock:
                share.following -= reserved
        with share.lock:
            left, share.left = share.left, []
        for each in left:
            self._follow_up(*each)

    def due(self, signature: str, seed: int) -> bool:
        """Whether a signature is to be followed up at this seed."""
        name = name_of(signature, self.store.release)
        # What follows from a finding has its name, and may take long to show: a transaction that does not end.
        if signature in self.store.found or name in self.store.found or name.startswith(EXPLAINED):
            return False
        fleeting = self.store.fleeting.get(signature)
        return fleeting is None or (seed not in fleeting.seeds and len(fleeting.seeds) < FOLLOW_MOST)

    def perform(self, planned: WalkPlan) -> tuple[Walk, Recorded]:
        """Perform moves on a topic and an id of their own.

        Raises UnfitPlanError for requests that are not offered, and EndedError when the exploration has ended meanwhile.
        """
        if planned.generation not in self.field.generations:
            release = self.store.release
            raise UnfitPlanError(f"The moves are {planned.generation} requests, which Kafka {release} does not offer.")
        rules = self.field.rules(planned.generation)
        broker = self.field.broker(rules, timeout_ms=planned.timeout_ms)
        walk = perform(planned.moves, rules, broker)
        if self.share.ended.is_set():
            raise EndedError
        return walk, broker

    def _follow(self, planned: WalkPlan, walk: Walk, broker: Recorded, signature: str) -> None:
        place = self._evidence(planned, walk, broker, signature)

        def play(chosen: Sequence[Move]) -> Walk | None:
            replay = planned._replace(moves=tuple(chosen))
            again, answerer = self.perform(replay)
            return again if told(replay, again, answerer) else None

        shown = followed(cut(planned, walk, signature), signature, play)
        if shown is None or shown.walk is None:
            self._fleeting(planned, walk, signature)
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

    def _fleeting(self, planned: WalkPlan, walk: Walk, signature: str) -> None:
        with self.share.lock:
            before = self.store.fleeting.get(signature) or Flaky(nature=_nature(walk, signature))
            self.store.fleeting[signature] = replace(before, seeds=(*before.seeds, planned.seed))
            self._say(f"fleeting (seed {planned.seed}, {planned.generation}): {signature}")

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
        with self.share.lock:
            self.store.found[found.signature] = found
            self.store.fleeting.pop(found.signature, None)
            self.store.write()
            self._say(f"{found.name or 'NEW'} (seed {found.seed}, {found.shown}/{found.tries}): {found.signature}")
            for line in found.script:
                self._say(f"    {line}")
            if self.page_at is not None:
                publish(self.page_at, found, fewest)


def _nature(walk: Walk, signature: str) -> str:
    """What the signature is, where it is that of the finding: what has a name is an answer like any other."""
    found = walk.finding
    return str(found.nature) if found and found.signature == signature else "an answer that is not lawful"


def publish(path: Path, found: StoredFinding, fewest: WalkPlan) -> None:
    """Write the entry, and the moves beside it: a seed means other moves when the explorer changes, a file does not."""
    moves = path.parent / path.stem / f"{found.release}-{found.slug}.json"
    moves.parent.mkdir(parents=True, exist_ok=True)
    write_plan(moves, fewest, found.release)
    shown = moves.relative_to(path.parent.parent)
    findings_page.write(path, found, f"tox -e explore -- --kafka {found.release} --replay {shown.as_posix()}")
