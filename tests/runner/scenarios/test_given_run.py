"""Which scenarios can be run on a cluster of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.clients import SyncPoint
from chaos.cluster import Site
from chaos.faults.brokers import CrashBroker, PauseBroker
from chaos.faults.clients import KillClient
from chaos.faults.fault import Fault
from chaos.faults.frames import TamperFrames
from chaos.faults.network import IsolateBrokers
from chaos.faults.sites import CutSite
from chaos.frames import Direction, Drop, FrameFilter
from chaos.link_targets import BetweenBrokers, FromSite
from chaos.schedule import Step
from chaos.targets import LeaderOf
from fixtures.clusters.given.broker_commands import BrokerCommands
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import OrderFanOut, PipelineWorkload, WorkloadPlan
from runner.scenarios.given_run import hindrance
from runner.scenarios.scenario import THREE_BROKERS, ClusterMaker, Scenario

LEADER = LeaderOf("billing-events", 0)
CRASH = BrokerCommands(commands={"crash": "x {broker}", "restart": "y {broker}"})
FAN_OUT = OrderFanOut(partitions=4)
RESPONSES = FrameFilter(api="EndTxn", direction=Direction.RESPONSE)


def why(
    *faults: Fault,
    commands: BrokerCommands = CRASH,
    cluster: ClusterMaker = THREE_BROKERS,
    workload: WorkloadPlan = FAN_OUT,
) -> str:
    scenario = Scenario(
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
    return hindrance(scenario, "4.3.1", commands)


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
        (IsolateBrokers(LEADER), "it needs links between the brokers"),
        (
            TamperFrames(on=BetweenBrokers(LEADER, LEADER), frames=RESPONSES, action=Drop()),
            "it needs links between the brokers",
        ),
    ],
)
def test_other_faults_are_not_and_the_reason_is_named(fault: Fault, said: str) -> None:
    """Also if it is the second one."""
    assert said in why(KillClient("producer", SyncPoint.BEFORE_COMMIT), fault)


def test_a_crash_needs_its_command() -> None:
    """Without `--faults` no broker is touched."""
    assert "--faults has no command to crash a broker" in why(CrashBroker(LEADER), commands=BrokerCommands())


def test_a_pipeline_across_two_clusters_is_not_possible() -> None:
    """No second cluster is started next to that of a user."""
    pipeline = Pipeline(name="two", command=("two",), directory=Path(), peer=True)
    assert why(workload=PipelineWorkload(pipeline=pipeline)) == "it needs a second cluster"


def test_brokers_with_other_settings_are_named() -> None:
    """Those of a user's cluster are never changed."""
    from functools import partial

    special = partial(THREE_BROKERS, broker_settings={"transaction.max.timeout.ms": "5000"})
    assert why(cluster=special) == "it needs brokers with transaction.max.timeout.ms=5000"
