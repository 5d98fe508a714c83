"""SEC: the rights that transactions need, and the end of a transaction whose owner has lost a right.

Every case grants exactly the named rights and sends its requests as a user of the secured listener. Inspection uses a
super user.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fixtures.clusters.network.security import USERS
from runner.protocol.toolkit.case import BOTH, SECURED, Needs, needs, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.fetching import write_marker
from runner.protocol.toolkit.inspector import ending
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.timing import SOON_S
from runner.protocol.toolkit.users import CLUSTER, Resource, Right, UserContext, acting, grant, granted, revoke
from wire.codes import ErrorCode as Code
from wire.transaction_versions import TransactionVersion

OWNER, OPERATOR, STRANGER = USERS
#: Long enough to lose a right during a transaction, short enough to wait for.
TIMEOUT_MS = 2500
#: The first version of AddPartitionsToTxn for brokers only, and the version of InitProducerId with two-phase commit.
BROKERS_VERSION, TWO_PHASE_VERSION = 4, 6
TWO_PHASE = Needs(
    secured=True,
    settings={"unstable.api.versions.enable": "true", "transaction.two.phase.commit.enable": "true"},
)


def _own(case: CaseContext, user: str = OWNER) -> str:
    """A transactional id that a user may use."""
    name = f"{case.name}-id"
    grant(case, user, Resource.TRANSACTIONAL_ID, name, Right.WRITE)
    return name


def _as(producer: ScriptedProducer, other: UserContext) -> ScriptedProducer:
    """A producer with the same identity, whose requests another user sends."""
    twin = producer.copy()
    twin.case = other
    return twin


def _refused(case: CaseContext, what: str, answer: Response, code: Code) -> None:
    """Claim that every part of the request is answered with this code."""
    case.expect(what, sorted(set(answer.codes.values())), [int(code)])


def _state(case: CaseContext, name: str) -> list[Any]:
    seen = case.inspect.described(name) or {}
    return [seen.get(each) for each in ("TransactionState", "ProducerId", "ProducerEpoch", "Topics")]


@requirement("SEC-01")
@needs(SECURED)
@versions(*BOTH)
def test_an_id_is_used_by_nobody_without_the_right(case: CaseContext) -> None:
    """A user with rights to topic and group, but not to the transactional id, can do nothing under that id."""
    (at,) = case.topic()
    name, group = _own(case), f"{case.name}-group"
    for user in (OWNER, OPERATOR):
        grant(case, user, Resource.TOPIC, at.topic, Right.READ, Right.WRITE)
        grant(case, user, Resource.GROUP, group, Right.READ)
    with acting(case, OWNER) as own, acting(case, OPERATOR) as other:
        owner = ScriptedProducer(own, name).ready().writes(at, values=["a"])
        known, foreign = _state(case, name), _as(owner, other)
        attempts = (
            ("InitProducerId", foreign.copy().init),
            ("InitProducerId(id, e)", partial(foreign.copy().init, continues=owner.now)),
            ("AddPartitionsToTxn", partial(foreign.add, at)),
            ("AddOffsetsToTxn", partial(foreign.add_offsets, group)),
            ("Produce", partial(foreign.produce, at, ["x"])),
            ("TxnOffsetCommit", partial(foreign.commit_offsets, group, {at: 9})),
            ("EndTxn(commit)", partial(foreign.end, commit=True)),
            ("EndTxn(abort)", partial(foreign.end, commit=False)),
        )
        for what, attempt in attempts:
            _refused(case, what, attempt(), Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        case.expect("the transaction", _state(case, name), known)
        case.expect("the log", case.inspect.values(at), ["a"])
        case.expect("the group's offset", case.inspect.offset(group, at), -1)
        owner.writes(at, values=["b"]).ends(commit=True)
    case.expect("what a reader is given", case.inspect.committed(at), ["a", "b"])


@requirement("SEC-02")
@needs(SECURED)
@versions(*BOTH)
def test_a_topic_is_written_by_nobody_without_the_right(case: CaseContext) -> None:
    """A transaction has no partition of a topic that its owner may not write to, and goes on with the others."""
    (mine,), (theirs,) = case.topic(), case.topic()
    name = _own(case)
    grant(case, OWNER, Resource.TOPIC, mine.topic, Right.WRITE)
    with acting(case, OWNER) as own:
        owner = ScriptedProducer(own, name).ready()
        known = _state(case, name)
        answer = owner.add(mine, theirs)
        wanted = {str(mine): Code.OPERATION_NOT_ATTEMPTED, str(theirs): Code.TOPIC_AUTHORIZATION_FAILED}
        case.expect("AddPartitionsToTxn", answer.codes, {place: int(code) for place, code in wanted.items()})
        case.expect("the transaction", _state(case, name), known)
        _refused(case, "Produce", owner.produce(theirs, ["x"]), Code.TOPIC_AUTHORIZATION_FAILED)
        if case.transaction_version is TransactionVersion.TV1:
            case.set_up("a partition is added", partial(owner.add, mine))
        body = owner.produce_body({mine: owner.batch(mine, ["a"]), theirs: owner.batch(theirs, ["x"])})
        answer = own.ask("Produce", body, broker=case.leader(mine))
        codes = {str(mine): 0, str(theirs): int(Code.TOPIC_AUTHORIZATION_FAILED)}
        case.expect("Produce to both at once", answer.codes, codes)
        owner.ends(commit=True)
    case.expect("what a reader is given", (case.inspect.committed(mine), case.inspect.values(theirs)), (["a"], []))


@requirement("SEC-03")
@needs(SECURED)
@versions(*BOTH)
def test_a_group_is_committed_for_by_nobody_without_the_right(case: CaseContext) -> None:
    """A transaction takes offsets of a group and a topic only from an owner that may read both."""
    (at,) = case.topic()
    name, group = _own(case), f"{case.name}-group"
    with acting(case, OWNER) as own:
        owner = ScriptedProducer(own, name).ready()
        known = _state(case, name)
        commit = partial(owner.commit_offsets, group, {at: 7})
        _refused(case, "AddOffsetsToTxn", owner.add_offsets(group), Code.GROUP_AUTHORIZATION_FAILED)
        _refused(case, "TxnOffsetCommit", commit(), Code.GROUP_AUTHORIZATION_FAILED)
        case.expect("the transaction", _state(case, name), known)
        grant(case, OWNER, Resource.GROUP, group, Right.READ)
        if case.transaction_version is TransactionVersion.TV1:
            case.set_up("the group is added", partial(owner.add_offsets, group))
        _refused(case, "TxnOffsetCommit for the topic", commit(), Code.TOPIC_AUTHORIZATION_FAILED)
        grant(case, OWNER, Resource.TOPIC, at.topic, Right.READ)
        case.expect_code("TxnOffsetCommit with both rights", case.answered(commit), Code.NONE)
        case.expect("the offset before the commit", case.inspect.offset(group, at), -1)
        owner.ends(commit=True)
    case.expect("the offset", case.inspect.offset(group, at, stable=True), 7)


@requirement("SEC-04")
@needs(SECURED)
def test_an_idempotent_producer_needs_a_right_to_write(case: CaseContext) -> None:
    """A producer id without a transactional id needs the right to write to some topic, or to the cluster as such."""
    (at,) = case.topic()
    with acting(case, STRANGER) as other:
        producer = ScriptedProducer(other, None)
        refused = Code.CLUSTER_AUTHORIZATION_FAILED
        case.expect_code("InitProducerId without a right", producer.init(), refused)
        with granted(case, STRANGER, Resource.CLUSTER, CLUSTER, Right.IDEMPOTENT_WRITE):
            case.expect_code("with IDEMPOTENT_WRITE", producer.init(), Code.NONE)
            _refused(case, "Produce", producer.produce(at, ["x"]), Code.TOPIC_AUTHORIZATION_FAILED)
        case.expect_code("InitProducerId afterwards", producer.copy().init(), refused)
        with granted(case, STRANGER, Resource.TOPIC, at.topic, Right.WRITE):
            case.expect_code("with WRITE on a topic", producer.init(), Code.NONE)
            case.expect_code("Produce with WRITE", producer.produce(at, ["a"]), Code.NONE)
        _refused(case, "Produce afterwards", producer.produce(at, ["y"]), Code.TOPIC_AUTHORIZATION_FAILED)
    case.expect("the log", case.inspect.values(at), ["a"])


@requirement("SEC-05", "EXP-01")
@needs(SECURED)
@versions(*BOTH)
def test_a_transaction_whose_owner_may_no_longer_is_aborted(case: CaseContext) -> None:
    """An owner that loses the right during a transaction cannot end it; it is aborted at its timeout."""
    (at,) = case.topic()
    name = _own(case)
    grant(case, OWNER, Resource.TOPIC, at.topic, Right.WRITE)
    with acting(case, OWNER) as own:
        owner = ScriptedProducer(own, name, timeout_ms=TIMEOUT_MS).ready().writes(at, values=["a"])
        revoke(case, OWNER, Resource.TRANSACTIONAL_ID, name, Right.WRITE)
        refused = Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        _refused(case, "Produce", owner.produce(at, ["b"]), refused)
        for commit in (True, False):
            _refused(case, f"EndTxn, {ending(commit=commit)}", owner.end(commit=commit), refused)
        _refused(case, "InitProducerId", owner.copy().init(), refused)
        state = case.poll_until(lambda: case.inspect.state(name), lambda seen: seen == "CompleteAbort", within_s=SOON_S)
        case.expect("the state", state, "CompleteAbort")
        case.expect("the log", case.inspect.values(at), ["a"])
        case.expect("what a reader is given", case.inspect.committed(at), [])
        case.expect("the last stable offset", case.inspect.stable(at), case.inspect.end(at))
        grant(case, OWNER, Resource.TRANSACTIONAL_ID, name, Right.WRITE)
        owner.ready().writes(at, values=["c"]).ends(commit=True)
    case.expect("what a reader is given at last", case.inspect.committed(at), ["c"])


@requirement("SEC-05")
@needs(SECURED)
@versions(*BOTH)
def test_an_owner_who_may_no_longer_write_can_still_end_it(case: CaseContext) -> None:
    """An owner that loses the right to a topic can no longer write to it, and ends the transaction as before."""
    name = _own(case)
    for commit in (True, False):
        (at,) = case.topic()
        grant(case, OWNER, Resource.TOPIC, at.topic, Right.WRITE)
        with acting(case, OWNER) as own:
            owner = ScriptedProducer(own, name).ready().writes(at, values=["a"])
            revoke(case, OWNER, Resource.TOPIC, at.topic, Right.WRITE)
            _refused(case, "Produce", owner.produce(at, ["b"]), Code.TOPIC_AUTHORIZATION_FAILED)
            case.expect_code(f"EndTxn, {ending(commit=commit)}", owner.end(commit=commit), Code.NONE)
            case.inspect.complete(owner.transactional_id)
        case.expect("what a reader is given", case.inspect.committed(at), ["a"] if commit else [])
        case.expect("the last stable offset", case.inspect.stable(at), case.inspect.end(at))


@requirement("SEC-06")
@needs(SECURED)
def test_a_transaction_is_described_to_whoever_may_see_it(case: CaseContext) -> None:
    """A transaction is described with DESCRIBE on its id, and shows those of its topics that the caller may describe."""
    (at,) = case.topic()
    name = f"{case.name}-id"
    producer = ScriptedProducer(case, name).ready().writes(at)
    with acting(case, STRANGER) as other:

        def described() -> list[Any]:
            answer = other.ask("DescribeTransactions", {"TransactionalIds": [name]}, broker=case.coordinator(name))
            seen = answer["TransactionStates"][0]
            return [seen["ErrorCode"], seen["TransactionState"], [each["Topic"] for each in seen["Topics"]]]

        refused = [int(Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), "", []]
        case.expect("DescribeTransactions without a right", described(), refused)
        with granted(case, STRANGER, Resource.TRANSACTIONAL_ID, name, Right.DESCRIBE):
            case.expect("with DESCRIBE on the id", described(), [0, "Ongoing", []])
            with granted(case, STRANGER, Resource.TOPIC, at.topic, Right.DESCRIBE):
                case.expect("and on the topic", described(), [0, "Ongoing", [at.topic]])
                topics = {"Topics": [{"Name": at.topic, "PartitionIndexes": [at.partition]}]}
                answer = other.ask("DescribeProducers", topics, broker=case.leader(at))
                _refused(case, "DescribeProducers without READ", answer, Code.TOPIC_AUTHORIZATION_FAILED)
    producer.ends(commit=False)


@requirement("ADM-09")
@needs(SECURED)
def test_transactions_are_listed_to_whoever_may_see_them(case: CaseContext) -> None:
    """ListTransactions shows the ids that the caller may describe, and says nothing of the others."""
    names = [f"{case.name}-{number}" for number in range(3)]
    for name in names:
        ScriptedProducer(case, name).ready()
    with acting(case, STRANGER) as other:

        def listed() -> list[str]:
            answer = other.ask("ListTransactions", {})
            case.expect_code("ListTransactions", answer, Code.NONE)
            seen = [each["TransactionalId"] for each in answer["TransactionStates"]]
            return sorted(each for each in seen if each.startswith(case.name))

        case.expect("without a right", listed(), [])
        with granted(case, STRANGER, Resource.TRANSACTIONAL_ID, names[1], Right.DESCRIBE):
            case.expect("with DESCRIBE on one", listed(), [names[1]])


@requirement("COORD-17")
@needs(SECURED)
def test_markers_are_written_by_brokers_and_administrators(case: CaseContext) -> None:
    """WriteTxnMarkers is refused, and appends nothing, without CLUSTER_ACTION or (from 3.8) ALTER on the cluster."""
    (at,) = case.topic()
    producer = ScriptedProducer(case, None).ready()
    producer.writes(at)
    mark = partial(write_marker, at=at, producer_id=producer.now.id, epoch=producer.now.epoch, coordinator_epoch=0)
    with acting(case, OPERATOR) as operator:
        ask = partial(mark, operator, broker=case.leader(at))
        grant(case, OPERATOR, Resource.TOPIC, at.topic, Right.WRITE, Right.ALTER)
        _refused(case, "without a right on the cluster", ask(), Code.CLUSTER_AUTHORIZATION_FAILED)
        case.expect("the end of the log", case.inspect.end(at), 1)
        with granted(case, OPERATOR, Resource.CLUSTER, CLUSTER, Right.CLUSTER_ACTION):
            case.expect_code("with CLUSTER_ACTION", ask(), Code.NONE)
        case.expect("the end of the log", case.inspect.end(at), 2)
        with granted(case, OPERATOR, Resource.CLUSTER, CLUSTER, Right.ALTER):
            allowed = case.since("3.8.0")
            _refused(case, "with ALTER", ask(), Code.NONE if allowed else Code.CLUSTER_AUTHORIZATION_FAILED)
        case.expect("the end of the log", case.inspect.end(at), 3 if allowed else 2)


@requirement("TXN-15")
@needs(SECURED)
def test_the_request_of_brokers_is_refused_to_clients(case: CaseContext) -> None:
    """AddPartitionsToTxn v4 is refused to the owner of the transactional id, which lacks CLUSTER_ACTION."""
    (at,) = case.topic()
    name = _own(case)
    grant(case, OWNER, Resource.TOPIC, at.topic, Right.WRITE)
    with acting(case, OWNER) as own:
        owner = ScriptedProducer(own, name).ready()
        transaction = {
            "TransactionalId": name,
            "ProducerId": owner.now.id,
            "ProducerEpoch": owner.now.epoch,
            "VerifyOnly": False,
            "Topics": [{"Name": at.topic, "Partitions": [at.partition]}],
        }
        body = {"Transactions": [transaction]}
        ask = partial(own.ask, "AddPartitionsToTxn", body, broker=case.coordinator(name), version=BROKERS_VERSION)
        case.expect_code("without CLUSTER_ACTION", ask(), Code.CLUSTER_AUTHORIZATION_FAILED)
        case.expect("the state", case.inspect.state(name), "Empty")
        with granted(case, OWNER, Resource.CLUSTER, CLUSTER, Right.CLUSTER_ACTION):
            _refused(case, "with CLUSTER_ACTION", ask(), Code.NONE)
        case.expect("its partitions", case.inspect.places(name), [str(at)])


@requirement("2PC-02")
@needs(TWO_PHASE)
def test_two_phase_commit_needs_its_own_right(case: CaseContext) -> None:
    """InitProducerId that enables two-phase commit is refused to an owner without TWO_PHASE_COMMIT on the id."""
    name = _own(case)
    with acting(case, OWNER) as own:
        owner = ScriptedProducer(own, name)
        case.set_up("InitProducerId without it", partial(owner.init, version=TWO_PHASE_VERSION))
        known = _state(case, name)
        ask = partial(owner.init, version=TWO_PHASE_VERSION, Enable2Pc=True)
        case.expect_code("with WRITE only", ask(), Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        case.expect("the transactional id", _state(case, name), known)
        with granted(case, OWNER, Resource.TRANSACTIONAL_ID, name, Right.TWO_PHASE_COMMIT):
            case.expect_code("with TWO_PHASE_COMMIT", ask(), Code.NONE)
