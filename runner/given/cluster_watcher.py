"""Records what others do to a cluster of the user, while a scenario runs: each change that the metadata shows.

A broker that leaves and comes back is one entry of the history, from the one to the other. A leader that moved, a new
active controller and a new feature level are entries of a moment. They are entries of faults, after those of the
schedule, so that the timeline shows them next to the operations of clients.

Limit: no request tells the release of a broker. An upgrade shows as brokers that leave and come back, and as feature
levels that rise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chaos.cluster import ClusterView
from fixtures.closing import Closing
from fixtures.clusters.errors import ClusterError
from verification.vocabulary.history import FaultRecord

#: As often as the sampler looks: twice a second dates a change well enough.
EVERY_S = 0.5
#: A look is two requests, each with a deadline of 3 s.
_LAST_LOOK_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLook:
    """The cluster at one moment: its roles and its finalized feature levels."""

    view: ClusterView
    levels: Mapping[str, int] = field(default_factory=dict)


class ClusterWatcher(Closing):
    """A thread that looks at the cluster and records changes, until `close`.

    `look` raises ClusterError while no broker answers; `names` gives topics the names of the scenario.
    """

    def __init__(
        self,
        look: Callable[[], ClusterLook],
        record: Callable[[FaultRecord], None],
        tell: Callable[[str], None],
        *,
        first_step: int,
        names: Mapping[str, str],
    ) -> None:
        self._look, self._record, self._tell, self._names = look, record, tell, names
        self._step = first_step
        self._gone: dict[int, int] = {}
        self._last: ClusterLook | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster-watcher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and record the brokers that are still gone. May be called again."""
        if not self._ended.is_set():
            self._ended.set()
            self._thread.join(_LAST_LOOK_WITHIN_S)
            for broker, gone_ns in sorted(self._gone.items()):
                self._note("BrokerGone", f"broker {broker} left the cluster", began_ns=gone_ns, healed_ns=None)

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            try:
                now = self._look()
            except ClusterError:
                continue  # no broker answers, which the clients show
            if self._last is not None:
                self._compare(self._last, now)
            self._last = now

    def _compare(self, before: ClusterLook, now: ClusterLook) -> None:
        at_ns = now.view.taken_ns
        for broker in sorted(before.view.alive - now.view.alive):
            self._gone[broker] = at_ns
            self._tell(f"broker {broker} left the cluster")
        for broker in sorted((now.view.alive - before.view.alive) & self._gone.keys()):
            gone_ns = self._gone.pop(broker)
            proof = f"back after {(at_ns - gone_ns) / 1e9:.1f} s"
            self._tell(f"broker {broker} is {proof}")
            self._note(
                "BrokerGone", f"broker {broker} left the cluster", began_ns=gone_ns, healed_ns=at_ns, proof=proof
            )
        for at, seen in sorted(now.view.partitions.items()):
            was = before.view.partitions.get(at)
            if was is not None and was.leader != seen.leader:
                place = f"{self._names.get(at.topic, at.topic)}-{at.partition}"
                self._moment(
                    "LeaderMoved", f"leader of {place} moved {_leader(was.leader)} → {_leader(seen.leader)}", at_ns
                )
        if None not in (before.view.controller, now.view.controller) and before.view.controller != now.view.controller:
            moved = f"active controller moved {before.view.controller} → {now.view.controller}"
            self._moment("ControllerMoved", moved, at_ns)
        for name, level in sorted(now.levels.items()):
            if name in before.levels and before.levels[name] != level:
                changed = f"{name} changed from {before.levels[name]} to {level}"
                self._moment("LevelChanged", changed, at_ns, levels={name: level})

    def _moment(self, fault: str, text: str, at_ns: int, levels: dict[str, int] | None = None) -> None:
        self._tell(text)
        self._note(fault, text, began_ns=at_ns, healed_ns=at_ns, levels=levels)

    def _note(
        self,
        fault: str,
        text: str,
        *,
        began_ns: int,
        healed_ns: int | None,
        proof: str = "",
        levels: dict[str, int] | None = None,
    ) -> None:
        self._record(
            FaultRecord(
                step=self._step,
                fault=fault,
                description=text,
                target="the cluster",
                began_ns=began_ns,
                struck_ns=began_ns,
                applied_ns=began_ns,
                confirmed_ns=began_ns,
                proof=proof or "seen in the metadata",
                healed_ns=healed_ns,
                levels=levels or {},
            )
        )
        self._step += 1


def _leader(broker: int | None) -> str:
    return "none" if broker is None else str(broker)
