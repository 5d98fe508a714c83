"""2PC: how far brokers implement KIP-939, in which somebody else decides a Kafka transaction."""

from __future__ import annotations

from runner.protocol.toolkit.case import Needs, needs, requirement
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.timing import SOON_S, TIMEOUT_MS
from wire.codes import ErrorCode as Code

#: The version of InitProducerId that knows two-phase commit.
VERSION = 6
UNSTABLE = Needs(settings={"unstable.api.versions.enable": "true"})
ALLOWED = Needs(settings={"unstable.api.versions.enable": "true", "transaction.two.phase.commit.enable": "true"})
FOREVER_MS = 2_147_483_647


def _offered(stage: Stage) -> list[int]:
    body = {"ClientSoftwareName": "onceproof", "ClientSoftwareVersion": "1"}
    answer = stage.require_code("ApiVersions", stage.ask("ApiVersions", body))
    assert answer is not None
    key = stage.client.definitions.api_key("InitProducerId")
    return [each["MaxVersion"] for each in answer["ApiKeys"] if each["ApiKey"] == key]


@requirement("2PC-01")
def test_the_unstable_version_is_not_offered(stage: Stage) -> None:
    """A broker does not offer InitProducerId v6 by default."""
    stage.expect("the highest version of InitProducerId", _offered(stage), [VERSION - 1])


@requirement("2PC-01")
@needs(UNSTABLE)
def test_the_unstable_version_is_offered_where_it_is_allowed(stage: Stage) -> None:
    """A broker with unstable API versions enabled offers InitProducerId v6."""
    stage.expect("the highest version of InitProducerId", _offered(stage), [VERSION])


@requirement("2PC-02")
@needs(UNSTABLE)
def test_two_phase_commit_is_refused_by_default(stage: Stage) -> None:
    """InitProducerId that enables two-phase commit is refused while the broker does not allow it."""
    producer = ScriptedProducer(stage, f"{stage.name}-owner")
    stage.set_up("InitProducerId v6 without it", lambda: producer.init(version=VERSION))
    before = producer.now
    answer = producer.init(version=VERSION, Enable2Pc=True)
    stage.expect_code("InitProducerId with it", answer, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    seen = stage.see.described(f"{stage.name}-owner") or {}
    stage.expect("the epoch afterwards", seen.get("ProducerEpoch"), before.epoch)
    stage.expect("the timeout afterwards", seen.get("TransactionTimeoutMs"), producer.timeout_ms)


@requirement("2PC-03")
@needs(UNSTABLE)
def test_a_prepared_transaction_cannot_be_kept(stage: Stage) -> None:
    """InitProducerId that wants to keep a prepared transaction is refused as not supported."""
    producer = ScriptedProducer(stage, f"{stage.name}-owner").ready()
    answer = producer.init(version=VERSION, KeepPreparedTxn=True)
    stage.expect_code("InitProducerId", answer, Code.UNSUPPORTED_VERSION)


@requirement("2PC-04", "2PC-05")
@needs(ALLOWED)
def test_a_prepared_transaction_waits_until_it_is_terminated(stage: Stage) -> None:
    """A transaction with two-phase commit outlives its timeout, and an administrator can end it."""
    here, there = stage.topic(partitions=2)
    patient = ScriptedProducer(stage, f"{stage.name}-patient", timeout_ms=TIMEOUT_MS)
    stage.set_up("InitProducerId", lambda: patient.init(version=VERSION, Enable2Pc=True))
    patient.writes(here)
    # An ordinary transaction that is opened later and has the same timeout tells when the other's has passed.
    ordinary = ScriptedProducer(stage, f"{stage.name}-ordinary", timeout_ms=TIMEOUT_MS).ready().writes(there)
    markers = stage.until(lambda: stage.see.markers(there), bool, within_s=SOON_S)
    told = [(kind, producer) for kind, producer, _ in markers]
    stage.require("the ordinary transaction is aborted by timeout", told, [("abort", ordinary.now.id)])
    seen = stage.see.described(f"{stage.name}-patient") or {}
    stage.expect("the timeout", seen.get("TransactionTimeoutMs"), FOREVER_MS)
    stage.expect("the state", seen.get("TransactionState"), "Ongoing")
    stage.expect("the markers", stage.see.markers(here), [])
    administrator = ScriptedProducer(stage, f"{stage.name}-patient")
    stage.set_up("InitProducerId of the administrator", administrator.init)
    stage.expect("the markers then", [kind for kind, _, _ in stage.see.markers(here)], ["abort"])
    stage.expect("the last stable offset", stage.see.stable(here), stage.see.end(here))
    stage.expect("what readers are given", stage.see.committed(here), [])
