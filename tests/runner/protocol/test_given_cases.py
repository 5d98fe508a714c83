"""Protocol cases on a cluster of the user: which are left out, and which requests they cannot even encode."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.cluster import BrokerId
from fixtures.clusters.given.cluster import NotOursError
from fixtures.clusters.locks.releases import clients_jar, default_release, fetch_release
from fixtures.clusters.observing.coordinators import NoCoordinatorTopicError
from runner.protocol.given_cases import HARMLESS, NEEDS_THE_INSIDE, harmless, hindrance, reason_to_leave_out
from runner.protocol.toolkit.case import Needs
from wire.codes import ErrorCode
from wire.errors import BrokerError, DeadlineError, DefinitionError, VersionError

#: Requests that change brokers, features, rights, or what others have.
HARMFUL = ("AlterConfigs", "IncrementalAlterConfigs", "UpdateFeatures", "CreateAcls", "ElectLeaders", "WriteTxnMarkers")
HARMFUL += ("AlterPartitionReassignments", "AlterUserScramCredentials", "AlterClientQuotas", "CreatePartitions")


class ThreeBrokers:
    """A cluster of three brokers at transaction.version 2."""

    brokers = tuple(map(BrokerId, (1, 2, 3)))

    def __init__(self, *, shows_its_inside: bool = True) -> None:
        self.shows_its_inside = shows_its_inside

    def levels(self) -> dict[str, int]:
        return {"transaction.version": 2}


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        (Needs(), ""),
        (Needs(brokers=3, replicas=3, min_in_sync=2, level=2), ""),
        (Needs(brokers=4), "it needs a cluster of 4 brokers"),
        (Needs(brokers=2), "it needs a cluster of 2 brokers"),
        (Needs(level=1), "it needs transaction.version 1, and this cluster has 2"),
        (
            Needs(settings={"transaction.max.timeout.ms": "5000"}),
            "it needs brokers with transaction.max.timeout.ms=5000",
        ),
        (Needs(secured=True), "it needs brokers of ours"),
        (Needs(releases={2: "4.2.1"}), "it needs brokers of ours"),
    ],
)
def test_a_case_that_needs_another_cluster_is_left_out(needs: Needs, said: str) -> None:
    """The reason names the first thing that the cluster lacks."""
    cluster: Any = ThreeBrokers()
    found = hindrance(needs, cluster)
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_a_case_that_asks_one_broker_for_all_needs_a_cluster_of_one() -> None:
    """Its claim would be false on a cluster whose brokers share the work."""
    cluster: Any = ThreeBrokers()
    assert hindrance(Needs(), cluster, one_broker=True) == "it needs a cluster of one broker"


def test_a_principal_that_sees_no_internal_topic_performs_most_cases() -> None:
    """Left out are those whose answers would lack what it may not describe."""
    cluster: Any = ThreeBrokers(shows_its_inside=False)
    assert hindrance(Needs(), cluster) == ""
    assert hindrance(Needs(), cluster, inside=True) == NEEDS_THE_INSIDE
    whole: Any = ThreeBrokers()
    assert hindrance(Needs(), whole, inside=True) == ""


def test_requests_that_change_more_than_their_own_cannot_be_encoded() -> None:
    """They are not even known; all harmless ones are."""
    definitions = harmless(clients_jar(fetch_release(default_release())))
    assert set(definitions.apis()) == set(HARMLESS)
    for api in HARMFUL:
        with pytest.raises(DefinitionError, match="no API is called"):
            definitions.api_key(api)


@pytest.mark.parametrize(
    ("error", "inside", "said"),
    [
        (VersionError("it does not offer EndTxn"), True, "not implemented: it does not offer EndTxn"),
        (NoCoordinatorTopicError("no topic"), True, "not implemented: no topic"),
        (NoCoordinatorTopicError("no topic"), False, NEEDS_THE_INSIDE),
        (BrokerError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "x"), False, "it needs a right that this principal"),
        (DefinitionError("no API is called AlterConfigs"), True, "not run on a cluster of yours: no API"),
        (NotOursError("crash"), True, "not run on a cluster of yours: crash"),
        (BrokerError(ErrorCode.INVALID_REQUEST, "x"), True, ""),
        (DeadlineError("no answer"), True, ""),
        (IndexError("list index out of range"), True, ""),
    ],
)
def test_an_error_is_a_reason_to_leave_a_case_out_or_breaks_it(error: Exception, inside: bool, said: str) -> None:
    """A wrong answer, a silent broker and a mistake of the case are no reasons."""
    cluster: Any = ThreeBrokers(shows_its_inside=inside)
    found = reason_to_leave_out(error, cluster)
    assert found.startswith(said)
    assert bool(found) == bool(said)
