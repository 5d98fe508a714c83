"""What is special about the `java` driver: two processes in one group, exceptions as error objects, and TV2."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.protocol import Py4JJavaError

from fixtures.clients.driver import Driver
from fixtures.clients.errors import DriverDiedError
from fixtures.clients.java import launch
from fixtures.clients.java.errors import Translator
from fixtures.clients.java.gateway import Jvm
from fixtures.clients.outcomes import classify
from fixtures.clusters.local.cluster import LocalCluster
from tests.driver_talk import ROOT, Talk
from tests.real_cluster import SINGLE_BROKER, launcher
from verification.vocabulary.history import Outcome

pytestmark = [
    pytest.mark.cluster,
    # Newer Pythons mind that a JVM is forked here from a process with threads; a driver has only one when it does that.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

PARTITIONS = 2
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with launcher(tmp_path_factory)(SINGLE_BROKER) as started:
        yield started


@pytest.fixture
def topic(broker: LocalCluster) -> str:
    name = secrets.token_hex(4)
    admin = AdminClient({"bootstrap.servers": broker.witness_bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(PATIENCE_S)
    return name


@pytest.fixture
def talk(broker: LocalCluster, topic: str, tmp_path: Path) -> Iterator[Callable[..., Talk]]:
    """Opens producers and ends them all."""
    opened: list[Talk] = []

    def open_one(**more: Any) -> Talk:
        opened.append(Talk("java", "producer", broker.witness_bootstrap, [topic], tmp_path, **more))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[Talk, int]]:
    """A driver that needs no broker, and its JVM's process id."""
    talk = Talk("java", "observer", "127.0.0.1:1", ["nowhere"], tmp_path)
    children = Path(f"/proc/{talk.driver.pid}/task/{talk.driver.pid}/children").read_text(encoding="ascii").split()
    assert len(children) == 1
    yield talk, int(children[0])
    talk.close()


def state(pid: int) -> str:
    """The kernel's letter for the process, Z when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


def await_state(pid: int, wanted: str) -> None:
    began = time.monotonic()
    while state(pid) not in wanted:
        assert time.monotonic() - began < PATIENCE_S, f"process {pid} is in state {state(pid)} and not in {wanted}"
        time.sleep(0.02)


# --- two processes -------------------------------------------------------------------------------------------------


def test_pause_and_kill_reach_the_jvm(alone: tuple[Talk, int]) -> None:
    """The JVM is in the driver's process group: it stops, goes on and dies with it."""
    talk, jvm = alone
    assert os.getpgid(jvm) == talk.driver.pid
    talk.driver.pause()
    await_state(jvm, "T")
    talk.driver.resume()
    await_state(jvm, "SR")
    assert talk.do("poll", max_records=1, timeout_s=0.1)["error"] is not None
    talk.driver.kill()
    await_state(jvm, "Z")


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_the_jvm_does_not_outlive_the_python_half(alone: tuple[Talk, int], paused: bool) -> None:
    """Only the Python process is killed: the JVM ends too, also when it is stopped."""
    talk, jvm = alone
    if paused:
        talk.driver.pause()
        await_state(jvm, "T")
    os.kill(talk.driver.pid, signal.SIGKILL)
    await_state(jvm, "Z")


def test_a_jvm_that_dies_takes_the_driver_with_it(alone: tuple[Talk, int]) -> None:
    """Half a driver does not go on: the next operation ends it, and is not tried again."""
    talk, jvm = alone
    os.kill(jvm, signal.SIGKILL)
    with pytest.raises(DriverDiedError, match="exit code 1"):
        talk.do("poll", max_records=1, timeout_s=0.1)


def test_close_ends_both(alone: tuple[Talk, int]) -> None:
    """A driver that was told to close leaves no JVM behind."""
    talk, jvm = alone
    assert talk.do("close")["error"] is None
    await_state(jvm, "Z")


@pytest.mark.parametrize(
    ("java", "classpath", "said"),
    [("false", "", "The JVM ended with exit code 1"), ("/nonexistent/java", "", "No such file or directory")],
)
def test_a_jvm_that_does_not_start_is_said(tmp_path: Path, java: str, classpath: str, said: str) -> None:
    """The driver ends, and its log says why."""
    command = (sys.executable, "-m", "fixtures.clients.java.driver", "--java", java, "--classpath", classpath)
    driver = Driver.start(command, name="broken", directory=tmp_path, work_directory=ROOT)
    try:
        driver.send({"do": "configure", "role": "producer"})
        with pytest.raises(DriverDiedError, match=f"(?s)exit code 1.*{said}"):
            driver.receive(waiting_for="speak", timeout_s=PATIENCE_S)
    finally:
        driver.close()


# --- what it says --------------------------------------------------------------------------------------------------


def test_the_end_of_each_transaction_raises_the_epoch(talk: Callable[..., Talk]) -> None:
    """With brokers of 4.0 and later the driver really speaks transaction.version 2, and tells the epoch of the records."""
    producer = talk(transactional_id=secrets.token_hex(4))
    done = producer.do("init")
    assert done["protocol"] == {"transactions": "TV2"}
    ended = [producer.transaction([(0, 0)], intent) for intent in ("commit", "abort", "commit")]
    assert [each["producer_epoch"] for each in ended] == [done["producer_epoch"] + raised for raised in range(3)]
    assert {each["producer_id"] for each in ended} == {done["producer_id"]}


def test_records_of_a_partition_keep_their_order(talk: Callable[..., Talk]) -> None:
    """Offsets rise with the indexes of an operation's records, partition by partition."""
    producer = talk()
    done = producer.do("append", records=producer.records([(0, index % PARTITIONS) for index in range(40)]))
    offsets = {index: (partition, offset) for index, _, partition, offset, _ in done["acks"]}
    assert [offsets[index] for index in range(40)] == [(index % PARTITIONS, index // PARTITIONS) for index in range(40)]


def test_one_bad_record_does_not_hide_the_others(talk: Callable[..., Talk]) -> None:
    """The record that the library refuses has its error, those around it have their offsets."""
    producer = talk(settings={"max.request.size": 1000})
    records = producer.records([(0, 0)] * 3)
    records[1][3] = records[1][3].ljust(2000, ".")
    acks = {ack[0]: ack[3:] for ack in producer.do("append", records=records)["acks"]}
    assert (acks[0], acks[2]) == ([0, None], [1, None])
    offset, error = acks[1]
    assert (offset, error["code"], error["name"]) == (-1, 10, "MESSAGE_TOO_LARGE")
    assert classify("record", error) is Outcome.FAIL


def test_a_record_that_the_library_throws_at_is_not_definite(talk: Callable[..., Talk]) -> None:
    """Sending outside a transaction throws after the record was queued: each is answered, and nothing is claimed."""
    producer = talk(transactional_id=secrets.token_hex(4))
    assert producer.do("init")["error"] is None
    done = producer.do("append", records=producer.records([(0, 0), (0, 1)]))
    assert [(ack[0], ack[4]["code"], ack[4]["name"]) for ack in done["acks"]] == [
        (0, -1000, "IllegalStateException"),
        (1, -1000, "IllegalStateException"),
    ]
    assert {classify("record", ack[4]) for ack in done["acks"]} == {Outcome.INFO}


# --- exceptions ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    command = launch.command(None)
    java, classpath = (command[command.index(option) + 1] for option in ("--java", "--classpath"))
    started = Jvm(java, classpath)
    started.connect()
    yield started
    started.close()


@pytest.mark.parametrize(
    ("thrown", "state", "answer", "traits"),
    [
        ("ProducerFencedException", "IN_TRANSACTION", (90, "PRODUCER_FENCED"), {"fatal"}),
        ("OutOfOrderSequenceException", "ABORTABLE_ERROR", (45, "OUT_OF_ORDER_SEQUENCE_NUMBER"), {"fatal"}),
        ("TransactionalIdAuthorizationException", "", (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"), {"fatal"}),
        ("InvalidTxnStateException", "FATAL_ERROR", (48, "INVALID_TXN_STATE"), {"fatal"}),
        ("TransactionAbortableException", "ABORTABLE_ERROR", (120, "TRANSACTION_ABORTABLE"), {"abortable"}),
        ("InvalidProducerEpochException", "ABORTABLE_ERROR", (47, "INVALID_PRODUCER_EPOCH"), {"abortable"}),
        ("NotLeaderOrFollowerException", "", (6, "NOT_LEADER_OR_FOLLOWER"), {"retriable"}),
        # A commit that ran into max.block.ms may be called again, and nothing else may be called.
        ("TimeoutException", "COMMITTING_TRANSACTION", (7, "REQUEST_TIMED_OUT"), {"retriable"}),
        # A record that expired leaves a transaction to abort.
        ("TimeoutException", "ABORTABLE_ERROR", (7, "REQUEST_TIMED_OUT"), {"retriable", "abortable"}),
    ],
)
def test_exceptions_become_error_objects(
    jvm: Jvm, thrown: str, state: str, answer: tuple[int, str], traits: set[str]
) -> None:
    """Code and name are the library's own; what may be done next follows its documentation and its state."""
    exception = getattr(jvm.root.org.apache.kafka.common.errors, thrown)("because")
    error = Translator(jvm, lambda: state).error_of(Py4JJavaError("", exception))
    assert (error["code"], error["name"], error["reason"]) == (*answer, f"{thrown}: because")
    assert {trait for trait in ("fatal", "retriable", "abortable") if error[trait]} == traits


def test_what_wraps_an_exception_does_not_hide_it(jvm: Jvm) -> None:
    """Wrappers are taken off, and an exception without a code has that of its cause."""
    fenced = jvm.root.org.apache.kafka.common.errors.ProducerFencedException("because")
    wrapped = jvm.root.java.util.concurrent.ExecutionException("outer", fenced)
    failed = jvm.root.org.apache.kafka.common.KafkaException("in an error state", fenced)
    translator = Translator(jvm)
    assert translator.error_of(Py4JJavaError("", wrapped))["reason"] == "ProducerFencedException: because"
    assert translator.error_of(Py4JJavaError("", failed))["code"] == 90
    assert translator.error_of(Py4JJavaError("", failed))["reason"] == "KafkaException: in an error state"
    bare = jvm.root.org.apache.kafka.clients.consumer.CommitFailedException("gone")
    error = translator.error_of(Py4JJavaError("", bare))
    assert (error["code"], error["name"], error["fatal"]) == (-1000, "CommitFailedException", False)
