"""Describes a walk in words, for the console, the evidence and the page of findings."""

from __future__ import annotations

from collections.abc import Mapping

from runner.explorer.moves import INSTANCES, Send
from runner.explorer.walk import Walk, WalkStep
from verification.specification.state import NO_EPOCH, ModelRequest, RequestKind
from wire.codes import code_name


def lines(walk: Walk) -> list[str]:
    """One line per request, with its answer; the finding is the last one."""
    places: dict[int, int] = {}
    for number, each in enumerate(walk.steps, 1):
        places.setdefault(each.move.number, number)
    text = [_line(each, places) for each in walk.steps]
    if walk.finding is not None:
        text.append(f"{walk.finding.nature}: observed {walk.finding.observed}; allowed: {walk.finding.expected}")
    text += [f"afterwards {each}" for each in walk.aftermath]
    return text


def _line(step: WalkStep, places: Mapping[int, int]) -> str:
    move, request, answer = step.move, step.request, step.answer
    if move.kind is RequestKind.LOOK:
        return "everything is looked at"
    if move.kind is RequestKind.EXPIRE:
        return "the transaction times out"
    who = "the owner" if move.who < 0 else f"{'ABC'[move.who]}" if move.who < INSTANCES else "successor"
    what = f"{who}: {_request(request)}"
    if move.send is Send.HOLD:
        return f"{what}, made and kept for later"
    if move.send is Send.REPLAY:
        what += f", the bytes of {places[move.of]}, on another connection"
    shown = "no answer" if answer is None else answer.trouble or code_name(answer.code)
    if answer is not None and answer.epoch is not None:
        shown += f", epoch {answer.epoch}"
    if answer is not None and answer.offset is not None and answer.code == 0:
        shown += f", offset {answer.offset}"
    return f"{what} -> {shown}" + (f"  [{step.known}]" if step.known else "")


def _request(request: ModelRequest) -> str:
    words = ["foreign id"] if request.foreign else []
    if request.epoch != NO_EPOCH:
        words.append(f"epoch {request.epoch}")
    if request.kind is RequestKind.PRODUCE:
        words.append(f"partition {request.place}, sequence {request.sequence}, {len(request.values)} records")
    if request.kind is RequestKind.ADD:
        words.append(f"partition {request.place}")
    if request.kind is RequestKind.COMMIT_OFFSET:
        words.append(f"offset {request.offset}")
    if request.kind is RequestKind.END:
        words.append("commit" if request.commit else "abort")
    return f"{request.kind}({', '.join(words)})"
