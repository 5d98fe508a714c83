"""Planted histories of an upgrade that lost a node, by its release or by something else."""

from __future__ import annotations

from typing import Any

from tests.support.planted.busy import Found, busy, found
from tests.support.planted.histories import Plant
from verification.evidence.stalls.lost_nodes import LONG_S
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import FaultRecord, LostNode

S = 1_000_000_000
OLD, NEW = "4.1.2", "4.3.1"
ERROR = "ERROR [main] Exiting Kafka due to fatal exception (Kafka$)"
FATAL = f"[2026-11-25T12:00:01.000Z] {ERROR}"
#: Without clients, this wait is short enough to blame the release.
SHORT_S = LONG_S / 2


def row_of(run: str = "planted", **over: Any) -> dict[str, Any]:
    """The row of a node that ended by itself after half of `LONG_S`, with an error in its log."""
    return {
        "run": run,
        "node": 2,
        "before": OLD,
        "release": NEW,
        "exit_status": 1,
        "had_joined": False,
        "waited_ms": round(SHORT_S * 1_000),
        "pace": 0.0,
        "causes": (),
        "error": ERROR,
        "log": FATAL,
        **over,
    }


def _planted(run: str, *, lasts_s: float = SHORT_S, guilty: bool = False, **over: Any) -> tuple[Plant, set[Found]]:
    planted = busy(run)
    row = row_of(run, waited_ms=round(lasts_s * 1_000), **over)
    began_ns = planted.tick()
    planted.entries.append(
        FaultRecord(
            step=0,
            fault="RollNext",
            description=f"roll of the next node to {NEW}",
            target=f"node 2, {OLD} → {NEW}",
            began_ns=began_ns,
            struck_ns=began_ns,
            applied_ns=began_ns,
            error="NodeLostError: node 2",
            stage="roll 1 of 3",
            releases={"2": NEW},
            lost=LostNode(
                node=2,
                before=OLD,
                release=row["release"],
                at_ns=began_ns + round(lasts_s * S),
                exit_status=row["exit_status"],
                log=row["log"],
                had_joined=row["had_joined"],
            ),
        )
    )
    plant = planted.finish()
    plant.rows["lost_nodes"] = [row]
    return plant, {found(str(Anomaly.LOST_NODE), None)} if guilty else set()


def lost(run: str) -> tuple[Plant, set[Found]]:
    """The new release ended by itself and said why."""
    return _planted(run, guilty=True)


def lost_beyond_its_start(run: str) -> tuple[Plant, set[Found]]:
    """A node that still had the old release ended by itself while another one was rolled."""
    return _planted(run, lasts_s=0, release=OLD, had_joined=True, guilty=True)


def lost_by_a_signal(run: str) -> tuple[Plant, set[Found]]:
    """The kernel killed it."""
    return _planted(run, exit_status=-9)


def lost_for_want_of_an_address(run: str) -> tuple[Plant, set[Found]]:
    """Another program had its port."""
    cause = "java.net.BindException: Address already in use"
    why = {"log": f"{FATAL}\n{cause}", "error": f"{ERROR} {cause}", "causes": ("its address was not free",)}
    return _planted(run, **why)


def lost_on_a_slow_machine(run: str) -> tuple[Plant, set[Found]]:
    """It still runs after the bound, but clients did nothing in all that time."""
    return _planted(run, lasts_s=90, exit_status=None)
