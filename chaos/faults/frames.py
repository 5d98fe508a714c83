"""Tampered frames: single requests or responses are held, delayed, dropped, duplicated or answered by the harness.

A link can only be cut, slowed or muted as a whole. This fault puts a frame-aware link (`chaos.frames`) behind each of
its links. It does one thing to the frames that it selects, while all others pass. So a request can arrive after its
transaction is over, arrive twice, or lose its response. The connections of these links are closed when the fault strikes
and when it heals, because Toxiproxy cannot move them; clients connect again.

The proof is the number and kind of the frames that were met, on which link and since when. For a duplicated frame an
answer is needed, too: a copy that a broker did not read has tested nothing.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from chaos.arena import Arena
from chaos.cluster import Link
from chaos.errors import InjectionError
from chaos.faults.fault import Injection
from chaos.frames import Duplicate, FrameAction, FrameFilter, FrameLinks, Rule
from chaos.frames.actions import flaw
from chaos.link_targets import LinkTarget
from wire.errors import WireError


@dataclass(frozen=True, slots=True, kw_only=True)
class TamperFrames:
    """Do `action` to the `frames` that travel on the links of `on`.

    The partition of the selector has the scenario's topic name, or the real one (`__transaction_state`). `producer` is
    the position of a transactional id among those of the workload; the selector then gets that id.
    """

    on: LinkTarget
    frames: FrameFilter
    action: FrameAction
    producer: int | None = None

    def describe(self) -> str:
        """The fault and its target in words."""
        whose = "" if self.producer is None else f" of producer {self.producer}"
        return f"{self.frames.describe()}{whose} {self.action.verb}, {self.on.describe()}"

    def futility(self) -> str | None:
        """A selector or action that can do nothing."""
        if self.producer is not None and self.frames.transactional_id is not None:
            return "a producer and a transactional id are given; one of them is enough"
        return flaw(self.frames, self.action)

    def inject(self, arena: Arena) -> Injection:
        """Open a frame-aware link for each link, add the rule, and then lead the links there."""
        frames, links = self._resolved(arena), self.on.resolve(arena)
        with ExitStack() as undo:
            relay, rule = lead_through(arena, undo, links, frames, self.action)
            kept = undo.pop_all()
        return Injection(target=_names(links), confirm=lambda: _proof(relay, rule), heal=kept.close)

    def _resolved(self, arena: Arena) -> FrameFilter:
        frames = self.frames
        if frames.partition is not None and frames.partition.topic in arena.topics:
            frames = replace(frames, partition=arena.partition(frames.partition.topic, frames.partition.partition))
        if self.producer is not None:
            frames = replace(frames, transactional_id=arena.transactional_id(self.producer))
        return frames


def lead_through(
    arena: Arena, undo: ExitStack, links: tuple[Link, ...], frames: FrameFilter, action: FrameAction
) -> tuple[FrameLinks, Rule]:
    """Lead links through frame-aware ones with one rule; `undo` releases held frames and leads the links back.

    Raises InjectionError without message definitions, and where a link cannot be redirected.
    """
    if arena.definitions is None:
        raise InjectionError("frames cannot be read: this run has no message definitions")
    relay = FrameLinks(arena.definitions, topic_ids=arena.topic_ids)
    undo.callback(relay.close)
    rule = relay.add(frames, action)
    mesh = arena.cluster.links
    for link in links:
        at = relay.open(str(link), mesh.destination(link))
        undo.callback(mesh.direct, link)
        mesh.redirect(link, at)
    # Released before the links lead back: held frames then leave on the connections that they came on.
    undo.callback(relay.remove, rule)
    return relay, rule


def _names(links: tuple[Link, ...]) -> str:
    return ", ".join(str(link) for link in links)


def _proof(relay: FrameLinks, rule: Rule) -> str | None:
    """The frames that were met, once they prove something."""
    if not rule.count:
        return None
    if not isinstance(rule.action, Duplicate):
        return rule.describe()
    answers = [(met, copy.answer) for met in rule.met for copy in met.copies if copy.answer is not None]
    if not answers:
        return None
    met, answer = answers[0]
    try:
        said = f"error codes {relay.reader.error_codes(met.api, met.version, answer)}"
    except WireError:
        said = f"{len(answer)} bytes"
    return f"{rule.describe()}; a copy was answered: {said}"
