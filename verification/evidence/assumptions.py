"""Checks the assumptions of the judge about the topics and the clock of a run.

A missing record counts as lost by the cluster. That is right only where nothing else removes records. It is wrong where
a topic was compacted or created again, where retention deleted its first records, or where partitions were never read.
And the order of events is known only where the clock of the run went forward. A run that breaks an assumption is refused
with one sentence: neither a pass nor a finding would mean anything.

The timestamps of records decide nothing, so the wall clock of a cluster may go back.

Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.experiment import Experiment
from verification.vocabulary.history import FaultRecord, History, Operation
from verification.vocabulary.quiescent_state import QuiescentState

COMPACT = "compact"
#: A line of an observer's file may be megabytes long. Where these come first, as we write them, the rest is not parsed.
_POLL = re.compile(rb'"poll":\s*(\d+)')
_RECEIVED = re.compile(rb'"received_ns":\s*(\d+)')
_HEAD = 256


def check_topics(experiment: Experiment, captures: QuiescentState, path: Path) -> None:
    """Raise UnfitEvidenceError for topics from which records may be missing although the cluster lost none."""
    planned = {topic.name: topic.partitions for topic in experiment.topics}
    for end in captures.ends:
        if end.partition >= planned.get(end.topic, 0):
            raise UnfitEvidenceError(
                f"{path} has an end of {end.topic}-{end.partition}, which the experiment does not know; "
                "records there were never read"
            )
    for topic in captures.topics:
        if COMPACT in (each.strip() for each in topic.cleanup_policy.split(",")):
            raise UnfitEvidenceError(
                f"{path} says that {topic.topic} is compacted; records that compaction removed look like lost ones"
            )
        if topic.first_id and topic.last_id and topic.first_id != topic.last_id:
            raise UnfitEvidenceError(
                f"{path} says that {topic.topic} was made anew during the run ({topic.first_id} became {topic.last_id}); "
                "records that its deletion removed look like lost ones"
            )
        if topic.partitions > planned.get(topic.topic, topic.partitions):
            raise UnfitEvidenceError(
                f"{path} says that {topic.topic} has {topic.partitions} partitions at the end and not "
                f"{planned[topic.topic]}; records in the others were never read"
            )


def log_starts(experiment: Experiment, captures: QuiescentState) -> dict[tuple[int, int], int]:
    """Topic index and partition → the first offset of its log, where that is not 0 because records were deleted."""
    indexes = {topic.name: index for index, topic in enumerate(experiment.topics)}
    return {
        (indexes[end.topic], end.partition): end.start
        for end in captures.ends
        if end.start > 0 and end.topic in indexes
    }


def check_clock(history: History, path: Path) -> None:
    """Raise UnfitEvidenceError when an operation or a fault ended before it began."""
    for entry in history.entries:
        times: tuple[int | None, ...]
        if isinstance(entry, Operation):
            times = (entry.invoked_ns, entry.decided_ns, entry.completed_ns)
        elif isinstance(entry, FaultRecord):
            times = (entry.began_ns, entry.applied_ns, entry.healed_ns)
        else:
            continue
        known = [each for each in times if each is not None]
        if known != sorted(known):
            raise UnfitEvidenceError(
                f"{path}: {_name(entry)} goes back in time; the order of events is unknown without a clock that goes forward"
            )


def _name(entry: Operation | FaultRecord) -> str:
    if isinstance(entry, FaultRecord):
        return f"step {entry.step}"
    return f"operation {entry.operation} of process {entry.process}"


def check_polls(path: Path) -> None:
    """Read an observer's file to its end; its polls must be numbered upwards and its clock go forward.

    Raises UnfitEvidenceError, and the error of gzip for a file that is cut.
    """
    last = (-1, -1)
    with gzip.open(path, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                poll, received_ns = _turn(line)
            except (ValueError, KeyError, TypeError) as error:
                raise UnfitEvidenceError(f"{path}: line {number} is no poll with poll and received_ns") from error
            if poll <= last[0] or received_ns < last[1]:
                raise UnfitEvidenceError(
                    f"{path}: poll {poll} in line {number} comes after poll {last[0]}, or goes back in time"
                )
            last = (poll, received_ns)


def _turn(line: bytes) -> tuple[int, int]:
    """Number and time of a poll; its records are not parsed where both come before them."""
    poll, received = _POLL.search(line, 0, _HEAD), _RECEIVED.search(line, 0, _HEAD)
    if poll is not None and received is not None:
        return int(poll[1]), int(received[1])
    body = json.loads(line)
    return int(body["poll"]), int(body["received_ns"])
