"""Tampers with frames between brokers: holds them, drops them, or answers them in place of the target.

Requests between brokers about transactions travel on links:

- WriteTxnMarkers: the markers of a coordinator to the leaders
- AddPartitionsToTxn v4+: the question of a leader to the coordinator whether a partition was added
- Fetch of a replica

While the markers of a transaction are held, it provably stays in Prepare.

Only the named links are led through frame-aware links. This closes their connections, at the begin and at the end, and
brokers connect again at once. A broker has no link to itself, so a script places coordinator and leaders apart.

Limit: links of containers cannot be led through this process, and clusters with ZooKeeper have no links. There a
precondition does not hold and the case is INCONCLUSIVE, because the harness cannot try the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from chaos.cluster import BrokerId, Link
from chaos.frames import FrameAction, FrameFilter, FrameLinks, MatchedFrame, Rule
from fixtures.clusters.local.cluster import LocalCluster
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.local_processes import need_local_processes
from wire.codes import code_name
from wire.schema import Body

#: A coordinator sends markers within milliseconds, and again after an interruption; the rest is for busy machines.
MET_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tampered:
    """A rule in force, and the frames that it matched."""

    rule: Rule
    relay: FrameLinks

    def met(self, what: str, *links: Link, within_s: float = MET_WITHIN_S) -> tuple[MatchedFrame, ...]:
        """Wait until a frame was matched on each of these links. Raises InjectionError."""
        wanted = {str(link) for link in links}
        return self.rule.until(what, lambda seen: wanted <= {each.link for each in seen}, timeout_s=within_s)

    def bodies(self) -> list[Body]:
        """The bodies of the requests matched so far."""
        return [self.relay.reader.request(each.request).body() for each in self.rule.met]

    def released(self, *, within_s: float = MET_WITHIN_S) -> list[list[str]]:
        """Release the frames matched so far, in order; returns the codes in each answer. Raises InjectionError.

        Brokers send one request at a time, so an answer may bring the next request, which is held again. It is released
        at the end, without waiting for its answer.
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
def tampered(case: CaseContext, frames: FrameFilter, action: FrameAction, *links: Link) -> Iterator[Tampered]:
    """Apply an action to the frames on these links; frames that are held at the end are released."""
    need_local_processes(case, "single requests are held on links of this machine")
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
