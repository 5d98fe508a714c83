"""SEC: who may take part in transactions, and what becomes of one whose owner may no longer.

Every case grants exactly what it says and asks as a user of the secured listener; what it looks at it looks at as
somebody who may everything.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fixtures.clusters.network.security import USERS
from runner.protocol.toolkit.case import BOTH, SECURED, Needs, generations, needs, requirement
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.fetching import write_marker
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Answer
from runner.protocol.toolkit.timing import SOON_S
from runner.protocol.toolkit.users import CLUSTER, ActingStage, Resource, Right, acting, grant, granted, revoke
from wire.codes import ErrorCode as Code
from wire.transaction_versions import Generation

OWNER, OPERATOR, STRANGER = USERS
#: Long enough to lose a right in the midst of a transaction, short enough to be waited for.
TIMEOUT_MS = 2500
#: The first version of AddPartitionsToTxn that is for brokers, and the version of InitProducerId with two-phase commit.
BROKERS_VERSION, TWO_PHASE_VERSION = 4, 6
TWO_PHASE = Needs(
    secured=True,
    settings={"unstable.api.versions.enable": "true", "transaction.two.phase.commit.enable": "true"},
)


def _own(stage: Stage, user: str = OWNER) -> str:
    """A transactional id that a user may use."""
    name = f"{stage.name}-id"
    grant(stage, user, Resource.TRANSACTIONAL_ID, name, Right.WRITE)
    return name


def _as(producer: ScriptedProducer, other: ActingStage) -> ScriptedProducer:
    """Somebody else who claims to be this producer."""
    twin = producer.copy()
    twin.stage = other
    return twin


def _refused(stage: Stage, what: str, answer: Answer, code: Code) -> None:
    """Claim that everything that was asked for is answered with this code."""
    stage.expect(what, sorted(set(answer.codes.values())), [int(code)])


def _state(stage: Stage, name: str) -> list[Any]:
    seen = stage.see.described(name) or {}
    return [seen.get(each) for each in ("TransactionState", "ProducerId", "ProducerEpoch", "Topics")]


@requirement("SEC-01")
@needs(SECURED)
@generations(*BOTH)
def test_an_id_is_used_by_nobody_without_the_right(stage: Stage) -> None:
    """Whoever may write to topic and group, but not use the transactional id, can do nothing under it."""
    (at,) = stage.topic()
    name, group = _own(stage), f"{stage.name}-group"
    for user in (OWNER, OPERATOR):
        grant(stage, user, Resource.TOPIC, at.topic, Right.READ, Right.WRITE)
        grant(stage, user, Resource.GROUP, group, Right.READ)
    with acting(stage, OWNER) as own, acting(stage, OPERATOR) as other:
        owner = ScriptedProducer(own, name).ready().writes(at, values=["a"])
        known, foreign = _state(stage, name), _as(owner, other)
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
            _refused(stage, what, attempt(), Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        stage.expect("the transaction", _state(stage, name), known)
        stage.expect("the log", stage.see.values(at), ["a"])
        stage.expect("the group's offset", stage.see.offset(group, at), -1)
        owner.writes(at, values=["b"]).ends(commit=True)
    stage.expect("what a reader is given", stage.see.committed(at), ["a", "b"])


@requirement("SEC-02")
@needs(SECURED)
@generations(*BOTH)
def test_a_topic_is_written_by_nobody_without_the_right(stage: Stage) -> None:
    """A transaction has no partition of a topic that its owner may not write to, and goes on with the others."""
    (mine,), (theirs,) = stage.topic(), stage.topic()
    name = _own(stage)
    grant(stage, OWNER, Resource.TOPIC, mine.topic, Right.WRITE)
    with acting(stage, OWNER) as own:
        owner = ScriptedProducer(own, name).ready()
        known = _state(stage, name)
        answer = owner.add(mine, theirs)
        wanted = {str(mine): Code.OPERATION_NOT_ATTEMPTED, str(theirs): Code.TOPIC_AUTHORIZATION_FAILED}
        stage.expect("AddPartitionsToTxn", answer.codes, {place: int(code) for place, code in wanted.items()})
        stage.expect("the transaction", _state(stage, name), known)
        _refused(stage, "Produce", owner.produce(theirs, ["x"]), Code.TOPIC_AUTHORIZATION_FAILED)
        if stage.generation is Generation.TV1:
            stage.set_up("a partition is added", partial(owner.add, mine))
        body = owner.produce_body({mine: owner.batch(mine, ["a"]), theirs: owner.batch(theirs, ["x"])})
        answer = own.ask("Produce", body, broker=stage.leader(mine))
        codes = {str(mine): 0, str(theirs): int(Code.TOPIC_AUTHORIZATION_FAILED)}
        stage.expect("Produce to both at once", answer.codes, codes)
        owner.ends(commit=True)
    stage.expect("what a reader is given", (stage.see.committed(mine), stage.see.values(theirs)), (["a"], []))


@requirement("SEC-03")
@needs(SECURED)
@generations(*BOTH)
def test_a_group_is_committed_for_by_nobody_without_the_right(stage: Stage) -> None:
    """A transaction takes offsets of a group and a topic only from an owner who may read both."""
    (at,) = stage.topic()
    name, group = _own(stage), f"{stage.name}-group"
    with acting(stage, OWNER) as own:
        owner = ScriptedProducer(own, name).ready()
        known = _state(stage, name)
        commit = partial(owner.commit_offsets, group, {at: 7})
        _refused(stage, "AddOffsetsToTxn", owner.add_offsets(group), Code.GROUP_AUTHORIZATION_FAILED)
        _refused(stage, "TxnOffsetCommit", commit(), Code.GROUP_AUTHORIZATION_FAILED)
        stage.expect("the transaction", _state(stage, name), known)
        grant(stage, OWNER, Resource.GROUP, group, Right.READ)
        if stage.generation is Generation.TV1:
            stage.set_up("the group is added", partial(owner.add_offsets, group))
        _refused(stage, "TxnOffsetCommit for the topic", commit(), Code.TOPIC_AUTHORIZATION_FAILED)
        grant(stage, OWNER, Resource.TOPIC, at.topic, Right.READ)
        stage.expect_code("TxnOffsetCommit with both rights", stage.answered(commit), Code.NONE)
        stage.expect("the offset before the commit", stage.see.offset(group, at), -1)
        owner.ends(commit=True)
    stage.expect("the offset", stage.see.offset(group, at, stable=True), 7)


@requirement("SEC-04")
@needs(SECURED)
def test_an_idempotent_producer_needs_a_right_to_write(stage: Stage) -> None:
    """A producer id without a transactional id is for whoever may write to some topic, or to the cluster as such."""
    (at,) = stage.topic()
    with acting(stage, STRANGER) as other:
        producer = ScriptedProducer(other, None)
        refused = Code.CLUSTER_AUTHORIZATION_FAILED
        stage.expect_code("InitProducerId without a right", producer.init(), refused)
        with granted(stage, STRANGER, Resource.CLUSTER, CLUSTER, Right.IDEMPOTENT_WRITE):
            stage.expect_code("with IDEMPOTENT_WRITE", producer.init(), Code.NONE)
            _refused(stage, "Produce", producer.produce(at, ["x"]), Code.TOPIC_AUTHORIZATION_FAILED)
        stage.expect_code("InitProducerId afterwards", producer.copy().init(), refused)
        with granted(stage, STRANGER, Resource.TOPIC, at.topic, Right.WRITE):
            stage.expect_code("with WRITE on a topic", producer.init(), Code.NONE)
            stage.expect_code("Produce with WRITE", producer.produce(at, ["a"]), Code.NONE)
        _refused(stage, "Produce afterwards", producer.produce(at, ["y"]), Code.TOPIC_AUTHORIZATION_FAILED)
    stage.expect("the log", stage.see.values(at), ["a"])


@requirement("SEC-05", "EXP-01")
@needs(SECURED)
@generations(*BOTH)
def test_a_transaction_whose_owner_may_no_longer_is_aborted(stage: Stage) -> None:
    """An owner who loses the right in the midst of a transaction cannot end it; it is aborted at its timeout."""
    (at,) = stage.topic()
    name = _own(stage)
    grant(stage, OWNER, Resource.TOPIC, at.topic, Right.WRITE)
    with acting(stage, OWNER) as own:
        owner = ScriptedProducer(own, name, timeout_ms=TIMEOUT_MS).ready().writes(at, values=["a"])
        revoke(stage, OWNER, Resource.TRANSACTIONAL_ID, name, Right.WRITE)
        refused = Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        _refused(stage, "Produce", owner.produce(at, ["b"]), refused)
        for commit in (True, False):
            _refused(stage, f"EndTxn, commit {commit}", owner.end(commit=commit), refused)
        _refused(stage, "InitProducerId", owner.copy().init(), refused)
        state = stage.until(lambda: stage.see.state(name), lambda seen: seen == "CompleteAbort", within_s=SOON_S)
        stage.expect("the state", state, "CompleteAbort")
        stage.expect("the log", stage.see.values(at), ["a"])
        stage.expect("what a reader is given", stage.see.committed(at), [])
        stage.expect("the last stable offset", stage.see.stable(at), stage.see.end(at))
        grant(stage, OWNER, Resource.TRANSACTIONAL_ID, name, Right.WRITE)
        owner.ready().writes(at, values=["c"]).ends(commit=True)
    stage.expect("what a reader is given at last", stage.see.committed(at), ["c"])


@requirement("SEC-05")
@needs(SECURED)
@generations(*BOTH)
def test_an_owner_who_may_no_longer_write_can_still_end_it(stage: Stage) -> None:
    """An owner who loses the right to a topic can write no more to it, and ends the transaction as before."""
    name = _own(stage)
    for commit in (True, False):
        (at,) = stage.topic()
        grant(stage, OWNER, Resource.TOPIC, at.topic, Right.WRITE)
        with acting(stage, OWNER) as own:
            owner = ScriptedProducer(own, name).ready().writes(at, values=["a"])
            revoke(stage, OWNER, Resource.TOPIC, at.topic, Right.WRITE)
            _refused(stage, "Produce", owner.produce(at, ["b"]), Code.TOPIC_AUTHORIZATION_FAILED)
            stage.expect_code(f"EndTxn, commit {commit}", owner.end(commit=commit), Code.NONE)
            stage.see.complete(owner.transactional_id)
        stage.expect("what a reader is given", stage.see.committed(at), ["a"] if commit else [])
        stage.expect("the last stable offset", stage.see.stable(at), stage.see.end(at))


@requirement("SEC-06")
@needs(SECURED)
def test_a_transaction_is_described_to_whoever_may_see_it(stage: Stage) -> None:
    """A transaction is described with DESCRIBE on its id, and shows those of its topics that the caller may describe."""
    (at,) = stage.topic()
    name = f"{stage.name}-id"
    producer = ScriptedProducer(stage, name).ready().writes(at)
    with acting(stage, STRANGER) as other:

        def described() -> list[Any]:
            answer = other.ask("DescribeTransactions", {"TransactionalIds": [name]}, broker=stage.coordinator(name))
            seen = answer["TransactionStates"][0]
            return [seen["ErrorCode"], seen["TransactionState"], [each["Topic"] for each in seen["Topics"]]]

        refused = [int(Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), "", []]
        stage.expect("DescribeTransactions without a right", described(), refused)
        with granted(stage, STRANGER, Resource.TRANSACTIONAL_ID, name, Right.DESCRIBE):
            stage.expect("with DESCRIBE on the id", described(), [0, "Ongoing", []])
            with granted(stage, STRANGER, Resource.TOPIC, at.topic, Right.DESCRIBE):
                stage.expect("and on the topic", described(), [0, "Ongoing", [at.topic]])
                topics = {"Topics": [{"Name": at.topic, "PartitionIndexes": [at.partition]}]}
                answer = other.ask("DescribeProducers", topics, broker=stage.leader(at))
                _refused(stage, "DescribeProducers without READ", answer, Code.TOPIC_AUTHORIZATION_FAILED)
    producer.ends(commit=False)


@requirement("ADM-09")
@needs(SECURED)
def test_transactions_are_listed_to_whoever_may_see_them(stage: Stage) -> None:
    """ListTransactions shows the ids that the caller may describe, and says nothing of the others."""
    names = [f"{stage.name}-{number}" for number in range(3)]
    for name in names:
        ScriptedProducer(stage, name).ready()
    with acting(stage, STRANGER) as other:

        def listed() -> list[str]:
            answer = other.ask("ListTransactions", {})
            stage.expect_code("ListTransactions", answer, Code.NONE)
            seen = [each["TransactionalId"] for each in answer["TransactionStates"]]
            return sorted(each for each in seen if each.startswith(stage.name))

        stage.expect("without a right", listed(), [])
        with granted(stage, STRANGER, Resource.TRANSACTIONAL_ID, names[1], Right.DESCRIBE):
            stage.expect("with DESCRIBE on one", listed(), [names[1]])


@requirement("COORD-17")
@needs(SECURED)
def test_markers_are_written_by_brokers_and_administrators(stage: Stage) -> None:
    """WriteTxnMarkers is refused, and appends nothing, without CLUSTER_ACTION or (from 3.8) ALTER on the cluster."""
    (at,) = stage.topic()
    producer = ScriptedProducer(stage, None).ready()
    producer.writes(at)
    mark = partial(write_marker, at=at, producer_id=producer.now.id, epoch=producer.now.epoch, coordinator_epoch=0)
    with acting(stage, OPERATOR) as operator:
        ask = partial(mark, operator, broker=stage.leader(at))
        grant(stage, OPERATOR, Resource.TOPIC, at.topic, Right.WRITE, Right.ALTER)
        _refused(stage, "without a right on the cluster", ask(), Code.CLUSTER_AUTHORIZATION_FAILED)
        stage.expect("the end of the log", stage.see.end(at), 1)
        with granted(stage, OPERATOR, Resource.CLUSTER, CLUSTER, Right.CLUSTER_ACTION):
            stage.expect_code("with CLUSTER_ACTION", ask(), Code.NONE)
        stage.expect("the end of the log", stage.see.end(at), 2)
        with granted(stage, OPERATOR, Resource.CLUSTER, CLUSTER, Right.ALTER):
            allowed = stage.since("3.8.0")
            _refused(stage, "with ALTER", ask(), Code.NONE if allowed else Code.CLUSTER_AUTHORIZATION_FAILED)
        stage.expect("the end of the log", stage.see.end(at), 3 if allowed else 2)


@requirement("TXN-15")
@needs(SECURED)
def test_the_request_of_brokers_is_refused_to_clients(stage: Stage) -> None:
    """AddPartitionsToTxn v4 is refused to the owner of the transactional id, who lacks CLUSTER_ACTION."""
    (at,) = stage.topic()
    name = _own(stage)
    grant(stage, OWNER, Resource.TOPIC, at.topic, Right.WRITE)
    with acting(stage, OWNER) as own:
        owner = ScriptedProducer(own, name).ready()
        transaction = {
            "TransactionalId": name,
            "ProducerId": owner.now.id,
            "ProducerEpoch": owner.now.epoch,
            "VerifyOnly": False,
            "Topics": [{"Name": at.topic, "Partitions": [at.partition]}],
        }
        body = {"Transactions": [transaction]}
        ask = partial(own.ask, "AddPartitionsToTxn", body, broker=stage.coordinator(name), version=BROKERS_VERSION)
        stage.expect_code("without CLUSTER_ACTION", ask(), Code.CLUSTER_AUTHORIZATION_FAILED)
        stage.expect("the state", stage.see.state(name), "Empty")
        with granted(stage, OWNER, Resource.CLUSTER, CLUSTER, Right.CLUSTER_ACTION):
            _refused(stage, "with CLUSTER_ACTION", ask(), Code.NONE)
        stage.expect("its partitions", stage.see.places(name), [str(at)])


@requirement("2PC-02")
@needs(TWO_PHASE)
def test_two_phase_commit_needs_its_own_right(stage: Stage) -> None:
    """InitProducerId that enables two-phase commit is refused to an owner without TWO_PHASE_COMMIT on the id."""
    name = _own(stage)
    with acting(stage, OWNER) as own:
        owner = ScriptedProducer(own, name)
        stage.set_up("InitProducerId without it", partial(owner.init, version=TWO_PHASE_VERSION))
        known = _state(stage, name)
        ask = partial(owner.init, version=TWO_PHASE_VERSION, Enable2Pc=True)
        stage.expect_code("with WRITE only", ask(), Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        stage.expect("the transactional id", _state(stage, name), known)
        with granted(stage, OWNER, Resource.TRANSACTIONAL_ID, name, Right.TWO_PHASE_COMMIT):
            stage.expect_code("with TWO_PHASE_COMMIT", ask(), Code.NONE)
