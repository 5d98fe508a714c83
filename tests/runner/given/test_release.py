"""The release that a run expects, if `--kafka` does not name one: the brokers' feature levels show its line."""

from __future__ import annotations

import pytest

from fixtures.clusters.given.connection import ClusterConnection
from fixtures.clusters.given.program import BrokerProgram
from fixtures.clusters.locks.releases import Release, default_release
from runner.given.options import GivenOptions
from runner.given.release import chosen_release
from tests.support.servers.frame_broker import frame_broker
from tests.support.wire_definitions import definitions


def asked_of(bootstrap: str, program: BrokerProgram | None = None) -> tuple[Release, str]:
    connection = ClusterConnection(bootstrap=bootstrap)
    return chosen_release(GivenOptions(connection=connection, prefix="onceproof-", program=program))


@pytest.mark.parametrize(
    ("highest", "release", "said"),
    [
        (27, "4.1.2", "of the line that the brokers show (Kafka 4.1: 1)"),
        (30, "4.3.1", "of the line that the brokers show (Kafka 4.3: 1)"),
        (20, str(default_release()), "because the brokers show Kafka 3.8: 1; --kafka names another"),
        (99, str(default_release()), "because the brokers show metadata.version up to 99: 1; --kafka names another"),
        (0, str(default_release()), "because the brokers show no feature levels; --kafka names another"),
    ],
)
def test_the_newest_supported_release_of_the_line(highest: int, release: str, said: str) -> None:
    """An older level is finalized, as after an upgrade; of some lines no release is supported."""
    levels = [{"Name": "metadata.version", "MinVersion": 1, "MaxVersion": highest}]
    finalized = [{"Name": "metadata.version", "MinVersionLevel": 1, "MaxVersionLevel": 21}]
    known = [(definitions().api_key(each), definitions().versions(f"{each}Request")) for each in definitions().apis()]
    keys = [{"ApiKey": key, "MinVersion": span[0], "MaxVersion": span[-1]} for key, span in known if span]
    with frame_broker() as broker:
        features = {"SupportedFeatures": levels, "FinalizedFeatures": finalized} if highest else {}
        broker.says = {
            "ApiVersions": {"ApiKeys": keys, **features},
            "Metadata": {"Brokers": [{"NodeId": 1, "Host": broker.at.host, "Port": broker.at.port}]},
        }
        found, ground = asked_of(str(broker.at))
    assert str(found) == release
    assert ground == f"release: {release}, the newest supported" + (" " if "line" in said else ", ") + said


def test_a_cluster_that_does_not_answer_shows_nothing() -> None:
    """The look of the run says why."""
    found, ground = asked_of("127.0.0.1:9")
    assert (found, "no answer of the cluster shows its line" in ground) == (default_release(), True)


def test_a_program_is_not_started_to_be_asked() -> None:
    """The run starts it, and names the newest supported release."""
    found, ground = asked_of("127.0.0.1:{port}", BrokerProgram("/nowhere/broker {port}"))
    assert (found, "the run starts the broker later" in ground) == (default_release(), True)
