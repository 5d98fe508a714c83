"""Claims about workloads before anything runs."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chaos.faults import CutFollowers
from fixtures.clients.errors import WorkloadPlanError
from fixtures.workloads import WORKLOADS, Copy, IdempotentAppend, OrderFanOut, WorkloadPlan, names, observers, topics
from fixtures.workloads.plans import watchers
from fixtures.workloads.record_values import Author
from fixtures.workloads.slots import APP, ZOMBIE, Appends, Drawn, Script, Transactions
from suites.recovery import test_partitioned_leader as partitioned
from verification.vocabulary.experiment import Isolation, TopicRole
from verification.vocabulary.history import Action, Intent
from verification.vocabulary.identity import Kind, decode

RUN = "a1b2c3d4e5f6"
PLANS: tuple[WorkloadPlan, ...] = (OrderFanOut(partitions=4), IdempotentAppend(partitions=4), Copy(partitions=4))
TRANSACTIONS = Transactions(topics=(0, 1, 2), partitions=6, records=30, abort_ratio=0.2)
DRAW = """
from random import Random
from fixtures.workloads.slots import Transactions
script = Transactions(topics=(0, 1, 2), partitions=6, records=30, abort_ratio=0.2)
random = Random("7:producer-0:0")
print([script.draw(random) for _ in range(20)])
"""


def drawn(script: Script, seed: str, count: int = 200) -> list[Drawn]:
    random = Random(seed)
    return [script.draw(random) for _ in range(count)]


def test_the_same_seed_draws_the_same_operations() -> None:
    """Partitions, record counts and aborts depend on the seed alone, and on all of it."""
    assert drawn(TRANSACTIONS, "7:producer-0:0") == drawn(TRANSACTIONS, "7:producer-0:0")
    assert drawn(TRANSACTIONS, "7:producer-0:0") != drawn(TRANSACTIONS, "8:producer-0:0")
    assert drawn(TRANSACTIONS, "7:producer-0:0") != drawn(TRANSACTIONS, "7:producer-0:1")


def test_another_interpreter_draws_the_same_operations() -> None:
    """Nothing depends on the interpreter's hash seed."""
    root = Path(__file__).resolve().parents[1]
    results = {
        subprocess.run(
            [sys.executable, "-c", DRAW],
            cwd=root,
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(results) == 1


def test_every_transaction_writes_to_every_topic() -> None:
    """Each transaction reaches all three topics, at most two partitions of each, within its bounds."""
    for each in drawn(TRANSACTIONS, "1"):
        assert each.action is Action.TRANSACTION
        assert {topic for topic, _ in each.places} == {0, 1, 2}
        assert 15 <= len(each.places) <= 45
        for topic in (0, 1, 2):
            assert 1 <= len({partition for index, partition in each.places if index == topic}) <= 2


def test_tiny_transactions_still_reach_every_topic() -> None:
    """The number of topics is a lower bound of the records."""
    tiny = Transactions(topics=(0, 1, 2), partitions=2, records=1, abort_ratio=0.0)
    assert all({topic for topic, _ in each.places} == {0, 1, 2} for each in drawn(tiny, "1"))


def test_a_seeded_share_aborts() -> None:
    """One fifth of many transactions means to abort; none does at ratio 0."""
    intents = Counter(each.intent for each in drawn(TRANSACTIONS, "1", 1000))
    assert 150 <= intents[Intent.ABORT] <= 250
    none = Transactions(topics=(0,), partitions=1, records=5, abort_ratio=0.0)
    assert {each.intent for each in drawn(none, "1")} == {Intent.COMMIT}


def test_appends_have_no_intent_and_reach_every_partition() -> None:
    """Plain records spread over all partitions of their topics."""
    appends = drawn(Appends(topics=(0, 1), partitions=3, records=10), "1")
    assert {each.intent for each in appends} == {None}
    assert {place for each in appends for place in each.places} == {(t, p) for t in (0, 1) for p in range(3)}


def test_identities_number_records_within_operation_and_partition() -> None:
    """A record alone says which operation, which place, and the how-manieth of its process in its partition it is."""
    author = Author(run=RUN, process=5, record_size=160)
    orders: Counter[tuple[int, int]] = Counter()
    for number, each in enumerate(drawn(TRANSACTIONS, "1", 20)):
        for index, topic, partition, value in author.records(number, each):
            identity = decode(value.encode("ascii"))
            assert identity is not None
            assert (identity.run, identity.process, identity.operation) == (RUN, 5, number)
            assert (identity.index, identity.count, identity.kind) == (index, len(each.places), Kind.TRANSACTION)
            assert (identity.topic_index, identity.intended_partition) == (topic, partition)
            assert identity.send_order == orders[topic, partition]
            orders[topic, partition] += 1
            assert len(value) == 160


def test_registered_workloads_are_the_three() -> None:
    """A workload that is not registered cannot be asked for."""
    assert {"order-fan-out": OrderFanOut, "idempotent-append": IdempotentAppend, "copy": Copy} == WORKLOADS


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: type(plan).__name__)
def test_topics_are_unique_per_run_and_outputs_come_first(plan: WorkloadPlan) -> None:
    """A topic's position is its index, outputs before inputs, and the run's name stands in front."""
    made = topics(plan, RUN)
    assert [topic.name for topic in made] == [f"{RUN}-{name}" for name in (*plan.outputs, *plan.inputs)]
    assert [topic.role for topic in made] == [TopicRole.OUTPUT] * len(plan.outputs) + [TopicRole.INPUT] * len(
        plan.inputs
    )
    assert set(names(plan, RUN).values()) == {topic.name for topic in made}
    assert {slot.site for slot in (*plan.writers(RUN), *watchers(plan))} == set(plan.sites)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: type(plan).__name__)
def test_slots_have_names_and_transactional_ids_of_their_own(plan: WorkloadPlan) -> None:
    """No two places of a workload fence each other."""
    slots = (*plan.writers(RUN), *watchers(plan))
    ids = [slot.transactional_id for slot in slots if slot.transactional_id is not None]
    assert len({slot.name for slot in slots}) == len(slots)
    assert len(set(ids)) == len(ids)
    assert all(each.startswith(RUN) for each in ids)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: type(plan).__name__)
def test_the_paces_of_all_writers_add_up_to_the_rate(plan: WorkloadPlan) -> None:
    """The load is what was asked for, before copiers multiply their inputs."""
    total = 0.0
    for slot in plan.writers(RUN):
        if isinstance(slot.work, Transactions | Appends):
            total += slot.work.records / slot.pause_s
    copies = plan.fan_out or 0
    assert total * (1 + copies) == pytest.approx(plan.rate)


def test_an_unreplicated_topic_has_one_replica_and_the_others_three() -> None:
    """Only the named topic loses its replicas."""
    made = topics(OrderFanOut(partitions=2, unreplicated=("billing-events",)), RUN)
    assert [(topic.replication, topic.min_in_sync) for topic in made] == [(1, 1), (3, 2), (3, 2)]


def test_a_zombie_has_a_site_of_its_own() -> None:
    """Exactly the first producer, or the first copier set apart, can be cut off alone."""
    for plan in (OrderFanOut(partitions=2, zombie=True), Copy(partitions=2, apart=True)):
        alone = [slot for slot in plan.writers(RUN) if slot.site == ZOMBIE]
        assert [slot.name for slot in alone] in (["producer-0"], ["copier-0"])
        assert ZOMBIE in plan.sites
    assert {slot.site for slot in OrderFanOut(partitions=2).writers(RUN)} == {APP}


def test_plain_records_come_from_one_more_producer_or_from_none() -> None:
    """Plain records are written by a process without a transactional id."""
    plain = [slot for slot in OrderFanOut(partitions=2).writers(RUN) if slot.transactional_id is None]
    assert [slot.name for slot in plain] == ["plain"]
    assert all(slot.transactional_id for slot in OrderFanOut(partitions=2, plain_ratio=0.0).writers(RUN))


def test_a_dishonest_observer_declares_what_it_does_not_do() -> None:
    """The control's observer is declared read_committed and reads uncommitted; an honest one does what it declares."""
    for plan, real in (
        (OrderFanOut(partitions=2), "read_committed"),
        (OrderFanOut(partitions=2, dishonest_observer=True), "read_uncommitted"),
    ):
        declared = {observer.name: observer.isolation for observer in observers(plan)}
        assert declared == {"committed": Isolation.COMMITTED, "uncommitted": Isolation.UNCOMMITTED}
        assert {slot.name: slot.isolation for slot in watchers(plan)} == {
            "committed": real,
            "uncommitted": "read_uncommitted",
        }


def test_copies_without_transactions_have_no_transactional_id() -> None:
    """The control orders really do without."""
    for order in ("write-then-offsets", "offsets-then-write"):
        copiers = [slot for slot in Copy(partitions=2, order=order).writers(RUN) if slot.role == "copier"]
        assert {slot.transactional_id for slot in copiers} == {None}
        assert {slot.group for slot in copiers} == {f"{RUN}-copiers"}


def test_static_members_have_instance_ids_that_their_successors_keep() -> None:
    """The instance id belongs to the slot."""
    copiers = [slot for slot in Copy(partitions=2, static_membership=True).writers(RUN) if slot.role == "copier"]
    assert [slot.group_instance_id for slot in copiers] == ["copier-0", "copier-1"]


def test_order_is_claimed_only_where_it_is_promised() -> None:
    """A producer that is not idempotent may reorder when it retries."""
    assert IdempotentAppend(partitions=1).order_claimed
    assert not IdempotentAppend(partitions=1, idempotence=False).order_claimed


def test_impossible_workloads_are_refused_in_one_sentence() -> None:
    """What no client can run is refused before anything starts."""
    with pytest.raises(WorkloadPlanError, match="needs acks=all"):
        IdempotentAppend(partitions=1, acks="1")
    with pytest.raises(WorkloadPlanError, match="no order of copying 'backwards'"):
        Copy(partitions=1, order="backwards")
    with pytest.raises(WorkloadPlanError, match="1 to 3 topics"):
        Copy(partitions=1, copies=4)


def test_every_transaction_meets_a_cut_that_must_be_written_to() -> None:
    """A follower leaves the in-sync set only when something is written: producers must not all wait elsewhere first."""
    given: dict[str, Any] = {}
    partitioned.test_all_followers_cut_from_the_leader(given.update)
    (step,) = given["schedule"]
    fault = step.fault
    assert isinstance(fault, CutFollowers)
    place = (given["workload"].outputs.index(fault.topic), fault.partition)
    writers = [slot for slot in given["workload"].writers("run") if isinstance(slot.work, Transactions)]
    assert len(writers) == 10
    for seed in range(200):
        assert place in writers[0].work.draw(Random(seed)).places  # type: ignore[union-attr]
