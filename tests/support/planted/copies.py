"""Planted histories of copiers, and of a subject without a log."""

from __future__ import annotations

from typing import Any

from tests.support.planted.busy import A0, A1, B0, B1, Found, busy, found, torn
from tests.support.planted.histories import Plant, Planted
from verification.evidence.row_types import Row
from verification.vocabulary.experiment import ExperimentTopic, TopicRole
from verification.vocabulary.history import Action, Intent, Operation, Outcome

IN, OUT, ALSO = 0, 1, 2


COPIED = (
    ExperimentTopic(name="in", partitions=1, replication=3, min_in_sync=2, role=TopicRole.INPUT),
    ExperimentTopic(name="out", partitions=1, replication=3, min_in_sync=2),
    ExperimentTopic(name="also", partitions=1, replication=3, min_in_sync=2),
)


def _copying(run: str) -> Planted:
    """Ten inputs, of which the first six are copied, three by three."""
    planted = Planted(run=run, topics=COPIED, fan_out=2, order_claimed=False)
    planted.plain(planted.client(), ((IN, 0),) * 10)
    copier = planted.client("copier")
    for first in (0, 3):
        _copy(planted, copier, range(first, first + 3))
    return planted


def _copy(planted: Planted, copier: Any, inputs: range) -> tuple[Operation, list[Row]]:
    sources = [(0, offset) for offset in inputs for _ in (OUT, ALSO)]
    places = [place for _ in inputs for place in ((OUT, 0), (ALSO, 0))]
    if copier.transactional_id is None:
        return planted.plain(copier, places, action=Action.COPY, sources=sources)
    return planted.transaction(copier, places, action=Action.COPY, sources=sources)


def _committed(plant: Plant, offset: int) -> Plant:
    run = plant.experiment.run
    plant.rows["group_offsets"].append({"run": run, "topic_index": IN, "partition": 0, "offset": offset})
    return plant


def clean_copies(run: str) -> tuple[Plant, set[Found]]:
    """Six copied, six committed."""
    return _committed(_copying(run).finish(), 6), set()


def offset_ahead(run: str) -> tuple[Plant, set[Found]]:
    """The group's offset is two inputs beyond the outputs."""
    planted = _copying(run)
    inputs = planted.log[(IN, 0)]
    plant = _committed(planted.finish(), 8)
    return plant, {found("offset-without-output", inputs[offset]) for offset in (6, 7)}


def output_ahead(run: str) -> tuple[Plant, set[Found]]:
    """Outputs of inputs that the group's offset does not cover, by a control copier that died in between."""
    planted = _copying(run)
    _, rows = _copy(planted, planted.client(), range(6, 7))
    return _committed(planted.finish(), 6), {found("output-without-offset", row) for row in rows}


def copied_twice(run: str) -> tuple[Plant, set[Found]]:
    """An input was copied again by a successor."""
    planted = _copying(run)
    _, rows = _copy(planted, planted.client(), range(5, 6))
    return _committed(planted.finish(), 6), {found("duplicate", row) for row in rows}


def copied_thrice(run: str) -> tuple[Plant, set[Found]]:
    """An input was copied again by two successors, one of which copied the next one, too."""
    planted = _copying(run)
    _, rows = _copy(planted, planted.client(), range(5, 6))
    _copy(planted, planted.client(), range(5, 7))
    return _committed(planted.finish(), 7), {found("duplicate", row) for row in rows}


def input_twice(run: str) -> tuple[Plant, set[Found]]:
    """The writer of the inputs, which is no copier, appended one of them again; it is not copied."""
    planted = _copying(run)
    again = planted.append(planted.clients[0], (IN, 0), planted.log[(IN, 0)][0]["_value"], transactional=False)
    return _committed(planted.finish(), 6), {found("duplicate", again)}


def _of_undecided(run: str, decision: str | None) -> tuple[Planted, list[Row], list[Row]]:
    """Two more inputs, in a transaction with this decision, and the copies of the first one; the inputs and the copies."""
    planted = _copying(run)
    intent, outcome = (Intent.ABORT, Outcome.OK) if decision == "abort" else (Intent.COMMIT, Outcome.INFO)
    writer = planted.client("writer")
    _, inputs = planted.transaction(writer, ((IN, 0),) * 2, intent=intent, outcome=outcome, decision=decision)
    copier = planted.client("copier")
    _copy(planted, copier, range(6, 10))
    _, copies = _copy(planted, copier, range(10, 11))
    return planted, inputs, copies


def copied_aborted(run: str) -> tuple[Plant, set[Found]]:
    """An aborted input was copied by a copier that reads uncommitted records; the next one was not."""
    planted, _, copies = _of_undecided(run, "abort")
    return _committed(planted.finish(), 13), {found("aborted-read", row) for row in copies}


def copied_undecided(run: str) -> tuple[Plant, set[Found]]:
    """An input was copied whose transaction is still open, as its coordinator knows."""
    planted, inputs, copies = _of_undecided(run, None)
    plant = _committed(planted.finish(), 12)
    state = {"run": run, "producer_id": inputs[0]["producer_id"], "state": "Ongoing"}
    plant.rows["coordinator_states"].append(state)
    stuck = found("stuck-lso", None, topic_index=IN, partition=0, offset=inputs[0]["offset"])
    return plant, {stuck, *(found("aborted-read", row) for row in copies)}


def copied_as_delivered(run: str) -> tuple[Plant, set[Found]]:
    """An aborted input was delivered to the copier and to the committed capture: the input alone is reported."""
    planted, inputs, _ = _of_undecided(run, "abort")
    plant = _committed(planted.finish(), 13)
    plant.rows["committed"].append(dict(plant.at("uncommitted", IN, 0, inputs[0]["offset"])))
    return plant, {found("aborted-read", inputs[0], observer="committed")}


def torn_without_log(run: str) -> tuple[Plant, set[Found]]:
    """A subject without control records shows part of a transaction, once answered and once not; a client had one twice."""
    planted = busy(run, has_log=False)
    answered, rows = planted.transaction(planted.client("tx-9"), (A0, A1))
    unknown, others = planted.transaction(planted.client("tx-8"), (B0, B1, A1), outcome=Outcome.INFO)
    plant = planted.finish()
    for row in (rows[0], others[2]):
        plant.drop("committed", row["topic_index"], row["partition"], row["offset"])
    plant.rows["committed"].append(dict(plant.at("committed", 1, 0, others[0]["offset"])))
    twice = found("nonmonotonic-poll", others[0], observer="committed")
    return plant, {torn(answered), torn(unknown), twice}


def without_log(run: str) -> tuple[Plant, set[Found]]:
    """A subject without control records, judged by delivered against told: aborted read, zombie, duplicate, lost."""
    planted = busy(run, has_log=False)
    old = planted.client("tx-9")
    _, aborted = planted.transaction(old, (A0,), intent=Intent.ABORT, decision="commit")
    planted.client("tx-9")
    _, zombie = planted.transaction(old, (A1, B0))
    plain = planted.client()
    _, rows = planted.plain(plain, (B1, B1))
    again = planted.append(plain, B1, rows[0]["_value"], transactional=False)
    _, lost = planted.transaction(planted.client("tx-8"), (A0, A1), decision="abort")
    plant = planted.finish()
    return plant, {
        found("aborted-read", aborted[0], observer="careful"),
        found("zombie-write", zombie[1], topic_index=0, partition=1, index=0, offset=zombie[0]["offset"]),
        found("duplicate", again),
        *[found("lost-write", row) for row in lost],
    }
