"""Histories with one thing wrong each, and the whole set of what must be found in them.

A case is a function from a run id to a plant and its expected violations, folded or not: `Found` tuples are what the
checks return before folding, so that nothing can hide in a fold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.planted import MS, Plant, Planted, valued
from verification.experiment import Topic, TopicRole
from verification.history import Action, Intent, Operation, Outcome
from verification.identity import Identity, Kind
from verification.rows import Row

#: (anomaly, process, operation, index, topic index, partition, offset, observer)
Found = tuple[str, Any, Any, Any, Any, Any, Any, Any]
Case = Callable[[str], tuple[Plant, set[Found]]]

A0, A1, B0, B1 = (0, 0), (0, 1), (1, 0), (1, 1)
ALL = (A0, A1, B0, B1)


def found(anomaly: str, row: Row | None, *, observer: str | None = None, place: bool = True, **over: Any) -> Found:
    """A violation about a record, at its place unless said otherwise."""
    names = ("process", "operation", "index", "topic_index", "partition", "offset")
    values = {name: None if row is None else row.get(name) for name in names}
    if not place:
        values |= {"topic_index": None, "partition": None, "offset": None}
    values |= over
    process, operation, index, topic_index, partition, offset = (values[name] for name in names)
    return (anomaly, process, operation, index, topic_index, partition, offset, observer)


def torn(operation: Operation) -> Found:
    """A torn transaction."""
    return ("torn-transaction", operation.process, operation.operation, None, None, None, None, None)


def busy(run: str, **options: Any) -> Planted:
    """A run in which much happens and nothing is wrong."""
    planted = Planted(run=run, **options)
    first, second = planted.client("tx-0"), planted.client("tx-1")
    idempotent = planted.client()
    for client in (first, second, first):
        planted.transaction(client, (*ALL, A0))
        planted.transaction(client, (A0, B1), intent=Intent.ABORT, decision="abort")
    planted.plain(idempotent, (A0, A0, B0))
    return planted


def clean(run: str) -> tuple[Plant, set[Found]]:
    """Commits, aborts, unknown outcomes both ways, fences, refused writes: all of it is allowed."""
    planted = busy(run)
    sender, plain = planted.client("tx-2"), planted.client()
    planted.transaction(sender, ALL, outcome=Outcome.INFO)
    planted.transaction(sender, ALL, outcome=Outcome.INFO, decision="abort")
    successor = planted.client("tx-2")
    planted.transaction(successor, ALL)
    planted.transaction(sender, (), outcome=Outcome.FAIL, decision=None)
    planted.plain(plain, (A1,), outcome=Outcome.INFO)
    return planted.finish(), set()


def lost_transaction(run: str) -> tuple[Plant, set[Found]]:
    """Told committed, but the markers say abort."""
    planted = busy(run)
    _, rows = planted.transaction(planted.client("tx-9"), (A0, B1), decision="abort")
    return planted.finish(), {found("lost-write", row) for row in rows}


def lost_append(run: str) -> tuple[Plant, set[Found]]:
    """An acknowledged plain record that the log does not have; its offset holds another one."""
    planted = busy(run)
    client = planted.client()
    _, rows = planted.plain(client, (B0, B0))
    planted.log[B0].pop()
    planted.plain(planted.client(), (B0,))
    return planted.finish(), {found("lost-write", rows[1])}


def lost_without_a_place(run: str) -> tuple[Plant, set[Found]]:
    """A transaction was told committed; no record of it was ever seen anywhere."""
    planted = busy(run)
    client = planted.client("tx-9")
    operation, _ = planted.transaction(client, ())
    plant = planted.finish()
    plant.retell(operation, records=2)
    who = {"process": client.process, "operation": operation.operation}
    return plant, {found("lost-write", {**who, "index": index}) for index in (0, 1)}


def torn_by_marker(run: str) -> tuple[Plant, set[Found]]:
    """One partition was told to commit, the other to abort."""
    planted = busy(run)
    client = planted.client("tx-9")
    operation, _ = planted.transaction(client, (A0, A1), decision=None)
    planted.mark(client, A0, "commit")
    planted.mark(client, A1, "abort")
    return planted.finish(), {torn(operation)}


def torn_unknown(run: str) -> tuple[Plant, set[Found]]:
    """An unknown outcome must be all or nothing; here a record is gone from the log."""
    planted = busy(run)
    client = planted.client("tx-9")
    operation, _ = planted.transaction(client, (A0, A1, A1), outcome=Outcome.INFO, decision=None)
    planted.log[A1].pop()
    for place in (A0, A1):
        planted.mark(client, place, "commit")
    return planted.finish(), {torn(operation)}


def torn_by_hiding(run: str) -> tuple[Plant, set[Found]]:
    """Committed everywhere, but readers are not given one record; its absence is not reported again."""
    planted = busy(run)
    operation, rows = planted.transaction(planted.client("tx-9"), (A0, A1))
    plant = planted.finish()
    plant.drop("committed", 0, 1, rows[1]["offset"])
    return plant, {torn(operation)}


def hidden(run: str) -> tuple[Plant, set[Found]]:
    """A committed transaction of which readers are given nothing at all, nor a plain record."""
    planted = busy(run)
    _, rows = planted.transaction(planted.client("tx-9"), (A0, A1))
    _, plain = planted.plain(planted.client(), (B1,))
    plant = planted.finish()
    for row in (*rows, *plain):
        plant.drop("committed", row["topic_index"], row["partition"], row["offset"])
    return plant, {found("hidden-committed", row) for row in (*rows, *plain)}


def duplicate(run: str) -> tuple[Plant, set[Found]]:
    """A retry without idempotence appended a second and a third copy."""
    planted = busy(run)
    client = planted.client(idempotent=False)
    _, rows = planted.plain(client, (A0, A0))
    second = planted.append(client, A0, rows[0]["_value"], transactional=False)
    planted.append(client, A0, rows[0]["_value"], transactional=False)
    return planted.finish(), {found("duplicate", second)}


def aborted_read_by_capture(run: str) -> tuple[Plant, set[Found]]:
    """The committed capture was given an aborted record."""
    planted = busy(run)
    _, rows = planted.transaction(planted.client("tx-9"), (A0, A1), intent=Intent.ABORT, decision="abort")
    plant = planted.finish()
    plant.rows["committed"].append(plant.at("uncommitted", 0, 0, rows[0]["offset"]))
    return plant, {found("aborted-read", rows[0], observer="committed")}


def aborted_read_by_observer(run: str) -> tuple[Plant, set[Found]]:
    """A live reader was given a record whose client was told that it is aborted; the log says commit."""
    planted = busy(run)
    _, rows = planted.transaction(planted.client("tx-9"), (A0,), intent=Intent.ABORT, decision="commit")
    return planted.finish(), {found("aborted-read", rows[0], observer="careful")}


def early_read(run: str) -> tuple[Plant, set[Found]]:
    """A read_committed observer had it before commit was invoked; one microsecond counts."""
    planted = busy(run)
    operation, rows = planted.transaction(planted.client("tx-9"), (A0, A0))
    plant = planted.finish()
    for row, early_ns in zip(rows, (1_000, 0), strict=True):
        place = (row["topic_index"], row["partition"], row["offset"])
        seen = [each for each in plant.rows["observations"] if each["committed_reader"]]
        (mine,) = [each for each in seen if (each["topic_index"], each["partition"], each["offset"]) == place]
        mine["received_ns"] = (operation.decided_ns or 0) - early_ns
    return plant, {found("early-read", rows[0], observer="careful")}


def zombie_by_time(run: str) -> tuple[Plant, set[Found]]:
    """Decided after the successor was initialised, and committed all the same."""
    planted = busy(run)
    old = planted.client("tx-9")
    planted.transaction(old, (A0,))
    planted.client("tx-9")
    old.producer_id += 500
    _, rows = planted.transaction(old, (B1, A1))
    return planted.finish(), {found("zombie-write", rows[1])}


def zombie_by_epoch(run: str) -> tuple[Plant, set[Found]]:
    """A plain record of an older epoch stands after a newer epoch of its producer id."""
    planted = busy(run)
    client = planted.client()
    planted.plain(client, (A0, B0))
    client.epoch = 3
    planted.plain(client, (A0,))
    client.epoch = 2
    _, rows = planted.plain(client, (A0,))
    return planted.finish(), {found("zombie-write", rows[0])}


def reordered(run: str, *, order_claimed: bool = True) -> tuple[Plant, set[Found]]:
    """Two records of one process changed places."""
    planted = busy(run, order_claimed=order_claimed)
    client = planted.client()
    _, rows = planted.plain(client, (A0, A0, A0))
    contents = ("_value", "digest", "identity_digest", "index", "send_order")
    values = [{name: row[name] for name in contents} for row in rows]
    rows[0].update(values[1])
    rows[1].update(values[0])
    return planted.finish(), {found("reordered-write", rows[1])}


def reordered_unclaimed(run: str) -> tuple[Plant, set[Found]]:
    """The same where nobody claims order."""
    return reordered(run, order_claimed=False)[0], set()


def back(run: str) -> tuple[Plant, set[Found]]:
    """An observer was given a record again, after a later one."""
    planted = busy(run)
    plant = planted.finish()
    eager = [row for row in plant.rows["observations"] if not row["committed_reader"]]
    again = next(row for row in eager if (row["topic_index"], row["partition"]) == A0)
    plant.rows["observations"].append({**again, "poll": 99, "position": 0})
    return plant, {found("nonmonotonic-poll", again, observer="eager")}


def skipped(run: str) -> tuple[Plant, set[Found]]:
    """Both observers and the uncommitted capture each miss a record in the middle."""
    planted = busy(run)
    _, rows = planted.transaction(planted.client("tx-9"), (A0, A1, B0))
    _, aborted = planted.transaction(planted.client("tx-8"), (A0,), intent=Intent.ABORT, decision="abort")
    planted.plain(planted.client(), ALL)
    plant = planted.finish()
    missing = {"careful": rows[0], "eager": aborted[0]}
    for number, row in enumerate(missing.values()):
        plant.rows["observations"] = [
            each
            for each in plant.rows["observations"]
            if (each["observer_index"], each["topic_index"], each["partition"], each["offset"])
            != (number, row["topic_index"], row["partition"], row["offset"])
        ]
    plant.drop("uncommitted", 0, 1, rows[1]["offset"])
    expected = {found("poll-skip", row, observer=name) for name, row in missing.items()}
    return plant, expected | {found("poll-skip", rows[1], observer="uncommitted")}


def inconsistent(run: str) -> tuple[Plant, set[Found]]:
    """An observer was once given another record at an offset, a capture a value with another tail."""
    planted = busy(run)
    client = planted.client()
    _, rows = planted.plain(client, (A0, B0))
    plant = planted.finish()
    gone = Identity(
        run=run,
        process=client.process,
        operation=0,
        kind=Kind.PLAIN,
        index=1,
        count=2,
        topic_index=1,
        intended_partition=0,
        send_order=0,
    )
    plant.at("observations", 0, 0, rows[0]["offset"]).update(valued(gone.encode(120)))
    plant.at("committed", 1, 0, rows[1]["offset"])["digest"] += 1
    place = {"topic_index": 0, "partition": 0, "offset": rows[0]["offset"]}
    return plant, {found("inconsistent-offset", rows[1], **place), found("inconsistent-offset", rows[1])}


def phantoms(run: str) -> tuple[Plant, set[Found]]:
    """Foreign, of another run, of an unknown operation, beyond its operation, and in another partition."""
    planted = busy(run)
    client = planted.client()
    _, rows = planted.plain(client, (A0,))
    known: dict[str, Any] = {
        "process": client.process,
        "kind": Kind.PLAIN,
        "count": 1,
        "topic_index": 0,
        "intended_partition": 0,
    }
    strange = (
        Identity(run="elsewhere", operation=0, index=0, send_order=7, **known),
        Identity(run=run, operation=77, index=0, send_order=8, **known),
        Identity(run=run, operation=0, index=5, send_order=9, **known),
        Identity(run=run, operation=0, index=0, send_order=10, **{**known, "topic_index": 1}),
    )
    planted.log[A0].remove(rows[0])
    added = [planted.append(client, A0, each.encode(120), transactional=False) for each in strange]
    foreign = planted.append(client, A0, b"from another world", transactional=False)
    for offset, row in enumerate(planted.log[A0]):
        row["offset"] = offset
    return planted.finish(), {found("phantom-record", row) for row in (*added, foreign)}


def hung(run: str) -> tuple[Plant, set[Found]]:
    """Open in the log, nothing at the coordinator; what commits above it there is explained by it."""
    planted = busy(run)
    client = planted.client("tx-9")
    _, rows = planted.transaction(client, (A0, A0), decision=None)
    operation, later = planted.transaction(planted.client("tx-8"), (A0, A1))
    plant = planted.finish()
    plant.rows["coordinator_states"].append(
        {"run": run, "producer_id": client.producer_id, "state": "CompleteCommit", "transactional_id": "tx-9"}
    )
    explained = {torn(operation), found("hidden-committed", later[0])}
    return plant, {found("hung-transaction", rows[0]), *(explained - {found("hidden-committed", later[0])})}


def still_running(run: str) -> tuple[Plant, set[Found]]:
    """The same while the coordinator is about to commit: nothing hangs, but the LSO stands."""
    plant, _ = hung(run)
    plant.rows["coordinator_states"][0]["state"] = "PrepareCommit"
    stable = plant.rows["ends"][0]["last_stable_offset"]
    torn_one = next(each for each in _by_last_client(plant) if each.action is Action.TRANSACTION)
    return plant, {found("stuck-lso", None, topic_index=0, partition=0, offset=stable), torn(torn_one)}


def _by_last_client(plant: Plant) -> list[Operation]:
    last = max(operation.process for operation in plant.operations)
    return [operation for operation in plant.operations if operation.process == last]


def hung_by_leader(run: str) -> tuple[Plant, set[Found]]:
    """The leader says that a producer has an open transaction; the log shows no data of it any more."""
    plant = busy(run).finish()
    plant.rows["open_producers"].append(
        {"run": run, "topic_index": 1, "partition": 1, "producer_id": 4_711, "offset": 2}
    )
    return plant, {found("hung-transaction", None, topic_index=1, partition=1, offset=2)}


def adopted(run: str) -> tuple[Plant, set[Found]]:
    """A marker was never written; the next transaction's marker decided both."""
    planted = busy(run)
    client = planted.client("tx-9")
    _, rows = planted.transaction(client, (A0, A0), decision=None)
    planted.transaction(client, (A0,))
    return planted.finish(), {found("hung-transaction", rows[1])}


def stuck(run: str) -> tuple[Plant, set[Found]]:
    """The LSO stands below the high watermark and nothing is open; on another partition only fencing released it."""
    planted = busy(run)
    _, rows = planted.transaction(planted.client("tx-9"), (A0,))
    plant = planted.finish()
    plant.rows["ends"][0]["last_stable_offset"] = rows[0]["offset"]
    plant.drop("committed", 0, 0, rows[0]["offset"])
    behind = {"high_watermark": 9, "last_stable_offset": 7}
    plant.rows["settled"] += [
        {"run": run, "topic_index": 1, "partition": 0, "before_fencing": True, **behind},
        {"run": run, "topic_index": 1, "partition": 1, "before_fencing": False, **behind},
    ]
    return plant, {
        found("stuck-lso", None, topic_index=0, partition=0, offset=rows[0]["offset"]),
        found("stuck-lso", None, topic_index=1, partition=0, offset=7),
        found("hidden-committed", rows[0]),
    }


IN, OUT, ALSO = 0, 1, 2
COPIED = (
    Topic(name="in", partitions=1, replication=3, min_in_sync=2, role=TopicRole.INPUT),
    Topic(name="out", partitions=1, replication=3, min_in_sync=2),
    Topic(name="also", partitions=1, replication=3, min_in_sync=2),
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


CASES: dict[str, Case] = {
    function.__name__: function
    for function in (
        clean,
        lost_transaction,
        lost_append,
        lost_without_a_place,
        torn_by_marker,
        torn_unknown,
        torn_by_hiding,
        hidden,
        duplicate,
        aborted_read_by_capture,
        aborted_read_by_observer,
        early_read,
        zombie_by_time,
        zombie_by_epoch,
        reordered,
        reordered_unclaimed,
        back,
        skipped,
        inconsistent,
        phantoms,
        hung,
        still_running,
        hung_by_leader,
        adopted,
        stuck,
        clean_copies,
        offset_ahead,
        output_ahead,
        copied_twice,
        without_log,
    )
}
SECOND = 1_000 * MS


def planted_all() -> dict[str, tuple[Plant, set[Found]]]:
    """Every case under a run id of its own, by run id."""
    return {f"case-{number:02d}": case(f"case-{number:02d}") for number, case in enumerate(CASES.values())}


def names() -> dict[str, str]:
    """Run id → name of the case."""
    return {f"case-{number:02d}": name for number, name in enumerate(CASES)}
