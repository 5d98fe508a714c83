"""Planted histories of zombies, and of last stable offsets that stand still."""

from __future__ import annotations

from tests.support.planted.busy import A0, A1, B0, B1, Found, busy, found, torn
from tests.support.planted.histories import Plant
from verification.vocabulary.history import Action, Intent, Operation, Outcome


def zombie_by_time(run: str) -> tuple[Plant, set[Found]]:
    """Decided after the successor was initialised, and committed anyway."""
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


def _by_last_client(plant: Plant) -> list[Operation]:
    last = max(operation.process for operation in plant.operations)
    return [operation for operation in plant.operations if operation.process == last]


def still_running(run: str) -> tuple[Plant, set[Found]]:
    """The same while the coordinator is about to commit: nothing hangs, but the LSO stands."""
    plant, _ = hung(run)
    plant.rows["coordinator_states"][0]["state"] = "PrepareCommit"
    stable = plant.rows["ends"][0]["last_stable_offset"]
    torn_one = next(each for each in _by_last_client(plant) if each.action is Action.TRANSACTION)
    return plant, {found("stuck-lso", None, topic_index=0, partition=0, offset=stable), torn(torn_one)}


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
    return planted.finish(), {found("decided-late", rows[1])}


def adopted_by_an_abort(run: str) -> tuple[Plant, set[Found]]:
    """The next transaction aborts, and its marker aborts both: the one that was acknowledged is lost as well."""
    planted = busy(run)
    client = planted.client("tx-9")
    _, rows = planted.transaction(client, (A0, A0), decision=None)
    planted.transaction(client, (A0,), intent=Intent.ABORT, decision="abort")
    lost = {found("lost-write", each) for each in rows}
    return planted.finish(), {found("decided-late", rows[1]), *lost}


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


def stranded(run: str, *, claimed: bool = True) -> tuple[Plant, set[Found]]:
    """A producer is told that it can never go on; another one is told so after its successor was initialised."""
    planted = busy(run, survival_claimed=claimed)
    client, old = planted.client("tx-9"), planted.client("tx-8")
    planted.transaction(client, (A0,))
    planted.client("tx-8")
    told, _ = planted.transaction(client, (B1,), outcome=Outcome.FAIL, decision="abort")
    superseded, _ = planted.transaction(old, (B0,), outcome=Outcome.FAIL, decision="abort")
    plant = planted.finish()
    for each in (told, superseded):
        plant.retell(each, fatal=True, stage="produce", decided_ns=None)
    return plant, {found("stranded-producer", None, process=told.process, operation=told.operation)}


def stalled(run: str) -> tuple[Plant, set[Found]]:
    """A producer stands still until its transaction times out; another is a moment faster, or only initialises."""
    planted = busy(run, survival_claimed=True)
    clients = [planted.client(f"tx-{number}") for number in (7, 8, 9)]
    slow, fast = (planted.transaction(each, (A0,), decision="abort")[0] for each in clients[:2])
    started = next(each for each in planted.operations if each.process == clients[2].process)
    plant = planted.finish()
    timeout_ns = plant.rows["runs"][0]["transaction_timeout_ns"]
    for each, lasts_ns in ((slow, timeout_ns), (fast, timeout_ns - 1), (started, timeout_ns)):
        changes = {"completed_ns": each.invoked_ns + lasts_ns, "outcome": Outcome.FAIL, "fatal": True}
        plant.retell(each, stage="init" if each is started else "produce", decided_ns=None, **changes)
    return plant, {
        found("stranded-producer", None, process=each.process, operation=each.operation) for each in (fast, started)
    }


def stranded_unclaimed(run: str) -> tuple[Plant, set[Found]]:
    """The same in a run that does not claim that producers survive."""
    return stranded(run, claimed=False)[0], set()
