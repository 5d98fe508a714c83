"""Findings of walks and their signatures, which are the same for every walk that shows the same wrong answer.

A signature names the request in relation to the state, the state, and the answer. It has no ids, and no numbers but codes.
A look shows the effect of an earlier request. So the signature of a look ends with the last request that changed the
model's state, and its answer. Two defects that hide the same data by different requests have two signatures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from verification.specification.coordinator import BUSY
from verification.specification.state import (
    NO_EPOCH,
    AllowedOutcome,
    ModelAnswer,
    ModelRequest,
    ModelState,
    RequestKind,
    Rules,
    TransactionPhase,
)
from wire.codes import ErrorCode as Code
from wire.codes import code_name


class Nature(StrEnum):
    """The ways in which an answer can be wrong."""

    OUTSIDE = "an answer outside the allowed set"
    HARMED = "a lawful request of the owner refused"
    STUCK = "a transaction that does not end"
    SERVER = "UNKNOWN_SERVER_ERROR"
    VISIBLE = "something visible that must not be"
    SILENT = "no answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkFinding:
    """The first answer that the model does not allow; `signature` has no ids and no numbers but codes."""

    nature: Nature
    signature: str
    observed: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkContext:
    """The state of a walk before an answer; `changed` is the last request that changed the state, in words."""

    rules: Rules
    state: ModelState
    changed: str

    def unlawful(
        self, request: ModelRequest, answer: ModelAnswer, outcomes: tuple[AllowedOutcome, ...], *, owners: bool
    ) -> WalkFinding:
        """The finding for an answer that no outcome allows; `owners` says that the owner asked, in its own name."""
        expected = outcomes[0].answer
        asked, differs = what(request, self.state), _difference(answer, expected)
        signature = f"{self.rules.generation} {self.state.phase}: {asked} -> {differs}"
        if request.kind is RequestKind.LOOK and self.changed:
            signature += f" after {self.changed}"
        correct = (each.answer for each in outcomes if not each.known)
        return WalkFinding(
            nature=_nature(request, answer, expected, owners=owners),
            signature=signature + self._taint(),
            observed=_shown(answer),
            expected=", ".join(dict.fromkeys(map(_shown, correct))),
        )

    def unsettled(self, last: ModelRequest, answer: ModelAnswer, expected: dict[str, object]) -> WalkFinding:
        """The finding for a transaction that did not complete, or completed in another state than expected."""
        said = _refused(answer) or (answer.seen or {}).get("state")
        nature = _failed(answer)
        if nature is None:
            nature = Nature.STUCK if str(said).startswith(("Prepare", "Ongoing")) else Nature.VISIBLE
        signature = f"{self.rules.generation}: after {what(last, self.state)} the coordinator says {said}"
        return WalkFinding(
            nature=nature, signature=signature + self._taint(), observed=_shown(answer), expected=f"{expected}"
        )

    def _taint(self) -> str:
        return f" after {self.state.tainted}" if self.state.tainted else ""


def _failed(answer: ModelAnswer) -> Nature | None:
    """The nature of an answer that is wrong for every request; None when it depends on the request."""
    if answer.trouble:
        return Nature.SILENT
    if answer.code == Code.UNKNOWN_SERVER_ERROR:
        return Nature.SERVER
    return Nature.OUTSIDE if answer.api else None


def _nature(request: ModelRequest, answer: ModelAnswer, expected: ModelAnswer, *, owners: bool) -> Nature:
    failed = _failed(answer)
    if failed is not None:
        return failed
    if request.kind is RequestKind.LOOK:
        return Nature.VISIBLE
    if request.kind is RequestKind.EXPIRE or (answer.code in BUSY and expected.code == 0):
        return Nature.STUCK
    return Nature.HARMED if owners and expected.code == 0 and answer.code != 0 else Nature.OUTSIDE


def _refused(answer: ModelAnswer) -> str:
    """The reason why a look saw nothing; empty when it saw something."""
    return answer.trouble or (f"{code_name(answer.code)} to {answer.api}" if answer.api else "")


def _difference(answer: ModelAnswer, expected: ModelAnswer) -> str:
    if _refused(answer):
        return _refused(answer)
    if expected.seen is not None:
        seen = answer.seen or {}
        different = {name.rstrip(" 01") for name in expected.seen if seen.get(name) != expected.seen[name]}
        return f"differs in {', '.join(sorted(different))}"
    if answer.code != expected.code:
        return code_name(answer.code)
    return f"{code_name(answer.code)} with another {'epoch' if answer.epoch != expected.epoch else 'offset'}"


def _shown(answer: ModelAnswer) -> str:
    if answer.seen is not None:
        return str(answer.seen)
    parts = [_refused(answer) or code_name(answer.code)]
    parts += [f"epoch {answer.epoch}"] if answer.epoch is not None else []
    parts += [f"offset {answer.offset}"] if answer.offset is not None else []
    return ", ".join(parts)


def what(request: ModelRequest, state: ModelState) -> str:
    """A request in relation to the state, without numbers."""
    if request.kind in (RequestKind.LOOK, RequestKind.EXPIRE):
        return str(request.kind)
    words = ["foreign id"] if request.foreign else []
    if request.kind is RequestKind.INIT and request.epoch == NO_EPOCH:
        words.append("fresh")
    elif state.phase is not TransactionPhase.ABSENT:
        words.append(_relation(request, state))
    if request.kind is RequestKind.PRODUCE:
        place = state.places[request.place]
        following = place.next_for(request.epoch)
        known = any(each.first == request.sequence for each in place.batches) and place.epoch == request.epoch
        words.append("again" if known else "next" if request.sequence == following else "out of order")
    if request.kind is RequestKind.END:
        words.append("commit" if request.commit else "abort")
    return f"{request.kind}({', '.join(words)})"


def _relation(request: ModelRequest, state: ModelState) -> str:
    if request.epoch == state.epoch:
        return "current epoch"
    if request.kind is RequestKind.INIT and request.epoch == state.last:
        return "last epoch"
    return "stale epoch" if request.epoch < state.epoch else "future epoch"
