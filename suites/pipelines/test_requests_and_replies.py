"""A service that asks another one by topics, and writes the reply in a transaction.

The program is `fixtures/pipelines/python_copier/replies.py`. A request that is part of a transaction is not visible to a
`read_committed` replier before the commit. A requester that waits for the reply before it commits waits for itself.
"""

from __future__ import annotations

from pathlib import Path

from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads import PipelineWorkload
from runner.scenarios.scenario import (
    PIPELINE_CLUSTER,
    PIPELINE_FLOORS,
    STRUCK,
    RunScenario,
    convict,
    nightly,
    requirement,
)
from suites.pipelines.attacks import IN_A_TRANSACTION, IN_TURN, PARTITIONS

#: Fewer inputs than a batch of 100 and its reply take.
RATE = 160


def asking(requester: str) -> PipelineWorkload:
    """A replier, and a requester of this kind."""
    pipeline = Pipeline(
        name=f"{requester}-and-replier",
        command=("{python}", "-m", "fixtures.pipelines.python_copier.replies", requester, "replier"),
        directory=Path(__file__).parents[2],
    )
    return PipelineWorkload(partitions=PARTITIONS, pipeline=pipeline, rate=RATE)


@nightly
@requirement("GRP-03", "GRP-04", "GRP-21")
def test_requests_before_the_transaction(run: RunScenario) -> None:
    """A requester that has its reply before it begins a transaction writes each reply once, however often it is killed."""
    run(
        cluster=PIPELINE_CLUSTER,
        workload=asking("requester"),
        schedule=(IN_A_TRANSACTION, IN_TURN, IN_A_TRANSACTION),
        floors=PIPELINE_FLOORS,
    )


@nightly
@convict("no-progress")
def test_requests_inside_the_transaction(run: RunScenario) -> None:
    """A requester that waits in a transaction for the reply to a request of that transaction never goes on."""
    # Outputs are waited for longer than a pipeline may stand still.
    run(cluster=PIPELINE_CLUSTER, workload=asking("requester-inside"), floors=STRUCK[:1])
