"""Records what others do to a cluster of the user, while a scenario runs: each change that the metadata shows.

A broker that leaves and comes back is one entry of the history, which lasts until it is back. A leader that moved, a
new active controller, a new feature level and a new release of a broker are entries of a moment. All are entries of
faults, after those of the schedule, so that the timeline shows them next to the operations of clients.

No request tells the release of a broker. Its line is known from the highest level of `metadata.version` that it supports
(KIP-584). Limit: releases of one line, such as 4.3.0 and 4.3.1, look the same.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chaos.cluster import BrokerId, ClusterView
from fixtures.closing import Closing
from fixtures.clusters.errors import ClusterError
from verification.vocabulary.history import FaultRecord

#: As often as the sampler looks: twice a second dates a change well enough.
EVERY_S = 0.5
#: A look is three requests with a deadline of 3 s each, and one of 1 s to each broker.
_LAST_LOOK_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLook:
    """The cluster at one moment: its roles, its finalized feature levels, and the release of each broker that answers."""

    view: ClusterView
    levels: Mapping[str, int] = field(default_factory=dict)
    releases: Mapping[BrokerId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterMemory:
    """The brokers that were seen so far, and the release that each had last. Each window hands this to the next.

    A broker may leave in one window and come back in the next, with another release.
    """

    brokers: set[BrokerId] = field(default_factory=set)
    releases: dict[BrokerId, str] = field(default_factory=dict)


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
        memory: ClusterMemory,
    ) -> None:
        self._look, self._record, self._tell, self._names = look, record, tell, names
        self._step = first_step
        self._memory = memory
        self._gone: dict[int, int] = {}
        self._releases = dict(memory.releases)
        self._last: ClusterLook | None = None
        self.began_ns = time.monotonic_ns()
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
            if self._last is None:
                self._begin(now)
            else:
                self._compare(self._last, now)
            self._compare_releases(now)
            self._memory.brokers.update(now.view.alive)
            self._last = now

    @property
    def summary(self) -> str:
        """The releases of brokers, the brokers that are gone, and how many partitions each leads, for a live line."""
        gone = sorted(self._gone)
        releases = by_release({broker: each for broker, each in self._releases.items() if broker not in gone})
        led = Counter(each.leader for each in self._last.view.partitions.values()) if self._last else Counter()
        leaders = ", ".join(f"{_leader(broker)}: {led[broker]}" for broker in sorted(led, key=lambda each: each or 0))
        shown = (
            releases,
            f"gone: {', '.join(map(str, gone))}" if gone else "",
            f"leaders {leaders}" if leaders else "",
        )
        return " │ ".join(filter(None, shown))

    def _begin(self, now: ClusterLook) -> None:
        """The brokers that had left before."""
        self._gone.update(dict.fromkeys(self._memory.brokers - now.view.alive, now.view.taken_ns))

    def _compare_releases(self, now: ClusterLook) -> None:
        """A broker that does not answer has the release that it had."""
        for broker, release in sorted(now.releases.items()):
            before = self._releases.get(broker, release)
            if before != release:
                self._moment("ReleaseChanged", f"broker {broker} changed from {before} to {release}", now.view.taken_ns)
        self._releases.update(now.releases)
        self._memory.releases.update(now.releases)

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


def by_release(releases: Mapping[BrokerId, str]) -> str:
    """The brokers of each release, for instance `Kafka 4.2: 1, 3; Kafka 4.3: 2`."""
    brokers: dict[str, list[str]] = {}
    for broker, release in sorted(releases.items()):
        brokers.setdefault(release, []).append(str(broker))
    return "; ".join(f"{release}: {', '.join(each)}" for release, each in sorted(brokers.items()))


def _leader(broker: int | None) -> str:
    return "none" if broker is None else str(broker)
