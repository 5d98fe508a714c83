"""Which scenarios can be run on a cluster of the user, and what a run leaves there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.clients import SyncPoint
from chaos.cluster import Site
from chaos.faults.brokers import CrashBroker, PauseBroker
from chaos.faults.clients import KillClient
from chaos.faults.compound import IsolateThenCrashLeader
from chaos.faults.fault import Fault
from chaos.faults.frames import TamperFrames
from chaos.faults.network import CutFollowers, IsolateBrokers
from chaos.faults.sites import CutSite
from chaos.frames import Direction, Drop, FrameFilter
from chaos.link_targets import BetweenBrokers, FromSite
from chaos.schedule import Step
from chaos.targets import Controller, LeaderOf
from fixtures.clusters.given.broker_commands import BrokerCommands
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import OrderFanOut, PipelineWorkload, WorkloadPlan
from runner.scenarios.given_run import GivenScenarioRun, controller_hindrance, hindrance, strikes_controller
from runner.scenarios.scenario import THREE_BROKERS, ClusterMaker, Scenario
from wire.errors import BrokerError

LEADER = LeaderOf("billing-events", 0)
CRASH = BrokerCommands(commands={"crash": "x {broker}", "restart": "y {broker}"})
FAN_OUT = OrderFanOut(partitions=4)
RESPONSES = FrameFilter(api="EndTxn", direction=Direction.RESPONSE)


def scenario(*faults: Fault, cluster: ClusterMaker = THREE_BROKERS, workload: WorkloadPlan = FAN_OUT) -> Scenario:
    return Scenario(
        name="family/case",
        test_name="test_case",
        claim="A claim.",
        requirements=("TXN-25",),
        client="confluent",
        seed=1,
        cluster=cluster,
        workload=workload,
        schedule=tuple(Step(fault=each) for each in faults),
    )


def why(*faults: Fault, commands: BrokerCommands = CRASH, **subject: Any) -> str:
    return hindrance(scenario(*faults, **subject), "4.3.1", commands)


@pytest.mark.parametrize(
    "fault",
    [
        KillClient("producer", SyncPoint.BEFORE_COMMIT),
        CutSite(Site("app")),
        TamperFrames(on=FromSite(Site("app")), frames=RESPONSES, action=Drop()),
        CrashBroker(LEADER),
    ],
)
def test_faults_of_clients_of_their_network_and_by_commands_are_possible(fault: Fault) -> None:
    """The last one by a command of the user."""
    assert why(fault) == ""


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (PauseBroker(LEADER), "--faults has no command to pause a broker: pause (SIGSTOP) of the leader"),
        (
            IsolateBrokers(LEADER),
            "--faults has no command to cut a broker: the leader of billing-events-0 cut from all",
        ),
        (IsolateThenCrashLeader("billing-events", 0), "--faults has no command to cut a broker: leader of billing-"),
        (CutFollowers("billing-events", 0), "it needs links between the brokers"),
        (
            TamperFrames(on=BetweenBrokers(LEADER, LEADER), frames=RESPONSES, action=Drop()),
            "it needs links between the brokers",
        ),
    ],
)
def test_other_faults_are_not_and_the_reason_is_named(fault: Fault, said: str) -> None:
    """Also if it is the second one."""
    assert said in why(KillClient("producer", SyncPoint.BEFORE_COMMIT), fault)


@pytest.mark.parametrize(
    ("controller", "said"),
    [
        (2, ""),
        (4, "the active controller is node 4, which is no broker"),
        (None, "this principal may not know the active controller"),
    ],
)
def test_commands_strike_a_controller_only_if_it_is_a_broker(controller: int | None, said: str) -> None:
    """They are of brokers: another node would be struck by a command that was not written for it."""
    cluster: Any = SimpleNamespace(brokers=(1, 2, 3), view=lambda: SimpleNamespace(controller=controller))
    assert controller_hindrance(cluster) == said
    struck, other = (scenario(CrashBroker(each)) for each in (Controller(), LEADER))
    assert strikes_controller(struck)
    assert not strikes_controller(other)


def test_a_crash_needs_its_command() -> None:
    """Without `--faults` no broker is touched."""
    assert "--faults has no command to crash a broker" in why(CrashBroker(LEADER), commands=BrokerCommands())


def test_a_broker_is_cut_off_by_its_command() -> None:
    """One that also crashes needs both commands."""
    cut = BrokerCommands(commands={"cut": "x {broker}", "mend": "y {broker}"})
    assert why(IsolateBrokers(LEADER), commands=cut) == ""
    assert "no command to crash a broker" in why(IsolateThenCrashLeader("billing-events", 0), commands=cut)


def test_a_pipeline_across_two_clusters_is_not_possible() -> None:
    """No second cluster is started next to that of a user."""
    pipeline = Pipeline(name="two", command=("two",), directory=Path(), peer=True)
    assert why(workload=PipelineWorkload(pipeline=pipeline)) == "it needs a second cluster"


def test_brokers_with_other_settings_are_named() -> None:
    """Those of a user's cluster are never changed."""
    from functools import partial

    special = partial(THREE_BROKERS, broker_settings={"transaction.max.timeout.ms": "5000"})
    assert why(cluster=special) == "it needs brokers with transaction.max.timeout.ms=5000"


class Refusing:
    """A cluster where one topic is gone, another one may not be deleted, and a group has a member."""

    def delete_topics(self, names: list[str]) -> None:
        raise BrokerError(3 if names == ["ours-a"] else 29, "DeleteTopics")

    def delete_groups(self, names: list[str]) -> None:
        raise BrokerError(68, f"DeleteGroups of {names}")


class Removing(GivenScenarioRun):
    """A run on that cluster, without one."""

    named = "ours"

    def __init__(self, said: list[str]) -> None:
        self._quiescence = SimpleNamespace(client=Refusing())  # type: ignore[assignment]
        self.scenario = SimpleNamespace(workload=SimpleNamespace(group="{}-copiers".format))  # type: ignore[assignment]
        self.lane = SimpleNamespace(console=SimpleNamespace(detail=said.append))  # type: ignore[assignment]

    def topics(self) -> Any:
        """Two."""
        return [SimpleNamespace(name="ours-a"), SimpleNamespace(name="ours-b")]


def test_names_that_a_run_leaves_behind_are_shown() -> None:
    """A topic that is gone already was removed before."""
    said: list[str] = []
    Removing(said).clear()
    assert [each.partition(" is left on your cluster")[0] for each in said] == ["topic ours-b", "group ours-copiers"]
