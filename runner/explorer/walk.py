"""A walk: turns moves into requests and compares each answer with the model, up to the first finding.

An `Answerer` answers the requests: a broker, or the model itself for planning and for tests. A walk ends with its first
finding, because the model does not know the state after an answer that it does not allow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from runner.explorer.finding import WalkContext, WalkFinding, what
from runner.explorer.moves import PRODUCERS
from runner.explorer.requests import resolved
from verification.specification.coordinator import BUSY, allowed, settled, visible
from verification.specification.state import (
    NO_EPOCH,
    AllowedOutcome,
    ModelAnswer,
    ModelRequest,
    ModelState,
    RequestKind,
    Rules,
)
from wire.codes import code_name

if TYPE_CHECKING:
    from runner.explorer.moves import Move
    from runner.protocol.toolkit.script_recorder import ScriptRecorder
    from wire.transaction_versions import TransactionVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkStep:
    """One move as it was made. `known` names the known defect that its answer shows."""

    move: Move
    request: ModelRequest
    answer: ModelAnswer | None
    known: str = ""


class Answerer(Protocol):
    """Answers the requests of a walk."""

    def ask(self, move: Move, request: ModelRequest) -> ModelAnswer:
        """Send a request and wait; a replay sends the bytes of the move that it names."""

    def hold(self, move: Move, request: ModelRequest) -> None:
        """Encode a request and keep its bytes."""

    def settle(self) -> ModelAnswer:
        """Wait until the transaction is complete; its state and epoch at the coordinator."""


class Recorded(Answerer, Protocol):
    """An answerer that records every exchange; `slow` says that the walk took too long for its transaction timeout."""

    recording: ScriptRecorder
    slow: bool


class Testbed(Protocol):
    """A place where walks are performed: each walk gets a new answerer."""

    generations: tuple[TransactionVersion, ...]

    def rules(self, generation: TransactionVersion) -> Rules:
        """The facts about the brokers that the model must know."""

    def broker(self, rules: Rules, *, timeout_ms: int) -> Recorded:
        """The answerer of one walk."""


class Walk:
    """The model's side of a walk.

    `epochs` are those that the instances were given. `reached` is the number of the last move, made or not.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.state = ModelState()
        self.epochs = [NO_EPOCH] * PRODUCERS
        self.frames: dict[int, ModelRequest] = {}
        self.steps: list[WalkStep] = []
        self.finding: WalkFinding | None = None
        self.changed = ""
        self.reached = -1
        self.aftermath: tuple[str, ...] = ()

    @property
    def known(self) -> list[str]:
        """The names of the known defects that the walk showed, in order."""
        return [each.known for each in self.steps if each.known]

    @property
    def signatures(self) -> frozenset[str]:
        """The names of known defects that the walk showed, and the finding's signature."""
        return frozenset(self.known) | ({self.finding.signature} if self.finding else set())

    def resolve(self, move: Move) -> ModelRequest | None:
        """The request that a move means in the current state; None when it means nothing."""
        return resolved(move, self.state, self.epochs, self.frames)

    def take(self, move: Move, request: ModelRequest, answer: ModelAnswer) -> None:
        """Compare an answer with the model, and go on from it."""
        outcomes = allowed(self.rules, self.state, request)
        fitting = next((each for each in outcomes if _fits(each.answer, answer)), None)
        self.steps.append(WalkStep(move=move, request=request, answer=answer, known=fitting.known if fitting else ""))
        if fitting is None:
            owners = move.send == "now" and request.epoch == self.state.epoch
            self.finding = self._context.unlawful(request, answer, outcomes, owners=owners)
            return
        if fitting.after != self.state:
            self.changed = f"{what(request, self.state)} -> {code_name(answer.code)}"
        self.state = fitting.after
        if move.send == "now" and move.who >= 0 and answer.code == 0 and answer.epoch is not None:
            self.epochs[move.who] = answer.epoch

    def keep(self, move: Move, request: ModelRequest) -> None:
        """Note that a request was made and not sent."""
        self.frames[move.number] = request
        self.steps.append(WalkStep(move=move, request=request, answer=None))

    def settle(self, answer: ModelAnswer) -> None:
        """Note that the transaction is complete; a finding when the model expects something else."""
        epochs = {"state": str(self.state.phase), "epoch": self.state.epoch}
        if answer.seen == epochs:
            self.state = settled(self.state)
            return
        self.finding = self._context.unsettled(self.steps[-1].request, answer, epochs)

    @property
    def _context(self) -> WalkContext:
        return WalkContext(rules=self.rules, state=self.state, changed=self.changed)


def step(walk: Walk, move: Move, answerer: Answerer) -> None:
    """Make one move, if it means something in the current state."""
    request = walk.resolve(move)
    if request is None:
        return
    if move.send == "hold":
        answerer.hold(move, request)
        walk.keep(move, request)
        return
    if walk.state.settling and not (move.hurried and _may_hurry(walk, request)):
        walk.settle(answerer.settle())
        if walk.finding:
            return
        request = walk.resolve(move) or request
    if request.kind not in (RequestKind.LOOK, RequestKind.EXPIRE):  # they have no bytes that could be sent again
        walk.frames.setdefault(move.number, request)
    answer = answerer.ask(move, request)
    walk.take(move, request, answer)
    if walk.finding is None and walk.state.settling and answer.code in BUSY:
        _again(walk, move, request, answerer)


def _again(walk: Walk, move: Move, request: ModelRequest, answerer: Answerer) -> None:
    """Send a request again, with the same bytes, when the transaction that it had to wait for is complete."""
    walk.settle(answerer.settle())
    if walk.finding is None:
        walk.take(move, request, answerer.ask(move, request))


def _may_hurry(walk: Walk, request: ModelRequest) -> bool:
    """Whether the model knows the allowed answers while markers are being written.

    A leader that does not have its marker yet takes batches of the transaction that ends. That is correct, because they
    belong to that transaction, but the model cannot know which ones it takes.
    """
    if request.kind in (RequestKind.PRODUCE, RequestKind.COMMIT_OFFSET):
        return walk.rules.tv2 and request.epoch == walk.state.epoch and not request.foreign
    return request.kind not in (RequestKind.LOOK, RequestKind.EXPIRE)


def _fits(expected: ModelAnswer, answer: ModelAnswer) -> bool:
    if answer.trouble or answer.code != expected.code:
        return False
    if expected.seen is not None:
        return answer.seen == expected.seen
    wanted = [(expected.epoch, answer.epoch), (expected.offset, answer.offset)]
    return all(one is None or one == other for one, other in wanted)


Deviation = Callable[[ModelState, ModelRequest, AllowedOutcome], AllowedOutcome | None]


class ModelBroker:
    """Answers as the model expects, except where a deviation changes the outcome; no broker is needed."""

    def __init__(self, rules: Rules, deviation: Deviation | None = None) -> None:
        self.rules = rules
        self.state = ModelState()
        self._deviation = deviation
        self._held: dict[int, ModelRequest] = {}

    def ask(self, move: Move, request: ModelRequest) -> ModelAnswer:
        """The expected outcome, or the deviating one."""
        outcome = allowed(self.rules, self.state, request)[0]
        if request.kind is RequestKind.LOOK:
            outcome = AllowedOutcome(answer=ModelAnswer(seen=visible(self.state)), after=self.state)
        other = self._deviation(self.state, request, outcome) if self._deviation else None
        outcome = other or outcome
        self.state = outcome.after
        del move
        return outcome.answer

    def hold(self, move: Move, request: ModelRequest) -> None:
        """Keep nothing: requests are values."""

    def settle(self) -> ModelAnswer:
        """Complete the transaction."""
        self.state = settled(self.state)
        return ModelAnswer(seen={"state": str(self.state.phase), "epoch": self.state.epoch})
