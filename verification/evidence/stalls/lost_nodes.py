"""Lost nodes: nodes that did not come back in an upgrade, and whether the release that was started is to blame.

A node is started with another release on the data that the one before it left. If it ends by itself, or is not back
within the bound of its step, the schedule ends there. So it does when a node that had joined ends by itself: nodes of two
releases are at work together, and either may be unable to bear the other. The release is to blame only if nothing else
explains it:

* The node changed its release, or had joined. A restart on its own release is no step of an upgrade.
* Its process was not ended by a signal, as by the kernel for lack of memory.
* Its log names none of `OTHER_CAUSES`: what it lacked is the machine's, or ours, to give.
* A process that has ended says in its log that Kafka ended it. A JVM that could not begin has no such line.
* The machine was fast enough. A start takes 6 to 8 s, and bounds are 60 s (Kafka's own, for the registration of a broker)
  and more. So from `LONG_S` on it counts how fast clients worked at that time. If they kept a third of their pace from
  before the first step, a start would have taken three times as long, not ten times.

If something else explains it, or may explain it, the run is an error: it says nothing about the release.

Free of pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from verification.evidence.pace import PACE_LEAST, pace
from verification.evidence.row_types import Row
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.upgrade_state import steps
from verification.vocabulary.history import FaultRecord, LostNode

NS_PER_S = 1_000_000_000
LONG_S = 30.0
#: The last lines of the log that a finding shows.
LINES_SHOWN = 30
#: What a log says when the machine, or the harness, lacks something, and what that is.
OTHER_CAUSES = (
    (r"Address already in use|Cannot assign requested address|BindException", "its address was not free"),
    (r"No space left on device|Disk quota exceeded|Read-only file system", "it could not write to the disk"),
    (r"Too many open files|unable to create native thread|Resource temporarily unavailable", "a limit was reached"),
    (r"OutOfMemoryError|Cannot allocate memory|insufficient memory|Could not reserve enough", "memory was short"),
    (r"Could not find or load main class|NoClassDefFoundError|Unable to access jarfile", "a program file was missing"),
    (r"UnsupportedClassVersionError|Could not create the Java Virtual Machine", "its JVM could not run it"),
)
#: How brokers write an error (`fixtures.clusters.brokers.logs`), and the exception in the line after it.
_ERROR = re.compile(r"^\[[^]]+\] ((?:ERROR|FATAL) .*(?:\n(?![\[\s]).+)?)", re.MULTILINE)


def rows(run: RunEvidence) -> list[Row]:
    """The lost nodes of a run, with everything that the blame depends on.

    `pace` is that of clients from the start of the node until it was given up, divided by that before the first step; None
    where clients had done nothing. `causes` are those that the log names, and `error` is the first error in it.
    """
    return [
        {
            "run": run.run,
            "node": lost.node,
            "before": lost.before,
            "release": lost.release,
            "exit_status": lost.exit_status,
            "had_joined": lost.had_joined,
            "waited_ms": (lost.at_ns - began_ns) // 1_000_000,
            "pace": pace(
                run, began_ns, lost.at_ns, before_ns=min((each.began_ns for each in steps(run)), default=began_ns)
            ),
            "causes": tuple(words for pattern, words in OTHER_CAUSES if re.search(pattern, lost.log)),
            "error": found[1].replace("\n", " ") if (found := _ERROR.search(lost.log)) else "",
            "log": lost.log,
        }
        for step, lost in lost_nodes(run)
        for began_ns in (step.applied_ns or step.began_ns,)
    ]


def lost_nodes(run: RunEvidence) -> Iterator[tuple[FaultRecord, LostNode]]:
    """The steps that lost a node, and the nodes."""
    for step in steps(run):
        if step.lost is not None:
            yield step, step.lost


def excuse(row: Row) -> str:
    """Why the release is not to blame for a lost node; empty if it is."""
    if row["before"] == row["release"] and not row["had_joined"]:
        return f"it was started with its own release {row['release']} again"
    status = row["exit_status"]
    if status is not None and status < 0:
        return f"its process was ended by signal {-status}"
    if row["causes"]:
        return ", ".join(row["causes"])
    if status is not None and not row["error"]:
        return "its log has no line in which Kafka says why it ended"
    if row["waited_ms"] >= LONG_S * 1_000 and (row["pace"] is None or row["pace"] < PACE_LEAST):
        return "clients were too slow at that time: the machine may have been"
    return ""


def described(row: Row) -> str:
    """A lost node in words, with the end of its log."""
    status, after_s = row["exit_status"], row["waited_ms"] / 1_000
    how = "was not back" if status is None else f"ended by itself with exit status {status}"
    release, when = f"{row['before']} → {row['release']}", f"{after_s:.1f} s after its start"
    if row["had_joined"]:
        release, when = row["release"], "after it had joined"
    return (
        f"node {row['node']}, {release}, {how} {when}:\n"
        f"{row['error'] or 'its log names no error'}\nThe end of its log:\n"
        + "\n".join(row["log"].splitlines()[-LINES_SHOWN:])
    )


def excused(run: RunEvidence) -> tuple[str, ...]:
    """The lost nodes for which the release is not to blame, each with the reason: errors of the run."""
    return tuple(f"{described(row)}\nThat is no finding: {why}" for row in rows(run) if (why := excuse(row)))
