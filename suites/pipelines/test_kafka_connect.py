"""Kafka Connect with a source connector, exactly-once support on and off: MirrorMaker 2 within one cluster.

Two distributed workers (`fixtures/pipelines/connect/SourceWorker.java`) share the two tasks of a MirrorSourceConnector. With
exactly-once support (KIP-618) each task writes records and its position in one transaction, and the leader of the group
fences the tasks of before whenever it starts new ones.
"""

from __future__ import annotations

from fixtures.pipelines.connect.command import CONNECT
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    BROKEN_FLOORS,
    PIPELINE_CLUSTER,
    PIPELINE_FLOORS,
    STRUCK,
    RunScenario,
    convict,
    nightly,
    requirement,
)
from suites.pipelines.attacks import BROKERS_CRASH, KILLS, PARTITIONS, PAUSED

NEWEST = "4.3.1"


def mirror(support: str, *, commit_ms: int) -> PipelineWorkload:
    """Two workers with this exactly-once support."""
    pipeline = Pipeline(
        name=f"kafka-connect-{NEWEST}-exactly-once-{support}",
        command=(f"{{connect-runtime {NEWEST}}}", "mirror.properties"),
        directory=CONNECT.directory,
        environment={"ONCEPROOF_EXACTLY_ONCE": support, "ONCEPROOF_COMMIT_MS": str(commit_ms)},
        position="connect",
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


EXACTLY_ONCE = mirror("enabled", commit_ms=200)


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_connect_exactly_once(run: RunScenario) -> None:
    """A source connector with exactly-once support copies each input exactly once, however often a worker is killed."""
    run(cluster=PIPELINE_CLUSTER, workload=EXACTLY_ONCE, schedule=KILLS, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-03", "GRP-19", "COORD-04")
def test_connect_while_brokers_crash(run: RunScenario) -> None:
    """A source connector with exactly-once support copies each input exactly once while brokers crash."""
    run(cluster=PIPELINE_CLUSTER, workload=EXACTLY_ONCE, schedule=BROKERS_CRASH, floors=BROKEN_FLOORS)


@nightly
@requirement("GRP-04", "GRP-19", "FENCE-02")
def test_connect_paused(run: RunScenario) -> None:
    """A Connect worker that comes back after others took its tasks commits nothing that they copied."""
    run(cluster=PIPELINE_CLUSTER, workload=EXACTLY_ONCE, schedule=PAUSED, floors=PIPELINE_FLOORS)


@convict("duplicate")
def test_connect_without_exactly_once(run: RunScenario) -> None:
    """A source connector without exactly-once support copies inputs again when a worker is killed between two flushes."""
    run(cluster=PIPELINE_CLUSTER, workload=mirror("disabled", commit_ms=2000), schedule=KILLS, floors=STRUCK)
