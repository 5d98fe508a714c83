"""A copier in Go, by the group transactions of franz-go: a third language, and a client of its own.

The copier is `fixtures/pipelines/go_copier/main.go`, and its manifest is an example for a pipeline of your own.
"""

from __future__ import annotations

from dataclasses import replace

from chaos.faults.pipelines import KillInstance
from chaos.schedule import Step
from fixtures.pipelines.manifest import GO_COPIER, load
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    APART_CLUSTER,
    PIPELINE_CLUSTER,
    PIPELINE_FLOORS,
    RunScenario,
    nightly,
    requirement,
)
from suites.pipelines.attacks import BROKERS_FAIL, NETWORK_FAILS, ONE_CUT_OFF, OUTPUT, PARTITIONS, PAUSED

COPIER = PipelineWorkload(
    partitions=PARTITIONS,
    pipeline=load(GO_COPIER / "pipeline.toml"),
)
KILLS = tuple(Step(fault=KillInstance(OUTPUT, PARTITIONS), after_s=2, hold_s=1) for _ in range(2))


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_go_copier_killed(run: RunScenario) -> None:
    """A copier with franz-go's group transactions copies each input exactly once, however often it is killed."""
    run(cluster=PIPELINE_CLUSTER, workload=COPIER, schedule=KILLS, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-04", "GRP-19")
def test_go_copier_paused(run: RunScenario) -> None:
    """A copier with franz-go that comes back after others took its partitions commits nothing that they copied."""
    run(cluster=PIPELINE_CLUSTER, workload=COPIER, schedule=PAUSED, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-04", "GRP-19")
def test_go_copier_cut_off_alone(run: RunScenario) -> None:
    """A copier with franz-go that is cut off alone commits nothing that the others copied meanwhile."""
    run(cluster=APART_CLUSTER, workload=replace(COPIER, apart=True), schedule=ONE_CUT_OFF, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-03", "GRP-19", "COORD-04", "TXN-25")
def test_go_copier_while_brokers_and_the_network_fail(run: RunScenario) -> None:
    """A copier with franz-go copies each input exactly once, though its network fails and brokers crash."""
    schedule = (*NETWORK_FAILS, *BROKERS_FAIL)
    run(cluster=PIPELINE_CLUSTER, workload=COPIER, schedule=schedule, floors=PIPELINE_FLOORS)
