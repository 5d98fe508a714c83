"""Describes a run in its experiment file and its README: what is tried, with which versions, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fixtures.workloads.plans import observers, pipeline_process
from verification.evidence import readme_file
from verification.vocabulary.experiment import FEATURE, Experiment, ExperimentTopic
from verification.vocabulary.transaction_log import TV2, Entry, State
from wire.values import TopicPartition

if TYPE_CHECKING:
    from fixtures.clusters.spec import ClusterSpec
    from runner.resources import ScenarioLane
    from runner.scenarios.scenario import Scenario
    from verification.evidence.run_directory import RunDirectory


def experiment_of(
    scenario: Scenario,
    lane: ScenarioLane,
    *,
    run: str,
    topics: tuple[ExperimentTopic, ...],
    cluster: ClusterSpec,
    versions: Mapping[str, str],
) -> Experiment:
    """The description of a run of a scenario."""
    config, environment, workload = lane.config, lane.environment, scenario.workload
    dedicated = config.upgrade is not None and bool(cluster.controllers) and not cluster.zookeeper
    asked = config.varied(client=scenario.client, seed=scenario.seed, dedicated=dedicated)
    return Experiment(
        run=run,
        scenario=scenario.name,
        claim=scenario.claim,
        requirements=scenario.requirements,
        seed=scenario.seed,
        started=config.started,
        release=config.release.version,
        runtime=environment.runtime,
        client=scenario.client,
        topics=topics,
        observers=observers(workload),
        floors=scenario.floors,
        order_claimed=workload.order_claimed,
        survival_claimed=scenario.survives,
        group=workload.group(config.prefix + run),
        fan_out=workload.fan_out,
        pipeline=pipeline_process(workload, run),
        semantics=workload.semantics,
        control_expects=scenario.expects,
        workload=workload.describe(),
        schedule=tuple(step.describe() for step in scenario.schedule),
        cluster=environment.describe(cluster),
        transaction_timeout_s=workload.transaction_timeout_s,
        producer_expiration_s=int(cluster.broker_settings.get("producer.id.expiration.ms", 0)) / 1_000,
        replay=f'{asked.replay} -k "{scenario.test_name}"',
        nodes={str(node): release for node, release in cluster.node_releases.items()} if cluster.releases else {},
        versions={**environment.versions, **versions},
        configuration=config.own_settings.configuration,
    )


def versions_of(
    *, spoken: Mapping[str, Mapping[str, str]], features: Mapping[str, int], not_offered: Iterable[str] = ()
) -> dict[str, str]:
    """The versions of clients and cluster that only a run shows: library, transaction protocol, finalized features.

    Also the questions about transactions that the brokers do not answer.

    `spoken` has the library and the protocols of each client; it is empty until clients run.
    """
    found: dict[str, str] = {}
    for client, said in spoken.items():
        found |= {client: said.get("library", ""), f"{client} protocol": said.get("transactions", "")}
    # transaction.version 2 is the second protocol of KIP-890; its requirements apply to clients that speak it.
    second = any("TV2" in said.get("transactions", "") for said in spoken.values())
    found |= {"transaction.version": "2" if second else ""}
    found |= {f"{FEATURE}{name}": str(level) for name, level in features.items()}
    found |= {"not offered by the cluster": ", ".join(not_offered)}
    return {name: value for name, value in found.items() if value}


def completed(
    spoken: Mapping[str, Mapping[str, str]], run: str, entries: Iterable[Entry]
) -> Mapping[str, Mapping[str, str]]:
    """`spoken` with the transaction protocol of clients that do not show theirs, as the coordinators' log has it.

    Limit: where clients of two protocols wrote, the higher one stands for both; only one of them can be unknown.
    """
    versions = [
        entry.client_version
        for entry in entries
        if entry.state is State.PREPARE_COMMIT and entry.transactional_id.startswith(run)
    ]
    if not versions:
        return spoken
    found = {"transactions": "TV2" if max(versions) >= TV2 else "TV1"}
    return {client: {**found, **said} if said else said for client, said in spoken.items()}


def partitions_of(topics: Iterable[ExperimentTopic]) -> tuple[TopicPartition, ...]:
    """Every partition of these topics."""
    return tuple(
        TopicPartition(topic=topic.name, partition=partition)
        for topic in topics
        for partition in range(topic.partitions)
    )


def write(experiment: Experiment, directory: RunDirectory) -> None:
    """Write the experiment for the judge, and the README for people."""
    experiment.write(directory.experiment)
    readme_file.write(directory, experiment)
