"""Orders in a database and their events in a topic: dual writes, an outbox with its relay, and the receiver of the events.

The program is `fixtures/pipelines/outbox/outbox.py` on a Postgres server of the run. Each instance has a role, and is alone
in it. The judge has the rows of the database next to the records of the topics.
"""

from __future__ import annotations

from pathlib import Path

from chaos.faults.databases import CrashDatabase
from chaos.schedule import Step
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
from suites.pipelines.attacks import IN_A_TRANSACTION, IN_TURN, PARTITIONS, REDELIVERED, WORKED

DATABASE_CRASH = Step(fault=CrashDatabase(), after_s=2, hold_s=2)


def outbox(*roles: str, effects: str = "select input from orders", outputs: int = 1) -> PipelineWorkload:
    """One instance of the program in each of these roles."""
    pipeline = Pipeline(
        name="-".join(["outbox", *roles]),
        command=("{python}", "outbox.py", *roles),
        directory=Path(__file__).parents[2] / "fixtures" / "pipelines" / "outbox",
        instances=len(roles),
        outputs=outputs,
        effects=effects,
        pending="select count(*) from outbox where not sent",
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


def received(relay: str, receiver: str) -> PipelineWorkload:
    """The chain from the service to the effects of the receiver; the topic in between is its own.

    Instances are killed in this order: a kill of the service, whose work is one transaction, shows least.
    """
    return outbox(relay, receiver, "service", effects="select input from effects", outputs=0)


@nightly
@convict("offset-without-output")
def test_table_before_topic(run: RunScenario) -> None:
    """A service that sends events after its database transaction loses some when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=outbox("table-first"), schedule=(IN_TURN,) * 3, floors=WORKED)


@nightly
@convict("duplicate")
def test_topic_before_table(run: RunScenario) -> None:
    """A service that sends events before its database transaction sends some again when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=outbox("topic-first"), schedule=(IN_TURN,) * 3, floors=WORKED)


@convict("duplicate")
def test_polling_relay(run: RunScenario) -> None:
    """A relay that marks events once they are sent sends some again when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=outbox("service", "relay"), schedule=(IN_TURN,) * 4, floors=WORKED)


@requirement("GRP-03", "GRP-04", "GRP-19")
def test_transactional_relay(run: RunScenario) -> None:
    """A relay that has its position in the transaction of the events sends each once, however often it is killed."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=outbox("service", "transactional-relay"),
        schedule=(IN_A_TRANSACTION, IN_TURN, IN_A_TRANSACTION),
        floors=PIPELINE_FLOORS,
    )


@nightly
@requirement("GRP-03", "GRP-19")
def test_transactional_relay_while_the_database_crashes(run: RunScenario) -> None:
    """A service and a transactional relay go on with each order exactly once when Postgres crashes and recovers."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=outbox("service", "transactional-relay"),
        schedule=(DATABASE_CRASH, DATABASE_CRASH),
        floors=BROKEN_FLOORS,
    )


@nightly
@convict("duplicate")
def test_receiver(run: RunScenario) -> None:
    """A receiver that commits its offsets after its effects has effects twice."""
    run(cluster=PIPELINE_CLUSTER, workload=received("relay", "receiver"), schedule=(IN_TURN,) * 3, floors=WORKED)


@nightly
@requirement("GRP-03", "GRP-19")
def test_idempotent_receiver(run: RunScenario) -> None:
    """A receiver that writes ids with its effects has each effect once, behind a relay that sends events again."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=received("relay", "idempotent-receiver"),
        schedule=(*(IN_TURN,) * 3, DATABASE_CRASH),
        floors=REDELIVERED,
    )
