"""A fake testbed for tests of the explorer: the model answers, with one planted deviation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.explorer.explorer import Explorer
from runner.explorer.moves import Epoch, Move
from runner.explorer.parallel import explore
from runner.explorer.store import Store, StoredFinding, opened
from runner.explorer.walk import Deviation, ModelBroker
from runner.protocol.toolkit.script_recorder import ScriptRecorder
from verification.specification.coordinator import ended
from verification.specification.state import (
    AllowedOutcome,
    ModelAnswer,
    ModelRequest,
    ModelState,
    RequestKind,
    Rules,
    TransactionPhase,
)
from wire.transaction_versions import TransactionVersion

#: Enough seeds to meet every ordinary situation several times.
SEEDS = 80


def rules(generation: TransactionVersion, release: str = "4.3.1") -> Rules:
    """A new cluster of a release: level 2 from 4.0 on."""
    return Rules(release=release, generation=generation, level=2 if release >= "4" else 0)


def moves(*several: tuple[RequestKind, dict[str, object]]) -> tuple[Move, ...]:
    """Moves by number."""
    return tuple(Move(number=number, kind=kind, **each) for number, (kind, each) in enumerate(several))  # type: ignore[arg-type]


FRESH: dict[str, object] = {"epoch": Epoch.NONE}
#: A finding whose seed was never walked.
FOUND = StoredFinding(
    signature="a -> b",
    name="",
    nature="x",
    release="4.3.1",
    generation="TV1",
    seed=1,
    shown=9,
    tries=10,
    moves=(),
    script=("one", "two"),
    model="0123abcd",
)


def stale_end_accepted(state: ModelState, request: ModelRequest, outcome: AllowedOutcome) -> AllowedOutcome | None:
    """EndTxn with a stale epoch ends the open transaction."""
    if request.kind is RequestKind.END and state.phase is TransactionPhase.ONGOING and 0 <= request.epoch < state.epoch:
        after = ended(state, commit=request.commit, marker=state.epoch, epoch=state.epoch, last=state.last)
        return replace(outcome, answer=ModelAnswer(), after=after)
    return None


def aborted_data_shown(state: ModelState, request: ModelRequest, outcome: AllowedOutcome) -> AllowedOutcome | None:
    """A reader under read_committed gets aborted records."""
    if request.kind is not RequestKind.LOOK or outcome.answer.seen is None:
        return None
    seen = dict(outcome.answer.seen)
    seen["committed 0"] = seen["log 0"]
    return replace(outcome, answer=ModelAnswer(seen=seen))


def stale_init_aborts(state: ModelState, request: ModelRequest, outcome: AllowedOutcome) -> AllowedOutcome | None:
    """A zombie's InitProducerId is refused, and yet raises the epoch, which fences the owner."""
    if request.kind is RequestKind.INIT and outcome.answer.code == 90 and state.phase is TransactionPhase.EMPTY:
        return replace(outcome, after=replace(state, epoch=state.epoch + 1))
    return None


def due_batch_refused(state: ModelState, request: ModelRequest, outcome: AllowedOutcome) -> AllowedOutcome | None:
    """A batch that is due is answered 45, and nothing is appended."""
    if request.kind is RequestKind.PRODUCE and request.sequence == 1 and outcome.answer.code == 0:
        return AllowedOutcome(answer=ModelAnswer(code=45), after=state)
    return None


def joining(state: ModelState, request: ModelRequest, outcome: AllowedOutcome) -> AllowedOutcome | None:
    """A batch of a future epoch is appended to the open transaction."""
    if request.kind is not RequestKind.PRODUCE or request.epoch <= state.epoch:
        return None
    return AllowedOutcome(answer=ModelAnswer(offset=len(state.places[0].log)), after=outcome.after)


@dataclass
class Played:
    """The model as an answerer with a recording, which stays empty."""

    model: ModelBroker
    recording: ScriptRecorder = field(default_factory=ScriptRecorder)
    slow: bool = False

    def ask(self, move: Move, request: ModelRequest) -> ModelAnswer:
        """Answer as the model with its deviation."""
        return self.model.ask(move, request)

    def hold(self, move: Move, request: ModelRequest) -> None:
        """Requests are values."""

    def settle(self) -> ModelAnswer:
        """Settle as the model does."""
        return self.model.settle()


@dataclass
class FakeTestbed:
    """A testbed whose broker is the model with a deviation.

    `before` is called before each walk; `slow` says which walks take too long.
    """

    deviation: Callable[[int], Deviation | None]
    before: Callable[[int], None] = lambda _: None
    generations: tuple[TransactionVersion, ...] = (TransactionVersion.TV1,)
    slow: Callable[[int], bool] = lambda _: False
    walks: int = 0

    def rules(self, generation: TransactionVersion) -> Rules:
        """The rules of the newest release."""
        return rules(generation)

    def broker(self, rules: Rules, *, timeout_ms: int) -> Played:
        """The answerer of one more walk."""
        self.walks += 1
        self.before(self.walks)
        return Played(ModelBroker(rules, self.deviation(self.walks)), slow=self.slow(self.walks))


def explored(testbed: FakeTestbed, directory: Path, seeds: range = range(SEEDS)) -> Store:
    """The store after an exploration of these seeds."""
    store = opened(directory, "4.3.1")
    explore([Explorer(testbed, store, page_at=directory / "findings.md", say=lambda _: None)], seeds, seconds=60)
    return store
