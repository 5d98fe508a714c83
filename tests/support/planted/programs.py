"""Generated histories: a program of steps is played on a small imagined Kafka, then its evidence is tampered with.

A step is a tuple of small numbers, interpreted modulo what there is, so that every program means something and a step
can be left out without making the rest meaningless. Honest programs keep what was told, the log and the readers in
agreement; tampering changes single rows of any kind of evidence, without asking what anomaly that makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.support.planted.histories import Client, Plant, Planted, valued
from verification.evidence.row_types import Row
from verification.vocabulary.experiment import ExperimentTopic, TopicRole
from verification.vocabulary.history import Action, Intent, Outcome

Numbers = tuple[int, int, int]
TOPICS = (
    ExperimentTopic(name="in", partitions=2, replication=3, min_in_sync=2, role=TopicRole.INPUT),
    ExperimentTopic(name="a", partitions=2, replication=3, min_in_sync=2),
    ExperimentTopic(name="b", partitions=1, replication=3, min_in_sync=2),
    ExperimentTopic(name="elsewhere", partitions=1, replication=3, min_in_sync=2),
)
#: The topic that only the bystander writes to.
BYSTANDER = 3
PLACES = ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0))
#: (intent, outcome, decision) that a correct cluster and client can show together.
HONEST_ENDS = (
    (Intent.COMMIT, Outcome.OK, "commit"),
    (Intent.COMMIT, Outcome.OK, "commit"),
    (Intent.ABORT, Outcome.OK, "abort"),
    (Intent.COMMIT, Outcome.INFO, "commit"),
    (Intent.COMMIT, Outcome.INFO, "abort"),
    (Intent.COMMIT, Outcome.FAIL, "abort"),
)
DISHONEST_ENDS = (
    *HONEST_ENDS,
    (Intent.COMMIT, Outcome.OK, "abort"),
    (Intent.COMMIT, Outcome.OK, None),
    (Intent.ABORT, Outcome.OK, "commit"),
    (Intent.COMMIT, Outcome.INFO, None),
    (Intent.COMMIT, Outcome.FAIL, "commit"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is played: steps, then tampering. `shape` chooses claims, copies and whether there is a log."""

    shape: int
    steps: tuple[tuple[str, Numbers], ...]
    tampering: tuple[tuple[str, Numbers], ...] = ()

    def smaller(self) -> list[Program]:
        """Every program with one step or one tampering less."""
        fewer = [replace(self, steps=_without(self.steps, number)) for number in range(len(self.steps))]
        calmer = [replace(self, tampering=_without(self.tampering, number)) for number in range(len(self.tampering))]
        return [*calmer, *fewer]


def _without(entries: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return entries[:number] + entries[number + 1 :]


def _some_places(number: int, length: int) -> list[tuple[int, int]]:
    return [PLACES[2 + (number + step * (1 + number % 2)) % 3] for step in range(1 + length % 4)]


def _transactional(planted: Planted, number: int) -> Client:
    names = ("tx-0", "tx-1")
    wanted = names[number % 2]
    mine = [client for client in planted.clients if client.transactional_id == wanted]
    # The latest instance, or (dishonestly, see `_zombie`) an older one.
    return mine[-1] if mine else planted.client(wanted)


def _transaction(ends: Sequence[Any]) -> Callable[[Planted, Numbers], None]:
    def play(planted: Planted, numbers: Numbers) -> None:
        intent, outcome, decision = ends[numbers[2] % len(ends)]
        places = _some_places(numbers[1], numbers[2])
        client = _transactional(planted, numbers[0])
        planted.transaction(client, places, intent=intent, outcome=outcome, decision=decision)

    return play


def _append(planted: Planted, numbers: Numbers) -> None:
    plain = [client for client in planted.clients if client.transactional_id is None]
    client = plain[numbers[0] % len(plain)] if plain and numbers[0] % 3 else planted.client()
    input_places = [PLACES[numbers[1] % 2]] * (1 + numbers[2] % 3)
    places = input_places if numbers[2] % 2 else _some_places(numbers[1], numbers[2])
    outcome = Outcome.INFO if numbers[2] % 7 == 6 else Outcome.OK
    planted.plain(client, places, outcome=outcome)


def _succession(planted: Planted, numbers: Numbers) -> None:
    planted.client(f"tx-{numbers[0] % 2}")


def _copy(planted: Planted, numbers: Numbers) -> None:
    _copied(planted, numbers, (numbers[0] % 2, numbers[1] % 4))


def _copy_of_transaction(planted: Planted, numbers: Numbers) -> None:
    """An input is written in a transaction that ends in any way, and copied."""
    intent, outcome, decision = DISHONEST_ENDS[numbers[1] % len(DISHONEST_ENDS)]
    client = planted.client("tx-input")
    _, (row,) = planted.transaction(client, [PLACES[numbers[0] % 2]], intent=intent, outcome=outcome, decision=decision)
    _copied(planted, numbers, (row["partition"], row["offset"]))


def _copied(planted: Planted, numbers: Numbers, source: tuple[int, int]) -> None:
    sources = [source] * 2
    places = [(1, 0), (2, 0)]
    if numbers[2] % 2:
        planted.plain(planted.client(), places, action=Action.COPY, sources=sources)
        return
    client = _transactional(planted, numbers[2])
    planted.transaction(client, places, action=Action.COPY, sources=sources)


def _zombie(planted: Planted, numbers: Numbers) -> None:
    old = [client for client in planted.clients if client.transactional_id is not None]
    if old:
        planted.transaction(old[numbers[0] % len(old)], _some_places(numbers[1], numbers[2]))


def _retry(planted: Planted, numbers: Numbers) -> None:
    log = planted.log[PLACES[numbers[0] % 5]]
    data = [row for row in log if row["control"] is None]
    if data:
        row = data[numbers[1] % len(data)]
        client = planted.client(idempotent=False)
        planted.append(client, PLACES[numbers[2] % 5], row["_value"], transactional=False)


def _bystander(planted: Planted, _: Numbers) -> None:
    planted.transaction(planted.client("bystander"), [(BYSTANDER, 0)] * 3)


def _foreign(planted: Planted, numbers: Numbers) -> None:
    planted.append(planted.client(), PLACES[numbers[0] % 5], b"foreign %d" % numbers[1], transactional=False)


HONEST: dict[str, Callable[[Planted, Numbers], None]] = {
    "transaction": _transaction(HONEST_ENDS),
    "append": _append,
    "succession": _succession,
}
STEPS: dict[str, Callable[[Planted, Numbers], None]] = {
    **HONEST,
    "transaction-gone-wrong": _transaction(DISHONEST_ENDS),
    "copy": _copy,
    "copy-of-transaction": _copy_of_transaction,
    "zombie": _zombie,
    "retry": _retry,
    "foreign": _foreign,
}
#: Steps that generated programs do not take by themselves.
ALL_STEPS = {**STEPS, "bystander": _bystander}


def _row(plant: Plant, frame: str, number: int) -> Row | None:
    rows = plant.rows[frame]
    return rows[number % len(rows)] if rows else None


def _drop(plant: Plant, numbers: Numbers) -> None:
    frame = ("log", "committed", "uncommitted", "observations", "acks")[numbers[0] % 5]
    row = _row(plant, frame, numbers[1])
    if row is not None:
        plant.rows[frame].remove(row)


def _show(plant: Plant, numbers: Numbers) -> None:
    row = _row(plant, "uncommitted", numbers[1])
    if row is not None:
        plant.rows["committed"].append(dict(row))


def _change(plant: Plant, numbers: Numbers) -> None:
    frame = ("log", "committed", "observations")[numbers[0] % 3]
    row, other = _row(plant, frame, numbers[1]), _row(plant, "uncommitted", numbers[2])
    if row is not None and other is not None and row.get("control") is None:
        row.update(valued(other["_value"]))


def _observe(plant: Plant, numbers: Numbers) -> None:
    row = _row(plant, "observations", numbers[1])
    if row is not None:
        early = {"poll": row["poll"] + numbers[0] % 3 - 1, "received_ns": row["received_ns"] - numbers[2] * 700_000}
        plant.rows["observations"].append({**row, **early, "position": 1_000 + numbers[2]})


def _hurry(plant: Plant, numbers: Numbers) -> None:
    row = _row(plant, "observations", numbers[1])
    if row is not None:
        row["received_ns"] -= (1 + numbers[2]) * 3_000_000


def _decide(plant: Plant, numbers: Numbers) -> None:
    markers = [row for row in plant.rows["log"] if row["control"] is not None]
    if markers:
        marker = markers[numbers[1] % len(markers)]
        marker["control"] = ("commit", "abort", "other")[numbers[0] % 3]


def _epoch(plant: Plant, numbers: Numbers) -> None:
    row = _row(plant, "log", numbers[1])
    if row is not None:
        row["producer_epoch"] += numbers[0] % 3 - 1


def _renumber(plant: Plant, numbers: Numbers) -> None:
    numbered = [row for row in plant.rows["log"] if row["sequence"] is not None and row["sequence"] >= 0]
    if numbered:
        row = numbered[numbers[1] % len(numbered)]
        row["sequence"] = None if numbers[2] % 7 == 6 else (row["sequence"] + numbers[0] - 10) % (1 << 31)


def _retell(plant: Plant, numbers: Numbers) -> None:
    worked = [operation for operation in plant.operations if operation.action is not Action.INIT]
    if worked:
        operation = worked[numbers[1] % len(worked)]
        outcomes = (Outcome.OK, Outcome.FAIL, Outcome.INFO)
        sizes = (operation.records, 0, operation.records + 1)
        plant.retell(operation, outcome=outcomes[numbers[0] % 3], records=sizes[numbers[2] % 3])


def _forget(plant: Plant, numbers: Numbers) -> None:
    row = _row(plant, "operations", numbers[1])
    if row is not None:
        plant.rows["operations"].remove(row)


def _stand_still(plant: Plant, numbers: Numbers) -> None:
    row = _row(plant, "ends", numbers[1])
    if row is not None:
        row["last_stable_offset"] = max(0, row["last_stable_offset"] - numbers[2] % 5)
        settled = {name: row[name] for name in ("run", "topic_index", "partition")}
        behind = {"high_watermark": 9, "last_stable_offset": 9 - numbers[0] % 2, "before_fencing": numbers[2] % 2 == 0}
        plant.rows["settled"].append({**settled, **behind})


def _coordinator(plant: Plant, numbers: Numbers) -> None:
    row = _row(plant, "log", numbers[1])
    if row is not None:
        states = ("Ongoing", "PrepareCommit", "Empty", "CompleteAbort")
        known = {"run": plant.experiment.run, "producer_id": row["producer_id"]}
        plant.rows["coordinator_states"].append({**known, "state": states[numbers[0] % 4]})
        if numbers[2] % 3 == 0:
            place = {name: row[name] for name in ("topic_index", "partition", "offset")}
            plant.rows["open_producers"].append({**known, **place})


def _swap(plant: Plant, numbers: Numbers) -> None:
    """Two records of one process change places within their partition, in all sources."""
    data = [row for row in plant.rows["log"] if row["control"] is None]
    row = data[numbers[1] % len(data)] if data else None
    writer = ("topic_index", "partition", "process")
    others = [each for each in data if row is not None and all(each[name] == row[name] for name in writer)]
    if row is None or len(others) < 2:
        return
    other = others[(others.index(row) + 1 + numbers[2] % (len(others) - 1)) % len(others)]
    values = {row["offset"]: other["_value"], other["offset"]: row["_value"]}
    for frame in ("log", "committed", "uncommitted", "observations"):
        for each in plant.rows[frame]:
            here = (each["topic_index"], each["partition"]) == (row["topic_index"], row["partition"])
            if here and each["offset"] in values and each.get("control") is None:
                each.update(valued(values[each["offset"]]))


def _strand(plant: Plant, numbers: Numbers) -> None:
    named = [operation for operation in plant.operations if operation.transactional_id is not None]
    if named:
        operation = named[numbers[1] % len(named)]
        # Shorter than the transaction timeout, as long, or longer: a producer may itself have stood still.
        lasts_ns = plant.rows["runs"][0]["transaction_timeout_ns"] + numbers[0] % 3 - 1
        completed = {"completed_ns": operation.invoked_ns + lasts_ns} if numbers[2] % 2 else {}
        plant.retell(operation, fatal=True, **completed)


TAMPERING: dict[str, Callable[[Plant, Numbers], None]] = {
    "drop": _drop,
    "show": _show,
    "change": _change,
    "observe": _observe,
    "hurry": _hurry,
    "decide": _decide,
    "epoch": _epoch,
    "renumber": _renumber,
    "retell": _retell,
    "forget": _forget,
    "stand-still": _stand_still,
    "coordinator": _coordinator,
    "swap": _swap,
    "strand": _strand,
}


def build(program: Program, run: str) -> Plant:
    """The evidence of a program."""
    copies = program.shape % 3 == 0
    planted = Planted(
        run=run,
        topics=TOPICS,
        fan_out=2 if copies else None,
        at_least_once=program.shape % 4 == 0,
        order_claimed=program.shape % 2 == 0,
        survival_claimed=program.shape % 5 < 3,
        has_log=program.shape % 7 != 6,
    )
    for name, numbers in program.steps:
        ALL_STEPS[name](planted, numbers)
    plant = planted.finish()
    if copies:
        for partition in (0, 1):
            offset = (program.shape + partition) % 5 - 1
            group = {"run": run, "topic_index": 0, "partition": partition, "offset": offset}
            plant.rows["group_offsets"].append(group)
    for name, numbers in program.tampering:
        TAMPERING[name](plant, numbers)
    return plant


_NUMBERS = st.tuples(st.integers(0, 20), st.integers(0, 60), st.integers(0, 20))


def _entries(names: Sequence[str], size_max: int) -> st.SearchStrategy[tuple[tuple[str, Numbers], ...]]:
    return st.lists(st.tuples(st.sampled_from(list(names)), _NUMBERS), max_size=size_max).map(tuple)


def honest_programs() -> st.SearchStrategy[Program]:
    """Programs in which nothing is wrong; without copies, whose offsets would have to agree."""
    return st.builds(Program, shape=st.sampled_from([1, 2, 4, 5]), steps=_entries(list(HONEST), 12))


def programs() -> st.SearchStrategy[Program]:
    """Any programs, with up to four pieces of tampering."""
    return st.builds(
        Program, shape=st.integers(0, 20), steps=_entries(list(STEPS), 10), tampering=_entries(list(TAMPERING), 4)
    )
