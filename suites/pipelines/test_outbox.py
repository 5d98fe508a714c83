"""Orders in a database and their events in a topic: dual writes, an outbox with its relay, and the receiver of the events.

The program is `fixtures/pipelines/outbox/outbox.py` on a Postgres server of the run. Each instance has a role, and is alone
in it. The judge has the rows of the database next to the records of the topics. Instead of a relay of ours, Debezium
(`fixtures/pipelines/connect/outbox.properties`) reads the outbox from the write-ahead log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.faults.databases import CrashDatabase
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
from suites.pipelines.attacks import (
    BROKERS_FAIL,
    IN_A_TRANSACTION,
    IN_TURN,
    KILLS,
    NETWORK_FAILS,
    PARTITIONS,
    PAUSED,
    REDELIVERED,
    WORKED,
)
from verification.vocabulary.experiment import AT_LEAST_ONCE, EXACTLY_ONCE, Floor

#: The position of Debezium's slot is behind the last transaction of the service that it has delivered.
BEHIND_THE_LOG = (
    "select count(*) from positions where wal > (select min(confirmed_flush_lsn) from pg_replication_slots)"
)
NEWEST = "4.3.1"
#: At a load of 27 three kills met no service between its two writes, where it is for most of its time on a quiet machine.
STRIKES = 6
DATABASE_CRASH = Step(fault=CrashDatabase(), after_s=2, hold_s=2)
#: Everything around the instances, one after the other.
ALL_FAIL = (DATABASE_CRASH, DATABASE_CRASH, *NETWORK_FAILS, *BROKERS_FAIL)


def outbox(
    *roles: str,
    name: str = "",
    effects: str = "select input from orders",
    outputs: int = 1,
    pending: str = "select count(*) from outbox where not sent",
    deliveries: str = "",
    worker: tuple[str, ...] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
    rate: int = 600,
    claims: str = EXACTLY_ONCE,
) -> PipelineWorkload:
    """One instance of the program in each of these roles; `worker` is the command of those that are no program of ours."""
    pipeline = Pipeline(
        name=name or "-".join(["outbox", *roles]),
        command=("{python}", "fixtures/pipelines/outbox/outbox.py", *roles, *(("--", *worker) if worker else ())),
        directory=Path(__file__).parents[2],
        environment=dict(environment),
        instances=len(roles),
        outputs=outputs,
        effects=effects,
        pending=pending,
        deliveries=deliveries,
        claims=claims,
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline, rate=rate)


#: A receiver that is the oldest instance is killed first, and again when events come again: nothing is read of the
#: transaction of a relay that was killed until its successor begins, and a worker of Connect starts in 10 to 15 s.
RECEIVER_LAST = (*(IN_TURN,) * 3, replace(IN_TURN, after_s=20), DATABASE_CRASH)
#: Judged are the effects of the receiver, which counts the events that come to it, and not a topic.
RECEIVED: Mapping[str, Any] = MappingProxyType(
    {
        "effects": "select input from effects",
        "outputs": 0,
        "deliveries": "select sum(records) from deliveries",
    }
)


def captured(
    support: str,
    *,
    commit_ms: int,
    roles: tuple[str, ...] = ("debezium", "debezium", "service"),
    name: str = "",
    received: Mapping[str, Any] = MappingProxyType({}),
) -> PipelineWorkload:
    """Workers of Kafka Connect with Debezium and this exactly-once support, which are killed first, and a service."""
    return outbox(
        *roles,
        name=f"outbox-debezium-exactly-once-{support}{name}",
        pending=BEHIND_THE_LOG,
        worker=(f"{{connect-runtime {NEWEST}}}", str(CONNECT.directory / "outbox.properties")),
        environment={"ONCEPROOF_EXACTLY_ONCE": support, "ONCEPROOF_COMMIT_MS": str(commit_ms)},
        **received,
    )


def received(relay: str, receiver: str) -> PipelineWorkload:
    """The chain from the service to the effects of the receiver; the topic in between is its own.

    Instances are killed in this order: a kill of the service, whose work is one transaction, shows least.
    """
    return outbox(relay, receiver, "service", **RECEIVED)


@nightly
@convict("offset-without-output")
def test_table_before_topic(run: RunScenario) -> None:
    """A service that sends events after its database transaction loses some when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=outbox("table-first"), schedule=(IN_TURN,) * STRIKES, floors=WORKED)


@nightly
@convict("duplicate")
def test_topic_before_table(run: RunScenario) -> None:
    """A service that sends events before its database transaction sends some again when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=outbox("topic-first"), schedule=(IN_TURN,) * STRIKES, floors=WORKED)


#: The relay is killed first. After a kill of the service it had no events at a load of 30, and sent none again.
RELAYED = outbox("relay", "service")


@convict("duplicate")
def test_polling_relay(run: RunScenario) -> None:
    """A relay that marks events once they are sent sends some again when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=RELAYED, schedule=(IN_TURN,) * 4, floors=WORKED)


@nightly
@requirement("TXN-25")
def test_polling_relay_that_claims_at_least_once(run: RunScenario) -> None:
    """A relay that marks events once they are sent sends each at least once, however often it is killed in between."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=outbox("relay", "service", name=f"outbox-relay-service-{AT_LEAST_ONCE}", claims=AT_LEAST_ONCE),
        schedule=(IN_TURN,) * 4,
        floors=(*BROKEN_FLOORS, Floor(name="copied_again", need=1)),
    )


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
@requirement("GRP-03", "GRP-19", "COORD-04", "TXN-25")
def test_transactional_relay_while_all_fail(run: RunScenario) -> None:
    """A service and a transactional relay go on with each order once when Postgres, the network and brokers fail."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=outbox("service", "transactional-relay"),
        schedule=ALL_FAIL,
        floors=PIPELINE_FLOORS,
    )


@nightly
@requirement("GRP-03", "GRP-04", "GRP-19")
def test_debezium_exactly_once(run: RunScenario) -> None:
    """Debezium in a worker with exactly-once support sends each event once, however often its worker is killed."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=captured("enabled", commit_ms=500),
        schedule=(IN_A_TRANSACTION, *KILLS),
        floors=PIPELINE_FLOORS,
    )


@nightly
@requirement("GRP-03", "GRP-19", "COORD-04", "TXN-25")
def test_debezium_while_all_fail(run: RunScenario) -> None:
    """Debezium with exactly-once support goes on with each event once when Postgres, the network and brokers fail."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=captured("enabled", commit_ms=500),
        schedule=ALL_FAIL,
        floors=PIPELINE_FLOORS,
    )


@nightly
@requirement("GRP-04", "GRP-19", "FENCE-02")
def test_debezium_paused(run: RunScenario) -> None:
    """A worker with Debezium that comes back after another one took its task commits nothing that the other one sent."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=captured("enabled", commit_ms=500),
        schedule=PAUSED,
        floors=PIPELINE_FLOORS,
    )


@nightly
@convict("duplicate")
def test_debezium_without_exactly_once(run: RunScenario) -> None:
    """Debezium in a worker without exactly-once support sends events again when it is killed between two flushes."""
    run(cluster=PIPELINE_CLUSTER, workload=captured("disabled", commit_ms=3000), schedule=KILLS, floors=WORKED)


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


@nightly
@requirement("GRP-03", "GRP-19")
def test_idempotent_receiver_behind_a_transactional_relay(run: RunScenario) -> None:
    """A receiver that writes ids with its effects has each effect once, behind a relay that sends each event once."""
    workload = outbox("idempotent-receiver", "transactional-relay", "service", **RECEIVED)
    run(cluster=PIPELINE_CLUSTER, workload=workload, schedule=RECEIVER_LAST, floors=REDELIVERED)


@nightly
@requirement("GRP-03", "GRP-19")
def test_idempotent_receiver_behind_debezium(run: RunScenario) -> None:
    """A receiver that writes ids with its effects has each effect once, behind Debezium with exactly-once support."""
    workload = captured(
        "enabled",
        commit_ms=500,
        roles=("idempotent-receiver", "debezium", "service"),
        name="-idempotent-receiver",
        received=RECEIVED,
    )
    run(cluster=PIPELINE_CLUSTER, workload=workload, schedule=RECEIVER_LAST, floors=REDELIVERED)


@nightly
@requirement("GRP-03", "GRP-19")
def test_spark_before_an_idempotent_receiver(run: RunScenario) -> None:
    """A receiver that writes ids with its effects has each effect once, behind a Spark job that writes records again."""
    workload = outbox(
        "spark",
        "idempotent-receiver",
        name="spark-structured-streaming-idempotent-receiver",
        pending="",
        worker=("{python}", "-m", "fixtures.pipelines.spark_sink.sink"),
        # With more the job had not caught up a minute after its second kill.
        rate=200,
        **RECEIVED,
    )
    # A driver works again 10 to 15 s after its start, and at a load of 20 after 30 s.
    kills = (replace(IN_TURN, after_s=after_s) for after_s in (2, 20, 20))
    run(cluster=PIPELINE_CLUSTER, workload=workload, schedule=tuple(kills), floors=REDELIVERED)
