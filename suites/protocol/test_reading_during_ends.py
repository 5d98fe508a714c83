"""ISO: what readers see while transactions end: marker by marker, and sample by sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from chaos.frames import FrameFilter, Hold
from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import BOTH, THREE, needs, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.coordinators import id_at
from runner.protocol.toolkit.fetching import FETCH_VERSION
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.protocol.toolkit.tampering import tampered, to
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.values import Isolation, TopicPartition

#: A marker reaches a leader in milliseconds; the rest is for a busy machine.
MARKED_WITHIN_S = 15.0
#: Requests that wait this long at the leader, one after the other, while transactions begin and end.
SAMPLES, SAMPLED_EVERY_MS = 600, 2
#: Pairs of overlapping transactions that end meanwhile. Most of them must be sampled: a stable offset that does not move
#: cannot go back.
PAIRS, SAMPLED_PAIRS = 6, 3
#: More than there is: a Fetch waits for its whole time.
NEVER_BYTES = 1 << 30


@requirement("ISO-22")
@needs(THREE)
@versions(*BOTH)
def test_a_commit_becomes_visible_partition_by_partition(case: CaseContext) -> None:
    """A committed transaction is visible as a whole where its marker is, and not at all where it is not yet."""
    asked = brokers.controller(case)
    first, second = (each for each in case.brokers if each != asked)
    here, there = replicas.placed(case, [first, asked], [second, asked])
    owner = id_at(case, "owner", asked).writes(here, there, values=["a", "b"])
    with tampered(case, FrameFilter(api="WriteTxnMarkers"), Hold(), *to(asked, second)) as markers:
        case.expect_code("EndTxn(commit)", owner.end(commit=True), Code.NONE)
        markers.met("the marker of one partition", *to(asked, second))
        seen: list[list[str]] = []

        def look() -> list[str]:
            seen.append(case.inspect.committed(here))
            return seen[-1]

        shown = case.poll_until(look, bool, within_s=MARKED_WITHIN_S)
        case.expect("what a reader is given where the marker is", shown, ["a", "b"])
        case.expect("what it was given before", [each for each in seen[:-1] if each], [])
        case.expect("what a reader is given where it is not", case.inspect.committed(there), [])
        markers.released()
    case.require("the state", case.inspect.complete(owner.transactional_id), "CompleteCommit")
    for at in (here, there):
        case.expect(f"what a reader is given of {at} at last", case.inspect.committed(at), ["a", "b"])


@requirement("ISO-26")
@needs(THREE)
@versions(*BOTH)
def test_the_stable_offset_only_advances(case: CaseContext) -> None:
    """Within a leader epoch the last stable offset never goes back, and it never exceeds the high watermark."""
    one, two, three = case.brokers
    (at,) = replicas.placed(case, [one, two, three])
    producers = [transactional(case, name) for name in ("early", "late")]
    for leader in (one, two):
        replicas.lead(case, at, leader)
        samples = _sampled(case, at, leader, producers)
        case.require(f"samples of leader {leader}", len(samples), SAMPLES)
        moves = len({stable for stable, _ in samples})
        case.require(f"different stable offsets of leader {leader}", moves, SAMPLED_PAIRS, Relation.AT_LEAST)
        above = [list(each) for each in samples if each[0] > each[1]]
        case.expect(f"stable offsets of leader {leader} above the high watermark", above, [])
        case.expect(f"steps back of leader {leader}", steps_back(stable for stable, _ in samples), [])


def _sampled(
    case: CaseContext, at: TopicPartition, leader: int, producers: Sequence[ScriptedProducer]
) -> list[tuple[int, int]]:
    """(last stable offset, high watermark) of many answers of a leader, while transactions overlap and end."""
    connection = case.open_connection(leader)
    version = connection.wire.version_for("Fetch", at_most=FETCH_VERSION)
    request = case.request("Fetch", _waiting(at), connection=connection, version=version)
    received = case.begin_many(request, connection=connection, count=SAMPLES)
    early, late = producers
    for number in range(PAIRS):
        early.writes(at)
        late.writes(at)
        late.ends(commit=number % 2 == 0)
        early.ends(commit=number % 3 == 0)
    found = [each["Responses"][0]["Partitions"][0] for each in received()]
    return [(each["LastStableOffset"], each["HighWatermark"]) for each in found if each["ErrorCode"] == Code.NONE]


def _waiting(at: TopicPartition) -> Body:
    """A Fetch that waits at the leader and then returns one batch."""
    partition = {"Partition": at.partition, "FetchOffset": 0, "PartitionMaxBytes": 1}
    return {
        "ReplicaId": -1,
        "MaxWaitMs": SAMPLED_EVERY_MS,
        "MinBytes": NEVER_BYTES,
        "MaxBytes": NEVER_BYTES,
        "IsolationLevel": int(Isolation.READ_COMMITTED),
        "Topics": [{"Topic": at.topic, "Partitions": [partition]}],
    }


def steps_back(offsets: Iterable[int]) -> list[list[int]]:
    """The pairs of neighbours of which the later is smaller."""
    return [[before, after] for before, after in pairwise(offsets) if after < before]
