"""Planted histories of writes that are lost, torn, hidden, doubled, out of order, or of no client."""

from __future__ import annotations

from typing import Any

from tests.support.planted.busy import A0, A1, ALL, B0, B1, Found, busy, found, torn
from tests.support.planted.histories import Plant
from verification.vocabulary.history import Outcome
from verification.vocabulary.identity import Identity, RecordKind


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
    who = {"process": client.process, "operation": operation.operation}
    nowhere = {"run": run, **who, "topic_index": 0, "partition": 0, "offset": -1, "outcome": "ok"}
    planted.acks += [{**nowhere, "index": index} for index in (0, 1)]
    plant = planted.finish()
    plant.retell(operation, records=2)
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


def misrouted(run: str) -> tuple[Plant, set[Found]]:
    """A record stands in another partition than the one that it was sent to; its send order means nothing there."""
    planted = busy(run)
    client = planted.client()
    planted.plain(client, (B0, B0, A0))
    _, rows = planted.plain(client, (A0, B0))
    sent = rows[0]
    planted.log[A0].remove(sent)
    there = planted.append(client, B0, sent["_value"], transactional=False)
    return planted.finish(), {found("phantom-record", there)}


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
    """The same in a run that does not claim order."""
    return reordered(run, order_claimed=False)[0], set()


def phantoms(run: str) -> tuple[Plant, set[Found]]:
    """Foreign, of another run, of an unknown operation, beyond its operation, and in another partition."""
    planted = busy(run)
    client = planted.client()
    _, rows = planted.plain(client, (A0,))
    known: dict[str, Any] = {
        "process": client.process,
        "kind": RecordKind.PLAIN,
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


def tombstones(run: str) -> tuple[Plant, set[Found]]:
    """A record without a value, by itself and in a transaction that commits; in one that aborts no reader receives it."""
    planted = busy(run)
    client = planted.client("tx-9")
    plain = planted.append(planted.client(), A0, None, transactional=False)
    expected = {found("phantom-record", plain)}
    for place, decision in ((A1, "commit"), (B0, "abort")):
        expected.add(found("phantom-record", planted.append(client, place, None, transactional=True)))
        planted.mark(client, place, decision)
    return planted.finish(), expected
