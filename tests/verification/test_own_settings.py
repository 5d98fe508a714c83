"""Settings of users that explain a finding, and remarks on them before a run."""

from __future__ import annotations

import pytest

from verification.known_bugs import catalogue
from verification.known_bugs.settings import behind_case, behind_finding, load, remarks

OFF = {"brokers: transaction.partition.verification.enable": "false"}
SMALL = {"topics: segment.bytes": "524288"}


def test_every_effect_belongs_to_a_bug_or_a_refusal() -> None:
    """A bug is in the catalogue, and shows each anomaly that its setting explains."""
    for each in load():
        if each.bug:
            assert set(each.anomalies) <= set(catalogue.load()[each.bug].anomalies)
        assert each.values or each.below


@pytest.mark.parametrize(
    ("configuration", "releases", "anomaly", "said"),
    [
        (OFF, ("4.1.2", "4.2.1"), "hung-transaction", "transaction.partition.verification.enable=false brings back"),
        (OFF, ("4.2.1",), "lost-write", ""),
        (OFF, ("3.5.2",), "hung-transaction", ""),
        ({"brokers: transaction.partition.verification.enable": "true"}, ("4.2.1",), "hung-transaction", ""),
        (SMALL, ("4.0.2", "4.1.2"), "lost-node", "segment.bytes=524288 is accepted up to Kafka 4.0"),
        (SMALL, ("3.9.2", "4.0.2"), "lost-node", ""),
        ({"topics: segment.bytes": "1048576"}, ("4.1.2",), "lost-node", ""),
        ({"brokers: log.segment.bytes": "524288"}, ("4.0.2",), "lost-node", "log.segment.bytes=524288 is refused"),
        (
            {"brokers: unclean.leader.election.enable": "true"},
            ("4.4.0",),
            "lost-write",
            "unclean.leader.election.enable=true is a setting that the decision calls contrived (KB-13)",
        ),
    ],
)
def test_a_setting_explains_a_finding_on_its_releases(
    configuration: dict[str, str], releases: tuple[str, ...], anomaly: str, said: str
) -> None:
    """The release of any node counts."""
    found = behind_finding(configuration, releases, anomaly)
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_a_setting_of_topics_names_them() -> None:
    """Brokers do not say which topic it was."""
    found = behind_finding(SMALL, ("4.1.2",), "lost-node", ("orders", "billing"))
    assert found.startswith("segment.bytes=524288 of billing, orders is accepted")


def test_a_setting_explains_the_cases_of_its_bug() -> None:
    """A case that shows KB-01 on releases that have it."""
    assert "KB-01" in behind_case(OFF, "4.4.0", ("KB-01",))
    assert behind_case(OFF, "4.4.0", ("KB-03",)) == behind_case({}, "4.4.0", ("KB-01",)) == ""


def test_remarks_come_before_the_run() -> None:
    """Also of settings that explain no finding; a build that has no number has none."""
    codec = {"brokers: offsets.topic.compression.codec": "1"}
    assert "KAFKA-19760" in remarks(codec, ("4.1.2",))[0]
    assert remarks(codec, ("4.4.0",)) == remarks(SMALL, ("mine",)) == ()
    assert len(remarks(OFF | SMALL, ("4.2.1", "4.1.2"))) == 2
