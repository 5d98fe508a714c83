"""The experiment file says what the judge must know about the cluster of a scenario."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.clusters.locks.releases import parse_release
from fixtures.clusters.spec import ClusterSpec
from fixtures.pipelines.manifest import load
from fixtures.workloads import OrderFanOut, PipelineWorkload, WorkloadPlan
from runner.config import unreported
from runner.scenarios.description import experiment_of
from runner.scenarios.scenario import PIPELINE_CLUSTER, ClusterMaker, Scenario
from verification.vocabulary.experiment import Experiment


@pytest.mark.parametrize(("settings", "expiration_s"), [({}, 0.0), ({"producer.id.expiration.ms": "2500"}, 2.5)])
def test_the_judge_is_told_how_long_brokers_remember_producers(
    settings: dict[str, str], expiration_s: float, tmp_path: Path
) -> None:
    """A lowered producer.id.expiration.ms is in the experiment; Kafka's default is not."""
    workload = OrderFanOut(partitions=1, transaction_timeout_s=7.0)
    experiment = described(tmp_path, workload, partial(ClusterSpec, broker_settings=settings))
    assert (experiment.producer_expiration_s, experiment.transaction_timeout_s) == (expiration_s, 7.0)


@pytest.mark.parametrize("claim", ["exactly-once", "at-least-once"])
def test_the_claim_of_a_manifest_is_in_the_experiment(claim: str, tmp_path: Path) -> None:
    """So its evidence can be judged again without the manifest."""
    manifest = tmp_path / "pipeline.toml"
    manifest.write_text(f'name = "a"\ncommand = ["a"]\nclaims = "{claim}"', encoding="utf-8")
    experiment = described(tmp_path, PipelineWorkload(pipeline=load(manifest)), PIPELINE_CLUSTER)
    assert experiment.semantics == claim


def described(root: Path, workload: WorkloadPlan, cluster: ClusterMaker) -> Experiment:
    """The experiment of a scenario."""
    scenario = Scenario(
        name="idempotence/forgetful",
        test_name="test_forgetful",
        claim="c",
        requirements=(),
        cluster=cluster,
        workload=workload,
    )
    environment = SimpleNamespace(runtime="local", versions={}, describe=lambda cluster: f"{cluster.brokers} brokers")
    config = unreported(parse_release("4.3.1"), root, runtime="local")
    resources: Any = SimpleNamespace(config=config, environment=environment)
    return experiment_of(
        scenario, resources, run="r", topics=(), cluster=scenario.cluster(release="4.3.1"), versions={}
    )
