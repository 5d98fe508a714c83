"""2PC: how far brokers implement KIP-939, in which an external coordinator decides a Kafka transaction."""

from __future__ import annotations

from runner.protocol.toolkit.case import Needs, needs, requirement
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.timing import SOON_S, TIMEOUT_MS
from wire.codes import ErrorCode as Code

#: The version of InitProducerId that knows two-phase commit.
VERSION = 6
UNSTABLE = Needs(settings={"unstable.api.versions.enable": "true"})
ALLOWED = Needs(settings={"unstable.api.versions.enable": "true", "transaction.two.phase.commit.enable": "true"})
FOREVER_MS = 2_147_483_647


def _offered(case: CaseContext) -> list[int]:
    body = {"ClientSoftwareName": "onceproof", "ClientSoftwareVersion": "1"}
    answer = case.require_code("ApiVersions", case.ask("ApiVersions", body))
    assert answer is not None
    key = case.client.definitions.api_key("InitProducerId")
    return [each["MaxVersion"] for each in answer["ApiKeys"] if each["ApiKey"] == key]


@requirement("2PC-01")
def test_the_unstable_version_is_not_offered(case: CaseContext) -> None:
    """A broker does not offer InitProducerId v6 by default."""
    case.expect("the highest version of InitProducerId", _offered(case), [VERSION - 1])


@requirement("2PC-01")
@needs(UNSTABLE)
def test_the_unstable_version_is_offered_where_it_is_allowed(case: CaseContext) -> None:
    """A broker with unstable API versions enabled offers InitProducerId v6."""
    case.expect("the highest version of InitProducerId", _offered(case), [VERSION])


@requirement("2PC-02")
@needs(UNSTABLE)
def test_two_phase_commit_is_refused_by_default(case: CaseContext) -> None:
    """InitProducerId that enables two-phase commit is refused while the broker does not allow it."""
    producer = ScriptedProducer(case, f"{case.name}-owner")
    case.set_up("InitProducerId v6 without it", lambda: producer.init(version=VERSION))
    before = producer.now
    answer = producer.init(version=VERSION, Enable2Pc=True)
    case.expect_code("InitProducerId with it", answer, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    seen = case.inspect.described(f"{case.name}-owner") or {}
    case.expect("the epoch afterwards", seen.get("ProducerEpoch"), before.epoch)
    case.expect("the timeout afterwards", seen.get("TransactionTimeoutMs"), producer.timeout_ms)


@requirement("2PC-03")
@needs(UNSTABLE)
def test_a_prepared_transaction_cannot_be_kept(case: CaseContext) -> None:
    """InitProducerId that wants to keep a prepared transaction is refused as not supported."""
    producer = ScriptedProducer(case, f"{case.name}-owner").ready()
    answer = producer.init(version=VERSION, KeepPreparedTxn=True)
    case.expect_code("InitProducerId", answer, Code.UNSUPPORTED_VERSION)


@requirement("2PC-04", "2PC-05")
@needs(ALLOWED)
def test_a_prepared_transaction_waits_until_it_is_terminated(case: CaseContext) -> None:
    """A transaction with two-phase commit outlives its timeout, and an administrator can end it."""
    here, there = case.topic(partitions=2)
    patient = ScriptedProducer(case, f"{case.name}-patient", timeout_ms=TIMEOUT_MS)
    case.set_up("InitProducerId", lambda: patient.init(version=VERSION, Enable2Pc=True))
    patient.writes(here)
    # An ordinary transaction with the same timeout is opened later; its abort shows that the timeout has passed.
    ordinary = ScriptedProducer(case, f"{case.name}-ordinary", timeout_ms=TIMEOUT_MS).ready().writes(there)
    markers = case.poll_until(lambda: case.inspect.markers(there), bool, within_s=SOON_S)
    told = [(kind, producer) for kind, producer, _ in markers]
    case.require("the ordinary transaction is aborted by timeout", told, [("abort", ordinary.now.id)])
    seen = case.inspect.described(f"{case.name}-patient") or {}
    case.expect("the timeout", seen.get("TransactionTimeoutMs"), FOREVER_MS)
    case.expect("the state", seen.get("TransactionState"), "Ongoing")
    case.expect("the markers", case.inspect.markers(here), [])
    administrator = ScriptedProducer(case, f"{case.name}-patient")
    case.set_up("InitProducerId of the administrator", administrator.init)
    case.expect("the markers then", [kind for kind, _, _ in case.inspect.markers(here)], ["abort"])
    case.expect("the last stable offset", case.inspect.stable(here), case.inspect.end(here))
    case.expect("what readers are given", case.inspect.committed(here), [])
