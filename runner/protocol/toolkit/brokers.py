"""Takes brokers of a case's cluster away and brings them back: crashed, stopped, paused, or cut off.

Each outage is a context manager: the broker is away inside it, and the cluster is whole again after it, also after an
exception. Whole means what the next case relies on: every process runs, every link is open, every replica is in sync,
and coordinators have loaded. Transactions may still be open, because a case that goes on decides them.

A broker that is paused or gone makes earlier connections useless. They are closed at both ends of the context.

Cases can share an outage (`shared_outages.py`): the broker goes when all of them wait, and comes back when all are done.

Inspection uses the listener that no link lies in front of, so a broker that is cut off can still be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from chaos.cluster import BrokerId
from chaos.no_links import NoLinks
from fixtures.clusters.given.cluster import GivenCluster
from fixtures.clusters.health import await_healthy
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.local_processes import need_local_processes
from runner.protocol.toolkit.outage import OutageEvent
from runner.protocol.toolkit.script_recorder import NotApplicableError
from wire.values import TopicPartition

#: A broker is back within 5 s on a quiet machine; recovery on a busy one takes several times that.
WHOLE_WITHIN_S = 60.0
#: A session of 3 s must end, and where the controller itself went, an election comes first (5 to 8 s in all).
ELECTED_WITHIN_S = 30.0


@contextmanager
def crashed(case: CaseContext, *brokers: int) -> Iterator[None]:
    """Kill brokers with SIGKILL, and start them again on their data at the end."""
    with _ended(case, "crash", brokers, case.cluster.crash):
        yield


@contextmanager
def stopped(case: CaseContext, *brokers: int) -> Iterator[None]:
    """Stop brokers cleanly, and start them again on their data at the end."""
    with _ended(case, "stop", brokers, case.cluster.stop):
        yield


@contextmanager
def paused(case: CaseContext, broker: int) -> Iterator[None]:
    """Pause a broker: its connections stay open and it answers nothing."""
    case.cluster.pause(BrokerId(broker))
    case.recording.outage(f"pause of broker {broker}")
    case.close_connections()
    try:
        yield
    finally:
        case.cluster.resume(BrokerId(broker))
        case.recording.outage(f"return of broker {broker}")
        whole(case)


@contextmanager
def isolated(case: CaseContext, broker: int) -> Iterator[None]:
    """Cut a broker off from all others, in both directions and on both planes; it runs on and can be asked."""
    links = case.cluster.links
    require_links(case)
    own = [each for each in links.links() if broker == each.target or each.source == str(broker)]
    case.require("there are links between brokers, which can be cut", bool(own), True)
    with _away(
        case, f"isolation of broker {broker}", partial(links.cut, *own), f"healing of broker {broker}", links.heal
    ):
        yield


def require_links(case: CaseContext) -> None:
    """Leave the case out where no links are between the brokers. Raises NotApplicableError."""
    if isinstance(case.cluster.links, NoLinks):
        raise NotApplicableError("there are no links between the brokers, which could be cut")


def whole(case: CaseContext) -> None:
    """Wait until the cluster is whole. Raises ClusterUnhealthyError."""
    await_healthy(case.cluster, WHOLE_WITHIN_S, idle=False)
    case.close_connections()


def files(case: CaseContext, broker: int, at: TopicPartition) -> Path:
    """The directory of a partition's replica; the case is left out where brokers run in containers."""
    need_local_processes(case, "files of brokers are read and changed")
    path = case.cluster.directory / "data" / f"broker-{broker}" / str(at)
    case.require(f"the files of {at} on broker {broker} can be reached", path.is_dir(), True)
    return path


def snapshots(path: Path) -> list[Path]:
    """The snapshots of producers' state in a replica's directory, oldest first."""
    return sorted(path.glob("*.snapshot"))


def controller(case: CaseContext) -> int:
    """The broker that is the active controller, which a whole cluster of ours has: cases leave it alone.

    On a cluster of the user controllers may be nodes of their own, or this principal may not know them. Then it is the first
    broker, which is as good as any: no broker is taken away there.
    """
    found = case.cluster.view().controller
    if isinstance(case.cluster, GivenCluster) and found not in case.brokers:
        return case.brokers[0]
    case.require("there is an active controller", found is not None, True)
    assert found is not None
    return found


def spare(case: CaseContext) -> int:
    """The broker to take where any one will do: the last that is not the controller, so that no election is held."""
    asked = controller(case)
    return max(each for each in case.brokers if each != asked)


def elected(case: CaseContext, at: TopicPartition, *, instead_of: int) -> int:
    """Wait until the remaining brokers have another leader for a partition; returns its id.

    The cluster's witness is asked first, because a broker that is cut off still takes itself for the leader. Then every
    remaining broker is asked: they learn of the new leader one after the other, and name the old one until then.
    """
    seen = case.poll_until(
        lambda: case.cluster.view().partitions[at].leader,
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
    """The leader of a partition as a broker names it; -1 for none."""
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
    """An outage, whose begin and end are events that cases may share."""

    def mend() -> None:
        come_back()
        await_healthy(case.cluster, WHOLE_WITHIN_S, idle=False)

    case.on_outage(OutageEvent(away, go))
    case.close_connections()
    try:
        yield
    finally:
        case.on_outage(OutageEvent(back, mend))
        case.close_connections()
