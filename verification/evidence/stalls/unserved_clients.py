"""Unserved clients: clients that make no progress although another client works on the same cluster.

When a run does not become steady, or a slot is given up because its processes keep ending by themselves, a client that
shares no code with the subject writes a transaction. If that works, the run is judged as far as it went. The subject is to
blame only if nothing else explains it:

* The other client was fast, so the machine was.
* The subject had worked before. One that never did may have been set up wrongly.
* Before the first fault: at least `UNSERVED_MIN` of its operations, and a third of them all, ended without an
  acknowledgement or had no answer for `PATIENCE_S`. A client that is merely slow has few of them.
* Of a slot that was given up: the last `IN_A_ROW` processes were started after every fault was healed.

If something else explains it, the run is an error.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence import lso_samples
from verification.evidence.row_types import Row
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.history import Action, FaultRecord, Operation, Outcome, Phase, ProcessRecord

#: The phase in which another client is tried.
ANOTHER_CLIENT = "try another client"
#: Faults that kill clients have names that begin so (`chaos.faults`).
KILL = "Kill"
#: A transaction on three partitions takes some 0.2 s with the creation of its topic, and 2 s at a load of 20.
FAST_MS = 5_000
PATIENCE_S, UNSERVED_MIN, UNSERVED_SHARE, IN_A_ROW = 10, 3, 3, 5


def rows(run: RunEvidence) -> list[Row]:
    """What the subject did until another client was tried: one row; none if none was, or if it failed.

    `ok` and `unserved` are the operations with and without an acknowledgement. `given_up` describes a process whose slot was
    given up, empty without one; `undisturbed` says whether all faults were healed before the last processes of that slot
    were started, and `worked` is how much its kind had done.
    """
    tried = next((each for each in run.history.of(Phase) if each.name == ANOTHER_CLIENT and not each.note), None)
    if tried is None:
        return []
    begun = [each for each in run.history.of(Operation) if each.action is not Action.INIT]
    done = [each for each in begun if (each.completed_ns or each.invoked_ns + PATIENCE_S * 10**9) <= tried.began_ns]
    ended = [each for each in run.history.of(ProcessRecord) if each.given_up_since_ns is not None]
    last = min(ended, key=lambda each: each.ended_ns, default=None)
    faults = run.history.of(FaultRecord)
    ok = sum(each.outcome is Outcome.OK for each in done)
    return [
        {
            "run": run.run,
            "tried_ms": (tried.ended_ns - tried.began_ns) // 1_000_000,
            "ok": ok,
            "unserved": len(done) - ok,
            "given_up": "" if last is None else f"{last.role} {last.process} ({last.client}): {last.reason}",
            "undisturbed": last is not None and all(_healed_before(each, last) for each in faults),
            "worked": _worked(run, last, done),
        }
    ]


def _healed_before(fault: FaultRecord, last: ProcessRecord) -> bool:
    """A client that was killed leaves its brokers whole, whether it gets a successor or not."""
    over_ns = fault.applied_ns if fault.fault.startswith(KILL) else fault.healed_ns
    since_ns = last.given_up_since_ns
    return over_ns is not None and since_ns is not None and over_ns < since_ns


def _worked(run: RunEvidence, last: ProcessRecord | None, done: list[Operation]) -> int:
    """The operations that ended ok, in processes of the kind of the last one; of a pipeline the offsets of its outputs."""
    if run.experiment.pipeline is not None:
        return sum(lso_samples.decided(run, at) for at in lso_samples.outputs(run))
    kin = {each.process for each in run.history.of(ProcessRecord) if last is not None and each.role == last.role}
    return sum(each.outcome is Outcome.OK and (last is None or each.process in kin) for each in done)


def excuse(row: Row) -> str:
    """Why the subject is not to blame; empty if it is."""
    if row["tried_ms"] > FAST_MS:
        return (
            f"another client needed {row['tried_ms'] / 1_000:.1f} s for a transaction: the machine may have been slow"
        )
    if not row["worked"]:
        return "it never worked: its setup may be wrong"
    if row["given_up"]:
        return (
            ""
            if row["undisturbed"]
            else f"its last {IN_A_ROW} processes were not all started after the last fault was healed"
        )
    if row["unserved"] < UNSERVED_MIN or UNSERVED_SHARE * row["unserved"] < row["ok"] + row["unserved"]:
        return "few of its operations had no acknowledgement: the machine may have been slow"
    return ""


def described(row: Row) -> str:
    """Clients without progress, in words."""
    other = f"another client wrote and committed a transaction on the same cluster in {row['tried_ms'] / 1_000:.1f} s"
    if row["given_up"]:
        return (
            f"its processes ended again and again while no fault held, though {other}; the last was {row['given_up']}"
        )
    return f"{row['unserved']} of {row['ok'] + row['unserved']} operations had no acknowledgement, though {other}"


def excused(run: RunEvidence) -> tuple[str, ...]:
    """Clients that made no progress and are not to blame for it, with the reason: an error of the run."""
    return tuple(
        f"no progress: {described(row)}; that is no finding: {why}" for row in rows(run) if (why := excuse(row))
    )
