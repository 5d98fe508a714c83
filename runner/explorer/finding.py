"""What is wrong with an answer, in words that are the same for every walk in which it is wrong.

A signature says how a request stands to the state, in which state, and what was told: no ids, and no numbers but codes.
A look shows what somebody else's request has done, so the signature of a look ends with the last request that changed
the model's state, and its answer; two defects that hide the same data by different requests have two signatures.
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
    """What is wrong with an answer."""

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
    """Where a walk stands when it is answered: `changed` is the last change of the state, in words."""

    rules: Rules
    state: ModelState
    changed: str

    def unlawful(
        self, request: ModelRequest, answer: ModelAnswer, outcomes: tuple[AllowedOutcome, ...], *, owners: bool
    ) -> WalkFinding:
        """An answer that none of the outcomes allows; `owners` says that the owner asked, in its own name."""
        expected = outcomes[0].answer
        signature = (
            f"{self.rules.generation} {self.state.phase}: {what(request, self.state)} -> {_told(answer, expected)}"
        )
        if request.kind is RequestKind.LOOK and self.changed:
            signature += f" after {self.changed}"
        lawful = (each.answer for each in outcomes if not each.known)
        return WalkFinding(
            nature=_nature(request, answer, expected, owners=owners),
            signature=signature + self._taint(),
            observed=_shown(answer),
            expected=", ".join(dict.fromkeys(map(_shown, lawful))),
        )

    def unsettled(self, last: ModelRequest, answer: ModelAnswer, expected: dict[str, object]) -> WalkFinding:
        """The coordinator's word after a transaction is to be complete, and is not, or not as it was to be."""
        told = _refused(answer) or (answer.seen or {}).get("state")
        nature = _failed(answer)
        if nature is None:
            nature = Nature.STUCK if str(told).startswith(("Prepare", "Ongoing")) else Nature.VISIBLE
        signature = f"{self.rules.generation}: after {what(last, self.state)} the coordinator says {told}"
        return WalkFinding(
            nature=nature, signature=signature + self._taint(), observed=_shown(answer), expected=f"{expected}"
        )

    def _taint(self) -> str:
        return f" after {self.state.tainted}" if self.state.tainted else ""


def _failed(answer: ModelAnswer) -> Nature | None:
    """What is wrong with an answer whatever was asked, None when that depends."""
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
    """Why a look saw nothing, empty when it saw something."""
    return answer.trouble or (f"{code_name(answer.code)} to {answer.api}" if answer.api else "")


def _told(answer: ModelAnswer, expected: ModelAnswer) -> str:
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
    """A request by how it stands to the state, without numbers."""
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
