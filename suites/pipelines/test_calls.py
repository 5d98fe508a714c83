"""Calls of a service for each record: side effects that no transaction of Kafka reaches.

The program is `fixtures/pipelines/calls/calls.py`, and the service is an HTTP endpoint of the run. The judge has each call
that was carried out next to the records of the topics.
"""

from __future__ import annotations

from pathlib import Path

from fixtures.pipelines.manifest import CALLS, Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    PIPELINE_CLUSTER,
    RunScenario,
    convict,
    nightly,
    requirement,
)
from suites.pipelines.attacks import (
    CUT_OFF,
    IN_A_TRANSACTION,
    IN_TURN,
    INPUT_BROKERS_CRASH,
    PARTITIONS,
    REDELIVERED,
    WORKED,
)


def calling(*roles: str, outputs: int = 0) -> PipelineWorkload:
    """One instance of the program in each of these roles."""
    pipeline = Pipeline(
        name="-".join(["calls", *roles]),
        command=("{python}", "calls.py", *roles),
        directory=Path(__file__).parents[2] / "fixtures" / "pipelines" / "calls",
        instances=len(roles),
        outputs=outputs,
        effects=CALLS,
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline)


@nightly
@convict("duplicate")
def test_calls_before_offsets(run: RunScenario) -> None:
    """A program that commits its offsets after its calls calls some again when it is killed in between."""
    run(cluster=PIPELINE_CLUSTER, workload=calling("caller"), schedule=(IN_TURN,) * 3, floors=WORKED)


@nightly
@convict("duplicate")
def test_calls_in_a_transaction(run: RunScenario) -> None:
    """A transaction takes back the output of a call when its program is killed, and not the call."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=calling("transactional-caller", outputs=1),
        schedule=(IN_A_TRANSACTION,) * 2,
        floors=WORKED,
    )


@requirement("GRP-03", "GRP-19")
def test_calls_with_a_key(run: RunScenario) -> None:
    """A service that knows the key of a call carries each out once, though records come again."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=calling("forwarder", "keyed-caller"),
        schedule=(IN_TURN,) * 4,
        floors=REDELIVERED,
    )


@nightly
@convict("duplicate")
def test_calls_cut_off(run: RunScenario) -> None:
    """A program that commits its offsets after its calls calls some again when it is cut off from the brokers in between."""
    run(cluster=PIPELINE_CLUSTER, workload=calling("caller"), schedule=CUT_OFF * 2, floors=WORKED)


@nightly
@requirement("GRP-03", "GRP-19", "COORD-04")
def test_calls_with_a_key_while_all_fail(run: RunScenario) -> None:
    """A service that knows the key of a call carries each out once, though its callers are cut off and brokers crash."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=calling("forwarder", "keyed-caller"),
        schedule=(*CUT_OFF, *INPUT_BROKERS_CRASH, IN_TURN),
        floors=REDELIVERED,
    )
