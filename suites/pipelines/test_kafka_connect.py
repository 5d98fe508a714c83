"""Kafka Connect with a source connector, exactly-once support on and off, and with a sink that writes rows.

Two distributed workers (`fixtures/pipelines/connect/SourceWorker.java`) share the two tasks of a connector. The source is
MirrorMaker 2's within one cluster. With exactly-once support (KIP-618) each of its tasks writes records and its position in
one transaction, and the leader of the group fences the tasks of before whenever it starts new ones. A transaction ends after
an interval, with each poll, or where the connector says so.

Connect delivers to a sink at least once, because it commits offsets some time after the rows are there.
"""

from __future__ import annotations

from dataclasses import replace

from fixtures.pipelines.connect.command import CONNECT
from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    APART_CLUSTER,
    BROKEN_FLOORS,
    PIPELINE_CLUSTER,
    PIPELINE_FLOORS,
    STRUCK,
    RunScenario,
    convict,
    nightly,
    requirement,
)
from suites.pipelines.attacks import (
    BROKERS_FAIL,
    IN_TURN,
    KILLS,
    NETWORK_FAILS,
    ONE_CUT_OFF,
    PARTITIONS,
    PAUSED,
    WORKED,
)

NEWEST = "4.3.1"


MIRROR, OWN_BOUNDARIES = "org.apache.kafka.connect.mirror.MirrorSourceConnector", "OwnBoundaries"
#: Where no output is nothing is observed, and no transaction of the pipeline is there to be struck. Limit: records that came
#: again and were left out are not counted: Connect commits no offset behind the last marker, so that the connector is
#: never seen at rest; that these kills bring some is shown by the sink without a key.
SINK_FLOORS = tuple(each for each in BROKEN_FLOORS if each.name != "observers_at_end")
#: As `KILLS`; the oldest worker in its turn.
SINK_KILLS = tuple(replace(IN_TURN, after_s=after_s) for after_s in (2, 14))


def mirror(
    support: str, *, commit_ms: int, boundary: str = "interval", connector: str = MIRROR, name: str = ""
) -> PipelineWorkload:
    """Two workers with this exactly-once support and these transaction boundaries."""
    pipeline = Pipeline(
        name=f"kafka-connect-{NEWEST}-{name or f'exactly-once-{support}'}",
        command=(f"{{connect-runtime {NEWEST}}}", "mirror.properties"),
        directory=CONNECT.directory,
        environment={
            "ONCEPROOF_EXACTLY_ONCE": support,
            "ONCEPROOF_COMMIT_MS": str(commit_ms),
            "ONCEPROOF_BOUNDARY": boundary,
            "ONCEPROOF_CONNECTOR": connector,
        },
        position="connect",
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


def sink(table: str, isolation: str = "read_committed") -> PipelineWorkload:
    """Two workers with a sink that writes to such a table, and offsets every two seconds."""
    pipeline = Pipeline(
        name=f"kafka-connect-{NEWEST}-sink-{table}-{isolation.replace('_', '-')}",
        command=(f"{{connect-runtime {NEWEST}}}", "table.properties"),
        directory=CONNECT.directory,
        environment={
            "ONCEPROOF_EXACTLY_ONCE": "disabled",
            "ONCEPROOF_COMMIT_MS": "2000",
            "ONCEPROOF_TABLE": table,
            "ONCEPROOF_ISOLATION": isolation,
        },
        outputs=0,
        effects="select input from orders",
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


EXACTLY_ONCE = mirror("enabled", commit_ms=200)


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_connect_exactly_once(run: RunScenario) -> None:
    """A source connector with exactly-once support copies each input exactly once, however often a worker is killed."""
    run(cluster=PIPELINE_CLUSTER, workload=EXACTLY_ONCE, schedule=KILLS, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-03", "GRP-04", "GRP-19")
def test_connect_boundary_poll(run: RunScenario) -> None:
    """A source connector whose transactions end with each poll copies each input exactly once, though workers are killed."""
    workload = mirror("enabled", commit_ms=200, boundary="poll", name="boundary-poll")
    run(cluster=PIPELINE_CLUSTER, workload=workload, schedule=KILLS, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-03", "GRP-04", "GRP-19")
def test_connect_boundary_connector(run: RunScenario) -> None:
    """A source connector that ends its transactions itself copies each input exactly once, though workers are killed."""
    workload = mirror(
        "enabled", commit_ms=200, boundary="connector", connector=OWN_BOUNDARIES, name="boundary-connector"
    )
    run(cluster=PIPELINE_CLUSTER, workload=workload, schedule=KILLS, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-03", "GRP-19", "COORD-04")
def test_connect_while_brokers_crash(run: RunScenario) -> None:
    """A source connector with exactly-once support copies each input exactly once while brokers crash."""
    run(cluster=PIPELINE_CLUSTER, workload=EXACTLY_ONCE, schedule=BROKERS_FAIL, floors=BROKEN_FLOORS)


@nightly
@requirement("GRP-03", "GRP-19", "TXN-25")
def test_connect_while_the_network_fails(run: RunScenario) -> None:
    """A source connector with exactly-once support copies each input exactly once, though its network fails."""
    run(cluster=PIPELINE_CLUSTER, workload=EXACTLY_ONCE, schedule=NETWORK_FAILS, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-04", "GRP-19", "FENCE-02")
def test_connect_paused(run: RunScenario) -> None:
    """A Connect worker that comes back after others took its tasks commits nothing that they copied."""
    run(cluster=PIPELINE_CLUSTER, workload=EXACTLY_ONCE, schedule=PAUSED, floors=PIPELINE_FLOORS)


@nightly
@requirement("GRP-04", "GRP-19", "FENCE-02")
def test_connect_worker_cut_off(run: RunScenario) -> None:
    """A Connect worker that is cut off alone commits nothing that the others copied meanwhile."""
    run(cluster=APART_CLUSTER, workload=replace(EXACTLY_ONCE, apart=True), schedule=ONE_CUT_OFF, floors=PIPELINE_FLOORS)


@convict("duplicate")
def test_connect_without_exactly_once(run: RunScenario) -> None:
    """A source connector without exactly-once support copies inputs again when a worker is killed between two flushes."""
    run(cluster=PIPELINE_CLUSTER, workload=mirror("disabled", commit_ms=2000), schedule=KILLS, floors=STRUCK)


@nightly
@requirement("GRP-03", "GRP-04")
def test_connect_sink_with_a_key(run: RunScenario) -> None:
    """A sink connector that writes rows with a unique key has each row once, however often a worker is killed."""
    run(cluster=PIPELINE_CLUSTER, workload=sink("unique"), schedule=SINK_KILLS, floors=SINK_FLOORS)


@nightly
@convict("duplicate")
def test_connect_sink(run: RunScenario) -> None:
    """A sink connector writes rows again when a worker is killed before Connect has committed their offsets."""
    run(cluster=PIPELINE_CLUSTER, workload=sink("plain"), schedule=SINK_KILLS, floors=WORKED)


@nightly
@convict("aborted-read")
def test_connect_sink_reading_uncommitted(run: RunScenario) -> None:
    """A sink connector that reads uncommitted writes rows of inputs whose transactions are aborted."""
    run(cluster=PIPELINE_CLUSTER, workload=sink("unique", "read_uncommitted"), floors=WORKED[:1], observe_s=12)
