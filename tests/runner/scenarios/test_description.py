"""The experiment file says what the judge must know about the cluster of a scenario."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.clusters.locks.releases import parse_release
from fixtures.clusters.spec import ClusterSpec
from fixtures.workloads import OrderFanOut
from runner.config import unreported
from runner.scenarios.description import experiment_of
from runner.scenarios.scenario import Scenario


@pytest.mark.parametrize(("settings", "expiration_s"), [({}, 0.0), ({"producer.id.expiration.ms": "2500"}, 2.5)])
def test_the_judge_is_told_how_long_brokers_remember_producers(
    settings: dict[str, str], expiration_s: float, tmp_path: Path
) -> None:
    """A lowered producer.id.expiration.ms is in the experiment; Kafka's default is not."""
    scenario = Scenario(
        name="idempotence/forgetful",
        test_name="test_forgetful",
        claim="c",
        requirements=(),
        cluster=partial(ClusterSpec, broker_settings=settings),
        workload=OrderFanOut(partitions=1, transaction_timeout_s=7.0),
    )
    environment = SimpleNamespace(runtime="local", versions={}, describe=lambda cluster: f"{cluster.brokers} brokers")
    config = unreported(parse_release("4.3.1"), tmp_path, runtime="local")
    resources: Any = SimpleNamespace(config=config, environment=environment)
    experiment = experiment_of(
        scenario, resources, run="r", topics=(), cluster=scenario.cluster(release="4.3.1"), versions={}
    )
    assert (experiment.producer_expiration_s, experiment.transaction_timeout_s) == (expiration_s, 7.0)
