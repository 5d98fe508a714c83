"""MirrorMaker 2 between two clusters: there and back with exactly-once support on and off, and a group that fails over.

Two workers at home (`fixtures/pipelines/connect/SourceWorker.java`) have two source connectors: one copies the input to a
second cluster, the other one copies it back to the output. So a record that is lost or doubled on either way shows at home,
where everything is judged. A transaction cannot span two clusters. With exactly-once support (KIP-618) the first connector
has its positions in a topic of the second cluster, where its records are.

A record has another offset in a mirror, so the committed offsets of a group mean nothing there. The checkpoint connector
translates them to places that it knows, which are earlier. So a group that fails over reads records again, with exactly-once
support too: a limit of the method, and no defect. Its offsets at home stay where they were, so a group that comes back
reads everything since then again. Effects behind such a group must be idempotent.
"""

from __future__ import annotations

from pathlib import Path

from chaos.faults.pipelines import CrashPeer
from chaos.schedule import Step
from fixtures.pipelines.connect.command import CONNECT
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    BROKEN_FLOORS,
    PIPELINE_CLUSTER,
    PIPELINE_FLOORS,
    RunScenario,
    convict,
    nightly,
    requirement,
)
from suites.pipelines.attacks import BROKERS_FAIL, IN_TURN, KILLS, NETWORK_FAILS, PARTITIONS, PAUSED, WORKED

NEWEST = "4.3.1"


def between_clusters(support: str, *, commit_ms: int) -> PipelineWorkload:
    """Two workers with this exactly-once support, and a second cluster."""
    pipeline = Pipeline(
        name=f"mirror-maker-{NEWEST}-exactly-once-{support}",
        command=(f"{{connect-runtime {NEWEST}}}", "there.properties", "back.properties"),
        directory=CONNECT.directory,
        environment={"ONCEPROOF_EXACTLY_ONCE": support, "ONCEPROOF_COMMIT_MS": str(commit_ms)},
        position="connect",
        peer=True,
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


FAILOVER = PipelineWorkload(
    partitions=PARTITIONS,
    pipeline=Pipeline(
        name=f"mirror-maker-{NEWEST}-failover",
        command=(
            "{python}",
            "-m",
            "fixtures.pipelines.python_copier.failover",
            f"{{connect-runtime {NEWEST}}}",
            str(CONNECT.directory / "there.properties"),
            str(CONNECT.directory / "checkpoints.properties"),
        ),
        directory=Path(__file__).parents[2],
        environment={"ONCEPROOF_EXACTLY_ONCE": "enabled", "ONCEPROOF_COMMIT_MS": "200"},
        peer=True,
    ),
)


@nightly
@requirement("GRP-03", "GRP-04", "GRP-19")
def test_mirror_there_and_back(run: RunScenario) -> None:
    """MirrorMaker 2 with exactly-once support copies each input to another cluster and back once, though workers die."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=between_clusters("enabled", commit_ms=200),
        schedule=KILLS,
        floors=PIPELINE_FLOORS,
    )


@nightly
@requirement("GRP-04", "GRP-19", "FENCE-02")
def test_mirror_paused(run: RunScenario) -> None:
    """A worker of MirrorMaker 2 that comes back after others took its tasks commits nothing that they copied."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=between_clusters("enabled", commit_ms=200),
        schedule=PAUSED,
        floors=PIPELINE_FLOORS,
    )


@nightly
@requirement("GRP-03", "GRP-19", "COORD-04", "TXN-25")
def test_mirror_while_brokers_and_the_network_fail(run: RunScenario) -> None:
    """MirrorMaker 2 copies each input once, though its network at home fails and brokers crash there."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=between_clusters("enabled", commit_ms=200),
        schedule=(*NETWORK_FAILS, *BROKERS_FAIL),
        floors=PIPELINE_FLOORS,
    )


@nightly
@requirement("GRP-03", "GRP-19")
def test_mirror_while_the_other_cluster_crashes(run: RunScenario) -> None:
    """MirrorMaker 2 copies each input to another cluster and back once, though the only broker there crashes."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=between_clusters("enabled", commit_ms=200),
        # It crashes again when the first transactions after its recovery are open.
        # On 4.3.1 and 4.4.0 it may drop markers of an abort then (KB-16), and inputs come back twice (docs/frameworks.md).
        schedule=(Step(fault=CrashPeer(), after_s=2, hold_s=3), Step(fault=CrashPeer(), after_s=10, hold_s=3)),
        floors=BROKEN_FLOORS,
    )


@nightly
@requirement("GRP-03", "GRP-19", "COORD-13")
def test_mirror_while_the_other_cluster_is_down(run: RunScenario) -> None:
    """MirrorMaker 2 copies each input once there and back, though the only broker there is down past a timeout."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=between_clusters("enabled", commit_ms=200),
        # Transactions of a worker time out after 10 s. 4.3.1 and 4.4.0 drop markers of these aborts (KB-16), so inputs come
        # back twice (docs/frameworks.md).
        schedule=(Step(fault=CrashPeer(), after_s=2, hold_s=12),),
        floors=BROKEN_FLOORS,
    )


@nightly
@convict("duplicate")
def test_mirror_without_exactly_once(run: RunScenario) -> None:
    """MirrorMaker 2 without exactly-once support copies inputs again when a worker is killed between two flushes."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=between_clusters("disabled", commit_ms=2000),
        schedule=KILLS,
        floors=(*WORKED, *(each for each in PIPELINE_FLOORS if each.name == "drained")),
    )


@nightly
@convict("duplicate", "output-without-offset")
def test_group_that_fails_over(run: RunScenario) -> None:
    """A group that fails over to a mirror reads records again, and its offsets at home stay behind its outputs."""
    # The successor waits up to 15 s for translated offsets, then joins its group.
    run(
        cluster=PIPELINE_CLUSTER,
        workload=FAILOVER,
        schedule=(IN_TURN,),
        floors=WORKED,
        observe_s=30,
        copies_on=False,
    )
