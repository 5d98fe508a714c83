"""Workers of a share group (KIP-932), behind transactions: its records are handed out one by one and acknowledged.

The program is `fixtures/pipelines/share_group/ShareOrders.java`: it writes a row for each record, then acknowledges it. Any
member may get a record, and nothing promises an order. A record comes again when its acknowledgement is lost, so that a row
needs a key. The leader of a partition remembers which of its records were handed out, and a coordinator keeps that for the
next leader. The brokers hide records of aborted transactions, if the group asks for that; by default they do not.
"""

from __future__ import annotations

from pathlib import Path

from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    PIPELINE_CLUSTER,
    RunScenario,
    convict,
    nightly,
    requirement,
    share_groups,
)
from suites.pipelines.attacks import CUT_OFF, IN_TURN, INPUT_BROKERS_CRASH, PARTITIONS, REDELIVERED, WORKED

NEWEST = "4.3.1"


def workers(table: str, isolation: str = "read_committed", acknowledges: str = "last") -> PipelineWorkload:
    """Two workers that write to such a table, of a group with this isolation level.

    Most of their time lies between rows and acknowledgement: with 100 ms three kills met that once in two runs.
    """
    first = "-acknowledges-first" if acknowledges == "first" else ""
    pipeline = Pipeline(
        name=f"kafka-clients-{NEWEST}-share-group-{table}-{isolation.replace('_', '-')}{first}",
        command=(f"{{kafka-clients {NEWEST}}}",),
        directory=Path(__file__).parents[2],
        environment={
            "ONCEPROOF_ISOLATION": isolation,
            "ONCEPROOF_TABLE": table,
            "ONCEPROOF_ACKNOWLEDGES": acknowledges,
            "ONCEPROOF_PAUSE_MS": "400",
        },
        position="share",
        outputs=0,
        effects="select input from orders",
        deliveries="select sum(records) from deliveries",
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


@nightly
@share_groups
@requirement("SHARE-01")
def test_share_group_with_a_key(run: RunScenario) -> None:
    """A share group that writes rows with a unique key has each once, though workers die, are cut off, and brokers crash."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=workers("unique"),
        schedule=(IN_TURN, IN_TURN, *CUT_OFF, *INPUT_BROKERS_CRASH),
        floors=REDELIVERED,
    )


@nightly
@share_groups
@convict("duplicate")
def test_share_group(run: RunScenario) -> None:
    """A share group writes rows again when a worker is killed before it has acknowledged their records."""
    run(cluster=PIPELINE_CLUSTER, workload=workers("plain"), schedule=(IN_TURN,) * 3, floors=WORKED)


@nightly
@share_groups
@convict("offset-without-output")
def test_share_group_acknowledging_first(run: RunScenario) -> None:
    """A share group that acknowledges records before it writes their rows loses some when a worker is killed in between."""
    workload = workers("unique", acknowledges="first")
    run(cluster=PIPELINE_CLUSTER, workload=workload, schedule=(IN_TURN,) * 3, floors=WORKED)


@nightly
@share_groups
@convict("aborted-read")
def test_share_group_by_default(run: RunScenario) -> None:
    """A share group with the default isolation level, read_uncommitted, writes rows of inputs that are aborted."""
    workload = workers("unique", "read_uncommitted")
    run(cluster=PIPELINE_CLUSTER, workload=workload, floors=WORKED[:1], observe_s=12)
