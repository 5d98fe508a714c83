"""Planted histories of readers that were given too much, too early, too little, again, or something else."""

from __future__ import annotations

from tests.support.planted.busy import A0, A1, ALL, B0, Found, busy, found
from tests.support.planted.histories import MS, Plant, valued
from verification.vocabulary.history import Intent, Outcome
from verification.vocabulary.identity import Identity, RecordKind


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
    seen = [each for each in plant.rows["observations"] if each["committed_reader"]]
    first, second = [
        each for each in seen if (each["process"], each["operation"]) == (operation.process, operation.operation)
    ]
    first["received_ns"] = second["received_ns"] - 1_000
    plant.retell(operation, decided_ns=second["received_ns"], completed_ns=second["received_ns"] + MS)
    return plant, {found("early-read", rows[0], observer="careful")}


def back(run: str) -> tuple[Plant, set[Found]]:
    """An observer was given a record again, after a later one."""
    planted = busy(run)
    plant = planted.finish()
    eager = [row for row in plant.rows["observations"] if not row["committed_reader"]]
    again = next(row for row in eager if (row["topic_index"], row["partition"]) == A0)
    plant.rows["observations"].append({**again, "poll": 99, "position": 0, "received_ns": planted.tick()})
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


def given_twice_at_last(run: str) -> tuple[Plant, set[Found]]:
    """Each client at quiescence was given an offset twice."""
    planted = busy(run)
    _, rows = planted.plain(planted.client(), (A0, B0))
    plant = planted.finish()
    expected = set()
    for row, capture in zip(rows, ("committed", "uncommitted"), strict=True):
        plant.rows[capture].append(dict(plant.at(capture, row["topic_index"], row["partition"], row["offset"])))
        expected.add(found("nonmonotonic-poll", row, observer=capture))
    return plant, expected


def gone(run: str) -> tuple[Plant, set[Found]]:
    """One observer has a record that is not in the log and was never sent; another has a foreign value for one of them."""
    planted = busy(run)
    client = planted.client()
    _, rows = planted.plain(client, (A0, B0, B0), outcome=Outcome.INFO)
    plant = planted.finish()
    for frame in ("log", "committed", "uncommitted"):
        plant.drop(frame, 0, 0, rows[0]["offset"])
    foreign = {**valued(b"another program's"), "identity_digest": None}
    plant.at("observations", 1, 0, rows[1]["offset"]).update(foreign)
    return plant, {found("inconsistent-offset", row) for row in rows[:2]}


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
        kind=RecordKind.PLAIN,
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
