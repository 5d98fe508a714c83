"""The clients of a run, from its scenarios."""

from __future__ import annotations

from dataclasses import replace

from reports.loading import subject
from reports.model.report import ClientUnderTest
from verification.vocabulary.experiment import Experiment


def experiment(versions: dict[str, str]) -> Experiment:
    return Experiment(
        run="r",
        scenario="upgrades/rolling-upgrade",
        claim="c",
        requirements=(),
        seed=1,
        started="",
        release="4.3.1",
        runtime="local",
        client="confluent",
        topics=(),
        versions=versions,
    )


def test_every_client_of_an_upgrade_is_named_with_what_it_spoke() -> None:
    """The scenario is named by one client and has two; versions that are no client's stay among the versions."""
    found = subject.of(
        None,
        [
            experiment(
                {
                    "confluent": "librdkafka 2.8.0",
                    "confluent protocol": "TV1",
                    "java": "kafka-clients 3.9.2 (Java 21), kafka-clients 4.3.1 (Java 21)",
                    "java protocol": "TV1, TV2",
                    "transaction.version": "2",
                }
            )
        ],
    )
    assert found.clients == (
        ClientUnderTest(name="confluent", library="librdkafka 2.8.0", protocol="TV1"),
        ClientUnderTest(
            name="java", library="kafka-clients 3.9.2 (Java 21), kafka-clients 4.3.1 (Java 21)", protocol="TV1, TV2"
        ),
    )
    assert found.versions == (("transaction.version", "2"),)


def test_a_run_of_pipelines_alone_is_about_them_and_not_about_the_release() -> None:
    """The heading counts pipelines, not scenarios, and no controls. One other scenario makes it about the release."""
    one = replace(experiment({}), pipeline=1, workload="pipeline one: 2 instances")
    other, bad = replace(one, workload="pipeline other: 2 instances"), replace(one, control_expects=("duplicate",))
    assert subject.of(None, [one, one, other, replace(bad, workload="wrong")]).title == "2 pipelines on Kafka 4.3.1"
    assert subject.of(None, [one, bad]).title == "1 pipeline on Kafka 4.3.1"
    weaker = replace(one, semantics="at-least-once", workload="pipeline weaker: 2 instances")
    assert subject.of(None, [weaker, bad]).title == "1 pipeline on Kafka 4.3.1, at-least-once"
    assert subject.of(None, [one, weaker]).title == "2 pipelines on Kafka 4.3.1, 1 of them at-least-once"
    assert subject.of(None, [one, experiment({})]).title == "Kafka 4.3.1"
