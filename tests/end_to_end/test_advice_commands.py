"""The commands of the advice on known bugs, run as the cards have them, on a real cluster in the state that they are for.

In one outage of a leader KB-16 loses the markers of several transactions, commits and aborts, of both protocols. Late
batches and late offset commits (KB-01, KB-02) are made with the verification of partitions switched off. Not in their own
state are `describe-producers` of KB-21, which needs a forged epoch, and `list` of KB-42, which needs a migration; KB-13
and KB-32 have the commands of KB-16, whose state is theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as field_of
from functools import partial
from typing import TYPE_CHECKING, cast

import pytest

from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.locks.releases import default_release, definition_jars, fetch_release
from runner.protocol.toolkit import brokers
from runner.protocol.toolkit.case import THREE
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.replicas import coordinated, placed
from runner.protocol.toolkit.settings import unverified
from runner.regressions.outages import await_leaderless
from tests.support.clusters.kafka_tools import KafkaTools
from tests.support.real_cluster import RELEASE, launcher
from verification.known_bugs.catalogue import load
from wire.client import Client
from wire.messages import Definitions
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

if TYPE_CHECKING:
    from fixtures.clients.java.kept_jvm import KeptJvm

BUGS = load()
BOTH = tuple(TransactionVersion)
#: Transactions that hang, and whether they were committed; the names say what the test does with them.
OUTCOMES = {"saved": True, "copied": True, "aborted": False, "shown": False}
#: A word of each command that the tests below run.
RUN = (
    "find-hanging",
    "sh --bootstrap-server HOST:PORT list",
    " describe ",
    "describe-producers",
    " abort ",
    "TransactionLogMessageFormatter",
    "read_committed",
    "kafka-dump-log.sh",
    "--dry-run",
    "--execute",
    " upgrade ",
    " downgrade ",
)
cluster = pytest.mark.cluster
#: No case of this module calls the Java client.
NO_JAVA = cast("KeptJvm", None)


def commands(bug: str) -> list[str]:
    """The commands of a card that have options; the name of a tool alone is none."""
    advice = BUGS[bug].advice
    texts = [text for part in (advice.avoid, advice.repair) for point in part.points for text in point.split("`")[1::2]]
    return [each for each in texts if re.match(r"kafka-[\w-]+\.sh .*--", each)]


def command(bug: str, word: str) -> str:
    """The command of a card that has this word."""
    assert word in RUN
    found = {each for each in commands(bug) if word in each}
    assert len(found) == 1, (bug, word, found)
    return found.pop()


def test_every_command_of_every_card_is_run_by_a_test() -> None:
    """A card that gets another command needs a test that runs it."""
    every = {each for bug in BUGS for each in commands(bug)}
    assert len(every) >= len(RUN)
    assert [each for each in every if sum(word in each for word in RUN) != 1] == []


@dataclass(frozen=True, kw_only=True)
class Hanging:
    """A transaction whose marker was lost: its partition, its producer, and the record that it wrote."""

    case: CaseContext
    at: TopicPartition
    producer: ScriptedProducer
    record: str


@dataclass(frozen=True, kw_only=True)
class Field:
    """A cluster with transactions that hang, by their names."""

    tools: KafkaTools
    contexts: Mapping[TransactionVersion, CaseContext]
    broker: int
    lost: Mapping[str, Hanging]
    looks: list[list[dict[str, str]]] = field_of(default_factory=list)

    def row(self, bug: str, hanging: Hanging) -> dict[str, str]:
        """The line of find-hanging about a transaction; it is found by each of two looks.

        The looks for KB-16 are made once, before any repair.
        """
        leader, find = hanging.case.leader(hanging.at), command(bug, "find-hanging")
        looks = self.looks if hanging.record.startswith("lost") else []
        looks += [self.tools.table(find, N=leader) for _ in range(2 - len(looks))]
        (row,) = [each for each in looks[0] if hanging.at == _place(each) and hanging.at in map(_place, looks[1])]
        assert row["ProducerId"] == str(hanging.producer.now.id)
        return row

    def owner(self, bug: str, row: Mapping[str, str]) -> str:
        """The transactional id of the producer id, as `list` names it."""
        listed = self.tools.table(command(bug, "sh --bootstrap-server HOST:PORT list"))
        (found,) = [each["TransactionalId"] for each in listed if each["ProducerId"] == row["ProducerId"]]
        return found

    def decision(self, identity: str, at: TopicPartition) -> str:
        """The decision by the transaction log, as the card reads it: the newest record that names the partition."""
        text = self.tools.output(command("KB-16", "TransactionLogMessageFormatter"))
        decided = ""
        for record in re.findall(r'\{"key":.*?\}(?=\{"key"|\s*$)', text, re.MULTILINE):
            body = json.loads(record)
            value = (body["value"] or {}).get("data") or {}
            names = {each["topic"]: each["partitionIds"] for each in value.get("transactionPartitions") or ()}
            ours = body["key"]["data"]["transactionalId"] == identity and at.partition in names.get(at.topic, ())
            if ours and value["transactionStatus"] in ("PrepareCommit", "PrepareAbort"):
                decided = value["transactionStatus"]
        return decided

    def abort(self, bug: str, row: Mapping[str, str]) -> None:
        """Abort as the card says, by the line of find-hanging."""
        self.tools.output(command(bug, " abort "), T=row["Topic"], P=row["Partition"], O=row["StartOffset"])

    def nothing_hangs(self, bug: str, hanging: Hanging) -> bool:
        """Whether find-hanging no longer shows it."""
        return hanging.at not in map(
            _place, self.tools.table(command(bug, "find-hanging"), N=hanging.case.leader(hanging.at))
        )

    def printed(self, at: TopicPartition) -> list[str]:
        """What the reader of the card prints from the start of the partition on."""
        text = self.tools.output(command("KB-16", "read_committed"), T=at.topic, P=at.partition, O=0)
        return [line for line in text.splitlines() if re.match(r"lost |more$", line)]


def _place(row: Mapping[str, str]) -> TopicPartition:
    """The partition of a line of find-hanging."""
    return TopicPartition(row["Topic"], int(row["Partition"]))


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """Three brokers, and transactions that ended while their partitions had no leader."""
    definitions = Definitions.load(*definition_jars(fetch_release(default_release())))
    with (
        launcher(tmp_path_factory)(THREE.spec(RELEASE)) as running,
        Client(running.witness_bootstrap, definitions, client_id="advice") as client,
    ):
        context = partial(CaseContext, client, release=RELEASE, defined=definitions, cluster=running, java=NO_JAVA)
        contexts = {each: context(transaction_version=each) for each in BOTH}
        yield _lose_markers(running, contexts)
        for each in contexts.values():
            each.close()


def _lose_markers(running: LocalCluster, contexts: Mapping[TransactionVersion, CaseContext]) -> Field:
    first = contexts[TransactionVersion.TV1]
    gone, coordinator = (each for each in first.brokers if each != brokers.controller(first))
    lost = {}
    for version, case in contexts.items():
        places = placed(case, *[[gone]] * len(OUTCOMES), min_insync_replicas="1")
        for at, name in zip(places, OUTCOMES, strict=True):
            record = f"lost {version} {name}"
            producer = ScriptedProducer(case, coordinated(case, name, by=coordinator)).ready()
            producer.writes(at, values=[record])
            lost[f"{version}-{name}"] = Hanging(case=case, at=at, producer=producer, record=record)
    with brokers.crashed(first, gone):
        for name, each in lost.items():
            await_leaderless(each.case, each.at)
            commit = OUTCOMES[name.partition("-")[2]]
            each.case.set_up("EndTxn", partial(each.producer.end, commit=commit))
            wanted = "CompleteCommit" if commit else "CompleteAbort"
            state = partial(each.case.inspect.state, each.producer.transactional_id or "")
            assert each.case.poll_until(state, wanted.__eq__, within_s=5) == wanted
    for each in contexts.values():
        each.close_connections()
    return Field(tools=KafkaTools(cluster=running), contexts=contexts, broker=int(gone), lost=lost)


@cluster
@pytest.mark.parametrize("version", BOTH)
def test_a_lost_commit_is_saved_by_the_next_commit_of_the_id(field: Field, version: TransactionVersion) -> None:
    """KB-16 after a commit: the log and `describe` say so, and a commit to the partition shows the records."""
    hanging = field.lost[f"{version}-saved"]
    row = field.row("KB-16", hanging)
    identity = field.owner("KB-16", row)
    assert identity == hanging.producer.transactional_id
    assert field.decision(identity, hanging.at) == "PrepareCommit"
    if version is TransactionVersion.TV2:
        (described,) = field.tools.table(command("KB-16", " describe "), ID=identity)
        assert described["TransactionState"] == "CompleteCommit"
    assert hanging.case.inspect.committed(hanging.at) == []
    # As after a restart of the application: another instance with the same id.
    again = ScriptedProducer(hanging.case, identity).ready()
    again.writes(hanging.at, values=["more"]).ends(commit=True)
    assert field.nothing_hangs("KB-16", hanging)
    assert hanging.case.inspect.committed(hanging.at) == [hanging.record, "more"]
    if version is TransactionVersion.TV2:
        assert field.printed(hanging.at) == [hanging.record, "more"]


@cluster
def test_a_lost_commit_is_copied_and_then_aborted(field: Field) -> None:
    """KB-16 after a commit whose id is gone: the copies have the producer id, and the abort hides the records for ever."""
    hanging = field.lost["TV1-copied"]
    row = field.row("KB-16", hanging)
    directory = field.tools.cluster.directory / "data" / f"broker-{field.broker}" / str(hanging.at)
    dumped = field.tools.output(command("KB-16", "kafka-dump-log.sh"), FILE=min(directory.glob("*.log")))
    assert f"producerId: {row['ProducerId']} " in dumped
    assert f"payload: {hanging.record}" in dumped
    field.abort("KB-16", row)
    assert field.nothing_hangs("KB-16", hanging)
    assert hanging.case.inspect.committed(hanging.at) == []
    assert hanging.case.inspect.state(hanging.producer.transactional_id or "") == "CompleteCommit"
    ScriptedProducer(hanging.case, f"{hanging.case.name}-copy").ready().writes(
        hanging.at, values=[hanging.record]
    ).ends(commit=True)
    assert hanging.case.inspect.committed(hanging.at) == [hanging.record]


@cluster
@pytest.mark.parametrize("version", BOTH)
def test_a_lost_abort_is_aborted(field: Field, version: TransactionVersion) -> None:
    """KB-16 after an abort: the log and `describe` say so, and after the abort the id writes and shows nothing of it."""
    hanging = field.lost[f"{version}-aborted"]
    row = field.row("KB-16", hanging)
    identity = field.owner("KB-16", row)
    assert field.decision(identity, hanging.at) == "PrepareAbort"
    if version is TransactionVersion.TV1:
        (described,) = field.tools.table(command("KB-16", " describe "), ID=identity)
        assert described["TransactionState"] == "CompleteAbort"
    field.abort("KB-16", row)
    assert field.nothing_hangs("KB-16", hanging)
    if version is TransactionVersion.TV1:
        assert field.printed(hanging.at) == []
    hanging.producer.writes(hanging.at, values=["more"]).ends(commit=True)
    assert hanging.case.inspect.committed(hanging.at) == ["more"]


@cluster
def test_a_commit_after_a_lost_abort_shows_aborted_records(field: Field) -> None:
    """The harm of which the first step of KB-16 warns is real."""
    hanging = field.lost["TV2-shown"]
    hanging.producer.writes(hanging.at, values=["more"]).ends(commit=True)
    assert hanging.case.inspect.committed(hanging.at) == [hanging.record, "more"]


@cluster
def test_a_late_batch_is_aborted(field: Field) -> None:
    """KB-01: the late batch hangs until the abort of the card; nothing that was committed is lost, and the id goes on."""
    case = field.contexts[TransactionVersion.TV1]
    (at,) = case.topic()
    producer = ScriptedProducer(case, f"{case.name}-late").ready()
    producer.writes(at, values=["before"]).ends(commit=True)
    late = producer.batch(at, ["late"])
    with unverified(case):
        accepted = case.poll_until(partial(producer.send_batch, at, late), lambda each: each.code == 0, within_s=10)
    assert accepted.code == 0
    producer.sequences[at] += 1
    hanging = Hanging(case=case, at=at, producer=producer, record="late")
    row = field.row("KB-01", hanging)
    assert field.owner("KB-01", row) == producer.transactional_id
    field.abort("KB-01", row)
    assert field.nothing_hangs("KB-01", hanging)
    producer.writes(at, values=["after"]).ends(commit=True)
    assert case.inspect.committed(at) == ["before", "after"]


@cluster
def test_a_late_offset_commit_is_aborted(field: Field) -> None:
    """KB-02: the group has no stable offset until the abort of the card, and then the one before the late commit."""
    case = field.contexts[TransactionVersion.TV1]
    (at,) = case.topic()
    group = f"{case.name}-group"
    producer = ScriptedProducer(case, f"{case.name}-offsets").ready()
    case.set_up("the group is added", partial(producer.add_offsets, group))
    case.set_up("an offset is pending", partial(producer.commit_offsets, group, {at: 7}))
    (name,) = case.inspect.places(producer.transactional_id or "")
    producer.ends(commit=True)
    with unverified(case):
        late = partial(producer.commit_offsets, group, {at: 3})
        assert case.poll_until(late, lambda each: each.code == 0, within_s=10).code == 0
    assert case.inspect.offset(group, at, stable=True) == "UNSTABLE_OFFSET_COMMIT"
    offsets = TopicPartition("__consumer_offsets", int(name.rpartition("-")[2]))
    hanging = Hanging(case=case, at=offsets, producer=producer, record="")
    row = field.row("KB-02", hanging)
    assert field.owner("KB-02", row) == producer.transactional_id
    field.abort("KB-02", row)
    assert field.nothing_hangs("KB-02", hanging)
    assert case.inspect.offset(group, at, stable=True) == 7


@cluster
@pytest.mark.parametrize("bug", ["KB-31", "KB-36"])
def test_the_offset_of_a_group_is_set(field: Field, bug: str) -> None:
    """A group without an offset has the one of the card; the dry run changes nothing."""
    case = field.contexts[TransactionVersion.TV1]
    (at,) = case.topic()
    ScriptedProducer(case, f"{case.name}-{bug}").ready().writes(at, values=["a", "b", "c"]).ends(commit=True)
    group = f"{case.name}-{bug}"
    values = {"G": group, "T": at.topic, "P": at.partition, "O": 2}
    if bug == "KB-31":
        field.tools.output(command(bug, "--dry-run"), **values)
        assert case.inspect.offset(group, at) == -1
    field.tools.output(command(bug, "--execute"), **values)
    assert case.inspect.offset(group, at) == 2


@cluster
def test_transaction_version_is_lowered_and_raised(field: Field) -> None:
    """KB-40 lowers to 1, and KB-18 raises to 2 again, also from the level 0 that it is about."""
    case = field.contexts[TransactionVersion.TV2]

    def level() -> int:
        case.close_connections()
        return case.level

    lower = command("KB-40", " downgrade ")
    for text, wanted in ((lower, 1), (lower.replace("=1", "=0"), 0), (command("KB-18", " upgrade "), 2)):
        field.tools.output(text)
        assert case.poll_until(level, wanted.__eq__, within_s=10) == wanted


@cluster
def test_the_commands_of_a_forged_epoch_are_accepted(field: Field) -> None:
    """KB-21: its commands find an open transaction; in the state of the bug they were not run."""
    case = field.contexts[TransactionVersion.TV2]
    (at,) = case.topic()
    producer = ScriptedProducer(case, f"{case.name}-open").ready().writes(at)
    (row,) = field.tools.table(command("KB-21", "describe-producers"), T=at.topic, P=at.partition)
    assert row["CurrentTransactionStartOffset"] == "0"
    listed = field.tools.table(command("KB-21", "sh --bootstrap-server HOST:PORT list"))
    assert (producer.transactional_id, row["ProducerId"]) in {
        (each["TransactionalId"], each["ProducerId"]) for each in listed
    }
    producer.ends(commit=False)
