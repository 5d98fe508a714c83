"""Frames between the brokers of a stage: held, lost, or answered in somebody's place.

What brokers tell each other about transactions travels on links between them: a coordinator's markers to the leaders
(WriteTxnMarkers), a leader's question whether a partition was added back to the coordinator (AddPartitionsToTxn v4+), a
replica's Fetch. While a transaction's markers are held it provably stands in Prepare, for as long as a script needs.

Only the links that are named are led through frame-aware ones; this and its end close their connections, and brokers
connect again at once. A broker speaks to itself on no link, so a script places coordinator and leaders apart. Links of
containers cannot be led through this process, and clusters with ZooKeeper have none: there the ground is missing, and
such a case is inconclusive, because it is this harness that cannot try what the release is to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from chaos.cluster import BrokerId, Link
from chaos.frames import Action, FrameFilter, FrameLinks, MatchedFrame, Rule
from fixtures.clusters.local.cluster import LocalCluster
from runner.protocol.toolkit.context import CaseContext
from wire.codes import code_name

#: A coordinator sends markers within milliseconds, and again after it was interrupted; the rest is for busy machines.
MET_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tampered:
    """A rule in force and what it met."""

    rule: Rule
    relay: FrameLinks

    def met(self, what: str, *links: Link, within_s: float = MET_WITHIN_S) -> tuple[MatchedFrame, ...]:
        """Wait until a frame was met on each of these links. Raises InjectionError."""
        wanted = {str(link) for link in links}
        return self.rule.until(what, lambda seen: wanted <= {each.link for each in seen}, timeout_s=within_s)

    def released(self, *, within_s: float = MET_WITHIN_S) -> list[list[str]]:
        """Let go what was met so far, in order: the codes that each frame was answered with. Raises InjectionError.

        Brokers send one request at a time, so that an answer may bring the next one, which is held again: it is let go
        at the end, and is not waited for.
        """
        numbers = {each.number for each in self.rule.met}
        self.rule.release()
        seen = self.rule.until(
            "an answer",
            lambda met: all(each.answer is not None for each in met if each.number in numbers),
            timeout_s=within_s,
        )
        return [
            [code_name(code) for code in self.relay.reader.error_codes(each.api, each.version, each.answer or b"")]
            for each in seen
            if each.number in numbers
        ]


@contextmanager
def tampered(case: CaseContext, frames: FrameFilter, action: Action, *links: Link) -> Iterator[Tampered]:
    """Do something to the frames that travel on these links; what is held at the end is let go."""
    local = isinstance(case.cluster, LocalCluster)
    case.require("brokers are local processes with links, on which single requests can be held", local, True)
    assert isinstance(case.cluster, LocalCluster)
    mesh = case.cluster.links
    with ExitStack() as undo:
        relay = undo.enter_context(FrameLinks(case.client.definitions))
        rule = relay.add(frames, action)
        for link in links:
            at = relay.open(str(link), mesh.destination(link))
            undo.callback(mesh.direct, link)
            mesh.redirect(link, at)
        undo.callback(relay.remove, rule)
        yield Tampered(rule=rule, relay=relay)
        case.require("errors of the frame-aware links", relay.problems(), ())


def to(source: int, *targets: int) -> tuple[Link, ...]:
    """The links that one broker opens to others."""
    return tuple(Link(source=str(source), target=BrokerId(target)) for target in targets)


def into(target: int, *sources: int) -> tuple[Link, ...]:
    """The links that brokers open to one of them."""
    return tuple(Link(source=str(source), target=BrokerId(target)) for source in sources)
