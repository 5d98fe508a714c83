"""Claims about running workloads: on librdkafka's mock cluster, on misbehaving drivers, and on a real broker."""

from __future__ import annotations

import gzip
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clients import ClientProcess, Clients, SyncPoint
from chaos.cluster import TopicPartition
from chaos.errors import SyncPointError, UnknownClientError
from fixtures.clients.mock_cluster import PARTITIONS, MockCluster
from fixtures.clusters.local.cluster import LocalCluster
from fixtures.workloads import OrderFanOut, WorkloadPlan, topics
from tests.real_cluster import SINGLE_BROKER, launcher
from tests.workload_bench import APP, PATIENCE_S, QUICK, Bench, Start, operations, until
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.history import Action, Operation, Outcome, ProcessRecord, Told


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockCluster]:
    with MockCluster.start(tmp_path_factory.mktemp("mock")) as started:
        yield started


@pytest.fixture
def start(mock: MockCluster, tmp_path: Path) -> Iterator[Start]:
    """Starts workloads on the mock cluster and ends them."""
    benches: list[Bench] = []

    def start_one(plan: WorkloadPlan = QUICK) -> Bench:
        run = secrets.token_hex(6)
        mock.create(topic.name for topic in topics(plan, run))
        benches.append(Bench(tmp_path, plan, mock.bootstrap, run=run))
        return benches[-1]

    yield start_one
    for bench in benches:
        bench.workload.close()
        bench.recorder.seal()


# --- an ordinary run -----------------------------------------------------------------------------------------------


def test_a_workload_offers_what_faults_need(start: Start) -> None:
    """A running workload is what chaos calls clients."""
    clients: Clients = start().workload
    assert {process.role for process in clients.alive()} == {"producer", "observer"}
    assert [process.process for process in clients.alive()] == sorted(each.process for each in clients.alive())


def test_a_run_leaves_complete_evidence(start: Start) -> None:
    """Every operation is in the history once, with acknowledgements; observers and processes are too."""
    bench = start()
    until(lambda: bench.workload.progress().transactions >= 10, "10 transactions")
    history = bench.end()
    progress = bench.workload.progress()
    done = [each for each in history.of(Operation) if each.action is not Action.INIT]
    assert progress.attempted == progress.ok == len(done)
    assert len({(each.process, each.operation) for each in done}) == len(done)
    assert {each.outcome for each in done} == {Outcome.OK}
    assert progress.records == sum(each.records for each in done)
    assert progress.last_ok_ns == max(each.completed_ns or 0 for each in done)
    acked = 0
    for path in bench.directory.acks.iterdir():
        with gzip.open(path, "rt") as lines:
            acked += sum(len(json.loads(line)["acks"]) for line in lines)
    assert acked == progress.records
    assert sorted(path.name for path in bench.directory.observations.iterdir()) == [
        "committed.jsonl.gz",
        "uncommitted.jsonl.gz",
    ]
    ends = {process.process: process.end for process in history.of(ProcessRecord)}
    assert set(ends.values()) == {"stopped"}
    assert len(ends) == 2 + 2 + 1
    assert bench.workload.problems == ()
    assert bench.workload.spoken["transactions"] == "TV1"


def test_the_same_seed_makes_the_same_operations(start: Start) -> None:
    """Two runs of one seed differ in how far they came, not in what each process did."""
    benches = [start(), start()]
    for bench in benches:
        until(lambda: bench.workload.progress().transactions >= 10, "10 transactions")  # noqa: B023
    one, other = (bench.end() for bench in benches)
    for process in (2, 3):
        first, second = ([(each.intent, each.records) for each in operations(h, process)] for h in (one, other))
        common = min(len(first), len(second))
        assert common > 0
        assert first[:common] == second[:common]


def test_observers_read_to_the_ends(start: Start) -> None:
    """Draining waits for the pinned ends, and says who is behind an end that does not come."""
    bench = start()
    # A transaction reaches one partition of each topic; twenty of them reach the first one surely.
    until(lambda: bench.workload.progress().transactions >= 20, "20 transactions")
    bench.workload.stop(PATIENCE_S)
    place = TopicPartition(topic=f"{bench.run}-billing-events", partition=0)
    assert bench.workload.drain_observers({place: 1}, PATIENCE_S) == {}
    behind = bench.workload.drain_observers({place: 10**9}, 0.2)
    assert set(behind) == {"committed", "uncommitted"}
    assert behind["committed"][str(place)] > 0


# --- faults --------------------------------------------------------------------------------------------------------


def test_a_held_process_stands_and_goes_on(start: Start) -> None:
    """Between hold and release the process completes nothing; afterwards it does."""
    bench = start()
    process = bench.first()
    bench.workload.hold(SyncPoint.BEFORE_COMMIT, processes=(process,), timeout_s=PATIENCE_S)
    held_ns = time.monotonic_ns()
    others = bench.workload.progress().ok
    until(lambda: bench.workload.progress().ok > others + 5, "the other processes")
    released_ns = time.monotonic_ns()
    bench.workload.release((process,))
    until(lambda: bench.workload.progress().ok > others + 20, "everybody")
    completed = [each.completed_ns or 0 for each in operations(bench.end(), process.process)]
    assert not [at for at in completed if held_ns < at < released_ns]
    assert [at for at in completed if at > released_ns]


def test_a_sync_point_that_is_not_reached_is_an_error_and_no_trap(start: Start) -> None:
    """A plain producer has no commit: the hold fails in time, and the producer goes on."""
    bench = start()
    plain = next(each for each in bench.workload.alive("producer") if each.transactional_id is None)
    with pytest.raises(SyncPointError, match="plain did not reach before-commit"):
        bench.workload.hold(SyncPoint.BEFORE_COMMIT, processes=(plain,), timeout_s=0.5)
    bench.workload.hold(SyncPoint.AFTER_PRODUCE, processes=(plain,), timeout_s=PATIENCE_S)
    bench.workload.release((plain,))


def test_a_killed_process_is_succeeded_on_demand_only(start: Start) -> None:
    """What it was doing is recorded as it stood; its successor is another process with the same transactional id."""
    bench = start()
    victim = bench.first()
    bench.workload.hold(SyncPoint.BEFORE_COMMIT, processes=(victim,), timeout_s=PATIENCE_S)
    bench.workload.kill(victim)
    assert victim not in bench.workload.alive()
    with pytest.raises(UnknownClientError, match="has ended"):
        bench.workload.pause(victim)
    before = bench.workload.progress().ok
    until(lambda: bench.workload.progress().ok > before + 5, "the other processes")
    assert not [each for each in bench.workload.alive() if each.transactional_id == victim.transactional_id]
    succession = bench.workload.succeed(victim, site=APP, timeout_s=PATIENCE_S)
    assert succession.successor.transactional_id == victim.transactional_id
    assert succession.successor.process > victim.process
    assert succession.producer_id is not None
    until(lambda: bench.workload.progress().ok > before + 30, "everybody")
    history = bench.end()
    last = operations(history, victim.process)[-1]
    assert (last.outcome, last.told, last.decided_ns) == (Outcome.INFO, Told.ABORTED, None)
    assert last.records > 0
    assert operations(history, succession.successor.process)
    ends = {process.process: process.end for process in history.of(ProcessRecord)}
    assert ends[victim.process] == "killed"


def test_stopping_frees_whoever_is_held_or_paused(start: Start) -> None:
    """A fault that was not healed does not keep a workload from ending."""
    bench = start()
    process = bench.first()
    other = next(each for each in bench.workload.alive("producer") if each.transactional_id == f"{bench.run}-1")
    bench.workload.hold(SyncPoint.AFTER_PRODUCE, processes=(process,), timeout_s=PATIENCE_S)
    bench.workload.pause(process)
    bench.workload.pause(other)
    assert bench.workload.stop(PATIENCE_S) == ()
    assert {each.end for each in bench.end().of(ProcessRecord)} == {"stopped"}


def test_a_process_of_another_workload_is_refused(start: Start) -> None:
    """Faults are told when they speak of nobody."""
    nobody = ClientProcess(process=99, role="producer", site=APP, transactional_id=None)
    with pytest.raises(UnknownClientError, match="not part of this workload"):
        start().workload.answers(nobody)


# --- a real broker -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with launcher(tmp_path_factory)(replace(SINGLE_BROKER, partitions=PARTITIONS)) as started:
        yield started


@pytest.mark.cluster
def test_a_paused_zombie_is_fenced_and_its_heir_goes_on(broker: LocalCluster, tmp_path: Path) -> None:
    """Held before its commit, paused, succeeded, resumed: the zombie is answered with a fencing error and retired."""
    plan = OrderFanOut(partitions=PARTITIONS, producers=2, zombie=True, rate=500, transaction_timeout_s=10.0)
    run = secrets.token_hex(6)
    made = topics(plan, run, replication=1, min_in_sync=1)
    admin = AdminClient({"bootstrap.servers": broker.witness_bootstrap})
    for done in admin.create_topics([NewTopic(each.name, each.partitions, 1) for each in made]).values():
        done.result(PATIENCE_S)
    bench = Bench(tmp_path, plan, broker.bootstrap, run=run)
    zombie = bench.first()
    assert zombie.site == "zombie"
    bench.workload.hold(SyncPoint.BEFORE_COMMIT, processes=(zombie,), timeout_s=PATIENCE_S)
    bench.workload.pause(zombie)
    heir = bench.workload.succeed(zombie, site=APP, timeout_s=PATIENCE_S)
    bench.workload.resume(zombie)
    bench.workload.release((zombie,))
    until(lambda: bool(bench.workload.answers(zombie)), "the zombie's answer")
    answer = bench.workload.answers(zombie)[0]
    assert answer.at_ns > heir.initialised_ns
    assert answer.name in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
    done = bench.workload.progress().ok
    until(lambda: bench.workload.progress().ok > done + 10, "the heir and the others")
    bench.workload.stop(PATIENCE_S)
    ends = {
        TopicPartition(topic=each.name, partition=number): stable_end(broker, each.name, number)
        for each in made
        for number in range(each.partitions)
    }
    assert bench.workload.drain_observers(ends, PATIENCE_S) == {}
    history = bench.end()
    told = [each for each in operations(history, zombie.process) if each.outcome is not Outcome.OK]
    assert [each.told for each in told] == [Told.UNKNOWN]
    given = delivered(bench.directory, "committed")
    assert not [each for each in given if each[:2] == (zombie.process, told[0].operation)]
    committed = sum(each.records for each in history.of(Operation) if each.told is Told.COMMITTED)
    plain = sum(each.records for each in history.of(Operation) if each.action is Action.APPEND)
    assert len(given) == len(set(given)) == committed + plain


def stable_end(broker: LocalCluster, topic: str, partition: int) -> int:
    consumer = Consumer(
        {"bootstrap.servers": broker.witness_bootstrap, "group.id": "ends", "isolation.level": "read_committed"}
    )
    _, end = consumer.get_watermark_offsets(Place(topic, partition), timeout=PATIENCE_S)
    consumer.close()
    return int(end)


def delivered(directory: RunDirectory, observer: str) -> list[tuple[int, int, int]]:
    """(process, operation, index) of every record that an observer was given."""
    given = []
    with gzip.open(directory.observations / f"{observer}.jsonl.gz", "rt") as lines:
        for line in lines:
            texts = [text for *_, text in json.loads(line)["records"]]
            given += [(int(text[15:21]), int(text[21:31]), int(text[32:38])) for text in texts]
    return given
