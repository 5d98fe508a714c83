"""What every client driver must do, whichever library it drives (docs/writing/client.md).

For librdkafka its own mock cluster suffices to test the protocol; other libraries do not get along with it and use a
real one, as does everything that brokers decide (fencing, aborted records, groups).
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fixtures.clients.errors import (
    DriverDiedError,
    DriverSilentError,
    UnknownClientKindError,
)
from fixtures.clients.mock_cluster import PARTITIONS, MockCluster
from fixtures.clients.outcomes import classify
from fixtures.clients.registry import CLIENTS, client_kind
from fixtures.clusters.local.cluster import LocalCluster
from tests.driver_talk import ROOT, Talk, World, await_gone, create_topics, real_topics
from tests.real_cluster import SINGLE_BROKER, launcher
from verification.vocabulary.history import Outcome
from verification.vocabulary.identity import IDENTITY_LENGTH, decode

Open = Callable[..., Talk]
PLACES = [(0, 0), (1, 1), (0, 1), (1, 3)]


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockCluster]:
    with MockCluster.start(tmp_path_factory.mktemp("mock")) as started:
        yield started


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker: enough for everything that clients are told."""
    with launcher(tmp_path_factory)(replace(SINGLE_BROKER, partitions=PARTITIONS)) as started:
        yield started


@pytest.fixture(
    params=[pytest.param(name, marks=() if name == "confluent" else pytest.mark.cluster) for name in sorted(CLIENTS)]
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(kind: str, request: pytest.FixtureRequest) -> World:
    if kind == "confluent":
        mock: MockCluster = request.getfixturevalue("mock")
        return World(bootstrap=mock.witness_bootstrap, create=mock.create)
    broker: LocalCluster = request.getfixturevalue("broker")
    return World(bootstrap=broker.witness_bootstrap, create=partial(create_topics, broker))


@pytest.fixture
def talks(kind: str, tmp_path: Path) -> Iterator[Open]:
    """Opens drivers and ends them all."""
    opened: list[Talk] = []

    def open_one(role: str, bootstrap: str, topics: list[str], **more: Any) -> Talk:
        opened.append(Talk(kind, role, bootstrap, topics, tmp_path, **more))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def topics(world: World) -> list[str]:
    names = [f"{secrets.token_hex(4)}-{name}" for name in ("first", "second", "third")]
    world.create(names)
    return names


@pytest.fixture
def producer(world: World, topics: list[str], talks: Open) -> Talk:
    talk = talks("producer", world.bootstrap, topics, transactional_id=secrets.token_hex(4))
    assert talk.do("init")["error"] is None
    return talk


# --- the protocol --------------------------------------------------------------------------------------------------


def test_a_driver_says_what_it_is(producer: Talk, kind: str) -> None:
    """The first event names the library; the answer to `init` at the latest tells which protocol is spoken."""
    spoken = {**producer.ready["protocol"], **producer.events[-1]["protocol"]}
    assert producer.ready["event"] == "ready"
    assert spoken["transactions"] == client_kind(kind).speaks
    assert producer.ready["library"]
    assert client_kind(kind).versions()


def test_initialisation_tells_the_producer_id(producer: Talk) -> None:
    """An initialised instance knows its producer id and epoch."""
    done = producer.events[-1]
    assert done["stage"] == "done"
    assert done["producer_id"] >= 0
    assert done["producer_epoch"] == 0


@pytest.mark.parametrize("intent", ["commit", "abort"])
def test_a_transaction_is_announced_answered_and_timed(producer: Talk, intent: str) -> None:
    """Deciding comes before done; every record has one acknowledgement with its place; times are in order."""
    done = producer.transaction(PLACES, intent)
    deciding = producer.events[-2]
    assert (done["stage"], done["error"], done["records"], done["aborted"]) == ("done", None, 4, False)
    assert sorted(ack[:3] for ack in done["acks"]) == [[i, *place] for i, place in enumerate(PLACES)]
    assert all(offset >= 0 and error is None for *_, offset, error in done["acks"])
    assert deciding["event"] == "deciding"
    assert done["invoked_ns"] < done["decided_ns"] == deciding["at_ns"] < done["at_ns"] <= time.monotonic_ns()


@pytest.mark.parametrize("point", ["before-produce", "after-produce", "before-commit"])
def test_a_held_operation_waits_for_the_word(producer: Talk, point: str) -> None:
    """At the sync point nothing more is said until go; before commit was asked for, deciding has not been said."""
    producer.ask("transaction", records=producer.records(PLACES), intent="commit", deadline_s=20.0, hold_at=point)
    held = producer.hear()
    assert (held["event"], held["point"]) == ("held", point)
    with pytest.raises(DriverSilentError):
        producer.hear(timeout_s=0.3)
    producer.driver.send({"do": "go"})
    assert producer.hear()["event"] == "deciding"
    assert producer.hear()["error"] is None


def test_a_transaction_that_aborts_never_comes_before_its_commit(producer: Talk) -> None:
    """The sync point before commit is not reached by an abort."""
    done = producer.transaction(PLACES, "abort", hold_at="before-commit")
    assert done["error"] is None
    assert [event["event"] for event in producer.events[-2:]] == ["deciding", "done"]


def test_time_spent_held_does_not_count(producer: Talk) -> None:
    """An operation that is held for longer than its deadline still has all of its deadline."""
    records = producer.records(PLACES)
    producer.ask("transaction", records=records, intent="commit", deadline_s=1.0, hold_at="before-produce")
    assert producer.hear()["event"] == "held"
    time.sleep(1.5)
    producer.driver.send({"do": "go"})
    assert producer.until_done()["error"] is None


def test_appends_are_acknowledged_one_by_one(world: World, topics: list[str], talks: Open) -> None:
    """Records without a transaction are acknowledged with offsets, and nothing is decided."""
    plain = talks("producer", world.bootstrap, topics)
    done = plain.do("append", records=plain.records(PLACES))
    assert (done["stage"], done["error"], done["decided_ns"], len(done["acks"])) == ("done", None, None, 4)
    assert plain.do("flush")["error"] is None


def test_an_observer_returns_what_was_written_where(
    world: World, topics: list[str], producer: Talk, talks: Open
) -> None:
    """An observer is given each record at its acknowledged place, with the identity of its value only."""
    done = producer.transaction(PLACES)
    observer = talks("observer", world.bootstrap, topics, isolation="read_uncommitted")
    found = observer.read([(0, 0), (0, 1), (1, 1), (1, 3)], least=4)
    assert sorted(record[:3] for record in found) == sorted(ack[1:4] for ack in done["acks"])
    assert {len(value) for *_, value in found} == {IDENTITY_LENGTH}
    assert {
        index for identity in (decode(value.encode()) for *_, value in found) if identity for index in [identity.index]
    } == {0, 1, 2, 3}
    assert observer.events[-1]["received_ns"] <= time.monotonic_ns()


def test_an_observer_says_how_far_it_read(world: World, topics: list[str], talks: Open) -> None:
    """A partition without records is read to its end too, and that is said."""
    observer = talks("observer", world.bootstrap, topics)
    assign = [[2, partition, 0] for partition in range(PARTITIONS)]
    read_to: list[list[int]] = []
    for _ in range(20):
        read_to += observer.do("poll", max_records=10, timeout_s=0.5, assign=assign)["read_to"]
        if len(read_to) == PARTITIONS:
            break
    assert sorted(read_to) == [[2, partition, 0] for partition in range(PARTITIONS)]


def test_a_poll_returns_no_more_than_it_may(world: World, topics: list[str], producer: Talk, talks: Open) -> None:
    """`max_records` bounds one answer, and nothing is skipped by it."""
    producer.transaction([(0, 0)] * 10)
    observer = talks("observer", world.bootstrap, topics, isolation="read_uncommitted")
    offsets: list[int] = []
    assign: dict[str, Any] = {"assign": [[0, 0, 0]]}
    for _ in range(20):
        done = observer.do("poll", max_records=3, timeout_s=0.5, **assign)
        assign = {}
        assert len(done["records"]) <= 3
        offsets += [record[2] for record in done["records"]]
        if len(offsets) == 10:
            break
    assert offsets == list(range(10))


def test_an_unreachable_cluster_is_an_answer(talks: Open) -> None:
    """Nobody answers: the operation ends with the library's error at its deadline, and the driver lives."""
    producer = talks("producer", "127.0.0.1:1", ["nowhere"], transactional_id="t")
    began = time.monotonic()
    done = producer.do("init", deadline_s=1.5)
    assert done["stage"] == "init"
    assert classify("init", done["error"]) is Outcome.INFO
    assert time.monotonic() - began < 15
    assert producer.driver.alive


def test_an_append_that_nobody_answers_is_unknown(talks: Open) -> None:
    """At the deadline every record has an error, and none of them is definite."""
    producer = talks("producer", "127.0.0.1:1", ["nowhere"])
    done = producer.do("append", records=producer.records([(0, 0), (0, 0)]), deadline_s=1.0)
    assert done["stage"] == "produce"
    assert len(done["acks"]) == 2
    assert {classify("record", ack[4]) for ack in done["acks"]} <= {Outcome.INFO, Outcome.FAIL}


def test_an_operation_that_a_role_does_not_have_ends_the_driver(world: World, topics: list[str], talks: Open) -> None:
    """A wrong command is a mistake of the harness and says so in the log."""
    observer = talks("observer", world.bootstrap, topics)
    with pytest.raises(DriverDiedError, match="no operation 'transaction'"):
        observer.do("transaction", records=[], intent="commit")


def test_close_ends_cleanly(producer: Talk) -> None:
    """A driver that is told to close exits with 0."""
    assert producer.do("close")["error"] is None
    with pytest.raises(DriverDiedError, match="exit code 0"):
        producer.hear()


# --- what brokers decide -------------------------------------------------------------------------------------------


@pytest.mark.cluster
def test_a_superseded_instance_is_fenced(broker: LocalCluster, talks: Open) -> None:
    """After a successor's initialisation the old instance's commit is refused, fatally, and proves nothing definite."""
    topics, identity = real_topics(broker, 1), secrets.token_hex(4)
    old = talks("producer", broker.witness_bootstrap, topics, transactional_id=identity)
    assert old.do("init")["error"] is None
    old.ask("transaction", records=old.records([(0, 0)]), intent="commit", deadline_s=20.0, hold_at="before-commit")
    assert old.hear()["event"] == "held"
    heir = talks("producer", broker.witness_bootstrap, topics, transactional_id=identity, process=2)
    done = heir.do("init")
    assert done["error"] is None
    assert done["producer_epoch"] > old.events[0].get("producer_epoch", 0)
    old.driver.send({"do": "go"})
    answer = old.until_done()
    assert answer["stage"] == "commit"
    assert answer["error"]["fatal"]
    assert answer["error"]["code"] in (47, 90, -144)
    assert classify("commit", answer["error"]) is Outcome.INFO
    assert heir.transaction([(0, 0)])["error"] is None


@pytest.mark.cluster
def test_a_committed_reader_is_given_committed_records_only(broker: LocalCluster, talks: Open) -> None:
    """The isolation level of `configure` is the one that the observer really has."""
    topics = real_topics(broker, 1)
    producer = talks("producer", broker.witness_bootstrap, topics, transactional_id=secrets.token_hex(4))
    assert producer.do("init")["error"] is None
    aborted = producer.transaction([(0, 0)] * 3, "abort")
    committed = producer.transaction([(0, 0)] * 2)
    assert aborted["error"] is None
    uncommitted = talks("observer", broker.witness_bootstrap, topics, isolation="read_uncommitted")
    careful = talks("observer", broker.witness_bootstrap, topics, isolation="read_committed")
    both = sorted(ack[3] for done in (aborted, committed) for ack in done["acks"])
    assert sorted(record[2] for record in uncommitted.read([(0, 0)], least=5)) == both
    assert sorted(record[2] for record in careful.read([(0, 0)], least=2)) == sorted(a[3] for a in committed["acks"])


def feed(broker: LocalCluster, talks: Open, topics: list[str], count: int) -> None:
    feeder = talks("producer", broker.witness_bootstrap, topics, process=9)
    input_index = len(topics) - 1
    places = [(input_index, index % PARTITIONS) for index in range(count)]
    assert feeder.do("append", records=feeder.records(places))["error"] is None


def copy_all(copier: Talk, count: int, **fields: Any) -> list[dict[str, Any]]:
    """Copies until `count` inputs were copied; the answers that copied something."""
    answers: list[dict[str, Any]] = []
    for _ in range(60):
        done = copier.do("copy", max_records=20, output_topics=[0, 1], **{"order": "transaction", **fields})
        assert done["error"] is None, done
        answers += [done] if done["inputs"] else []
        if sum(end - first for each in answers for *_, first, end in each["inputs"]) >= count:
            return answers
    raise AssertionError(f"only {answers} after 60 copies")


@pytest.mark.cluster
@pytest.mark.parametrize("order", ["transaction", "write-then-offsets", "offsets-then-write"])
def test_a_copier_writes_one_output_per_input_and_topic(broker: LocalCluster, talks: Open, order: str) -> None:
    """Each output names its source, stands in the source's partition, and was announced before it was written."""
    topics = real_topics(broker, 3)
    feed(broker, talks, topics, 30)
    identity = secrets.token_hex(4)
    copier = talks(
        "copier",
        broker.witness_bootstrap,
        topics,
        group=identity,
        transactional_id=identity if order == "transaction" else None,
    )
    if order == "transaction":
        assert copier.do("init")["error"] is None
    answers = copy_all(copier, 30, order=order)
    assert sum(each["count"] for each in answers) == 60
    begun = [event for event in copier.events if event["event"] == "begun"]
    assert [(event["records"], event["inputs"]) for event in begun] == [(a["records"], a["inputs"]) for a in answers]
    observer = talks("observer", broker.witness_bootstrap, topics)
    places = [(topic, partition) for topic in (0, 1) for partition in range(PARTITIONS)]
    sources = set()
    for topic, partition, _, value in observer.read(places, least=60):
        found = decode(value.encode())
        assert found is not None
        assert (found.topic_index, found.intended_partition, found.source_partition) == (topic, partition, partition)
        sources.add((topic, found.source_partition, found.source_offset))
    assert len(sources) == 60


@pytest.mark.cluster
def test_a_copy_that_was_aborted_is_copied_again(broker: LocalCluster, talks: Open) -> None:
    """A copier killed before its commit leaves inputs that its successor copies."""
    topics, identity = real_topics(broker, 3), secrets.token_hex(4)
    feed(broker, talks, topics, 10)
    fields = {"group": identity, "transactional_id": identity, "group_instance_id": "member"}
    first = talks("copier", broker.witness_bootstrap, topics, **fields)
    assert first.do("init")["error"] is None
    for _ in range(60):
        first.ask(
            "copy", max_records=20, output_topics=[0, 1], order="transaction", deadline_s=20.0, hold_at="before-commit"
        )
        event = first.hear()
        if event["event"] == "begun":
            break
    assert first.hear()["event"] == "held"
    first.driver.kill()
    second = talks("copier", broker.witness_bootstrap, topics, process=2, **fields)
    assert second.do("init")["error"] is None
    assert sum(each["count"] for each in copy_all(second, 10)) == 20
    observer = talks("observer", broker.witness_bootstrap, topics)
    places = [(topic, partition) for topic in (0, 1) for partition in range(PARTITIONS)]
    writers = {decode(value.encode()).process for *_, value in observer.read(places, least=20)}  # type: ignore[union-attr]
    assert writers == {2}


# --- the process ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paused", [False, True], ids=["held", "paused"])
def test_a_driver_does_not_outlive_its_harness(
    kind: str, world: World, topics: list[str], tmp_path: Path, paused: bool
) -> None:
    """Kill the harness: its driver ends, also in the middle of an operation and also when it is stopped."""
    program = f"""
import time
from pathlib import Path
from tests.driver_talk import Talk
talk = Talk({kind!r}, "producer", {world.bootstrap!r}, {topics!r}, Path({str(tmp_path)!r}), transactional_id="x")
talk.do("init")
talk.ask("transaction", records=talk.records([(0, 0)]), intent="commit", deadline_s=20.0, hold_at="before-commit")
talk.hear()
if {paused}:
    talk.driver.pause()
print(talk.driver.pid, flush=True)
time.sleep(600)
"""
    harness = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
    assert harness.stdout is not None
    pid = int(harness.stdout.readline())
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait(30)
    harness.stdout.close()
    await_gone(pid)


def test_an_unknown_client_is_one_sentence() -> None:
    """The error lists the clients that there are."""
    with pytest.raises(UnknownClientKindError, match=r"no client 'ruby'.*confluent"):
        client_kind("ruby")
