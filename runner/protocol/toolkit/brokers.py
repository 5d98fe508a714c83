"""Takes brokers of the stage's cluster away and brings them back: crashed, stopped, paused, or cut off.

Each is a context: the broker is away inside it, and whatever happens there, the cluster is whole again behind it. Whole
means what the next case relies on: every process runs, every link is open, every replica is in sync, and coordinators
have loaded. Transactions may still be open, because a case that goes on decides them.

A broker that stands still or is gone makes the connections of before useless; they are closed at both ends of a context.
Cases that share their outages (`company.py`) go through one of them at the same time: the broker goes when all are there,
and comes back when all are done.
Looking goes on through the listener that no link lies in front of, so a broker that is cut off can still be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from chaos import cluster as chaos
from chaos.cluster import BrokerId
from fixtures.clusters.health import await_healthy
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.outage import OutageEvent
from wire.values import TopicPartition

#: A broker is back within 5 s on a quiet machine; recovery on a busy one takes several times that.
WHOLE_WITHIN_S = 60.0
#: A session of 3 s must end, and where the controller itself went, an election comes first (5 to 8 s in all).
ELECTED_WITHIN_S = 30.0


@contextmanager
def crashed(case: CaseContext, *brokers: int) -> Iterator[None]:
    """Killed with SIGKILL, and started again on their data at the end."""
    with _ended(case, "crash", brokers, case.cluster.crash):
        yield


@contextmanager
def stopped(case: CaseContext, *brokers: int) -> Iterator[None]:
    """Stopped cleanly, and started again on their data at the end."""
    with _ended(case, "stop", brokers, case.cluster.stop):
        yield


@contextmanager
def paused(case: CaseContext, broker: int) -> Iterator[None]:
    """Stopped in its tracks: connections stay open and nothing is answered."""
    case.cluster.pause(BrokerId(broker))
    case.close_connections()
    try:
        yield
    finally:
        case.cluster.resume(BrokerId(broker))
        whole(case)


@contextmanager
def isolated(case: CaseContext, broker: int) -> Iterator[None]:
    """Cut off from all other brokers, in both directions and on both planes; it runs on and can be asked."""
    links = case.cluster.links
    own = [each for each in links.links() if broker == each.target or each.source == str(broker)]
    case.require("there are links between brokers, which can be cut", bool(own), True)
    with _away(
        case, f"isolation of broker {broker}", partial(links.cut, *own), f"healing of broker {broker}", links.heal
    ):
        yield


def whole(case: CaseContext) -> None:
    """Wait until the cluster is as the next case must find it. Raises ClusterUnhealthyError."""
    await_healthy(case.cluster, WHOLE_WITHIN_S, idle=False)
    case.close_connections()


def files(case: CaseContext, broker: int, at: TopicPartition) -> Path:
    """The directory of a partition's replica; where brokers' disks cannot be reached the script ends, inconclusive."""
    path = case.cluster.directory / "data" / f"broker-{broker}" / str(at)
    case.require(f"the files of {at} on broker {broker} can be reached", path.is_dir(), True)
    return path


def snapshots(path: Path) -> list[Path]:
    """The snapshots of producers' state in a replica's directory, oldest first."""
    return sorted(path.glob("*.snapshot"))


def controller(case: CaseContext) -> int:
    """The active controller; there is one on a cluster that is whole."""
    found = case.cluster.view().controller
    case.require("there is an active controller", found is not None, True)
    assert found is not None
    return found


def spare(case: CaseContext) -> int:
    """The broker that goes where any one will do: the last that is not the controller, so that no election is held."""
    asked = controller(case)
    return max(each for each in case.brokers if each != asked)


def elected(case: CaseContext, at: TopicPartition, *, instead_of: int) -> int:
    """Wait until the brokers that are left have another leader for a partition; who it is.

    Asked of the cluster's witness and not of any broker: one that is cut off goes on believing in itself. Those that are
    left learn of it one after the other, and until then name one that cannot be reached any more.
    """
    place = chaos.TopicPartition(topic=at.topic, partition=at.partition)
    seen = case.poll_until(
        lambda: case.cluster.view().partitions[place].leader,
        lambda leader: leader not in {None, instead_of},
        within_s=ELECTED_WITHIN_S,
    )
    case.require(f"{at} has another leader", seen not in {None, instead_of}, True)
    for broker in sorted(case.cluster.responsive() - {BrokerId(instead_of)}):
        told = case.poll_until(
            partial(_leader_by, case, broker, at), lambda each: each not in {-1, instead_of}, within_s=ELECTED_WITHIN_S
        )
        case.require(f"broker {broker} knows it", told not in {-1, instead_of}, True)
    return int(seen)


def _leader_by(case: CaseContext, broker: int, at: TopicPartition) -> int:
    """Whom a broker names as a partition's leader; -1 for nobody."""
    body = {"Topics": [{"Name": at.topic}], "AllowAutoTopicCreation": False}
    partitions = case.client.call("Metadata", body, broker=broker)["Topics"][0]["Partitions"]
    return next((int(each["LeaderId"]) for each in partitions if each["PartitionIndex"] == at.partition), -1)


@contextmanager
def _ended(case: CaseContext, verb: str, brokers: Sequence[int], leave: Callable[[BrokerId], None]) -> Iterator[None]:
    names = ", ".join(map(str, brokers))

    def go() -> None:
        for broker in brokers:
            leave(BrokerId(broker))

    def come_back() -> None:
        for broker in brokers:
            case.cluster.start(BrokerId(broker))

    with _away(case, f"{verb} of broker {names}", go, f"return of broker {names}", come_back):
        yield


@contextmanager
def _away(
    case: CaseContext, away: str, go: Callable[[], None], back: str, come_back: Callable[[], None]
) -> Iterator[None]:
    """An outage: both of its ends, by their names, are moments that cases may share."""

    def mend() -> None:
        come_back()
        await_healthy(case.cluster, WHOLE_WITHIN_S, idle=False)

    case.together(OutageEvent(away, go))
    case.close_connections()
    try:
        yield
    finally:
        case.together(OutageEvent(back, mend))
        case.close_connections()
