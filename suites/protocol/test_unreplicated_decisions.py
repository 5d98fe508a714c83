"""COORD: a coordinator that loads a decision which no other replica of the transaction log has.

A coordinator must have its decision replicated before it sends a marker: a successor without the decision would decide
anew. While it runs it does so. The script lets it load instead. Its followers are cut off from it, it appends
PrepareCommit, and another replica leads for a moment, from which it cannot fetch. Then it leads again, with the record at
the end of its log, above the high watermark. All replicas stay in sync meanwhile, so every election is a clean one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from chaos.cluster import Link
from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import Needs, needs, requirement
from runner.protocol.toolkit.context import CaseContext, Sent
from runner.protocol.toolkit.coordinators import id_at, log_of
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.tampering import into, to
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.values import TopicPartition

#: A leader keeps a follower in sync that has not fetched for this time; each part of the script takes some seconds.
LAGGING_MS = 300_000
PATIENT = Needs(brokers=3, replicas=3, min_in_sync=2, settings={"replica.lag.time.max.ms": str(LAGGING_MS)})
#: A coordinator sends markers as soon as it has loaded, and after a lost connection again within a second.
SENT_WITHIN_S = 8.0
#: How an end is refused whose record cannot be replicated, or whose coordinator was replaced.
NOT_DECIDED = [*map(code_name, (Code.NOT_COORDINATOR, Code.COORDINATOR_NOT_AVAILABLE, Code.REQUEST_TIMED_OUT))]


@requirement("COORD-19")
@needs(PATIENT)
def test_a_decision_above_the_high_watermark_is_not_acted_on(case: CaseContext) -> None:
    """A loaded PrepareCommit that may still be lost sends no marker, and all partitions get one decision."""
    one, two, old = case.brokers
    here, there = replicas.placed(case, [one], [two], min_insync_replicas="1")
    owner = id_at(case, "owner", old).writes(here, there, values=["a"])
    log = log_of(case, owner)
    name = str(owner.transactional_id)
    with _cut(case, *into(old, one, two), *to(old, two)):
        with _cut(case, *to(old, one)):
            ended = _end(case, owner)
            _leads(case, log, one, two, old)
            case.require("the answer to EndTxn(commit)", code_name(ended.receive().code), NOT_DECIDED, Relation.ONE_OF)
            case.require("the state at a replica without the decision", case.inspect.state(name), "Ongoing")
            _leads(case, log, old, one, two)
            case.require("the coordinator that has the decision", case.coordinator(name), old)
            case.require("the state that it loads", case.inspect.state(name), "PrepareCommit")
        given = case.poll_until(partial(case.inspect.committed, here), bool, within_s=SENT_WITHIN_S)
        case.expect("what a reader is given before the decision is replicated", given, [])
        _leads(case, log, one, two, old)
        case.require("the state at the next coordinator", case.inspect.state(name), "Ongoing")
        # The old coordinator goes on sending: before the next one has decided, its marker would still be accepted.
        case.set_up("the next instance is initialised", ScriptedProducer(case, name).init)
    both = [case.inspect.committed(at) for at in (here, there)]
    case.expect("what readers are given of its two partitions", both, [[], []])


def _end(case: CaseContext, owner: ScriptedProducer) -> Sent:
    """Ask for the commit, and wait until its record is in the log of the coordinator."""
    coordinator = case.coordinator(str(owner.transactional_id))
    path = max(brokers.files(case, coordinator, log_of(case, owner)).glob("*.log"))
    before = path.stat().st_size
    connection = case.open_connection(coordinator)
    sent = case.send(case.request("EndTxn", owner.end_body(commit=True), connection=connection), connection=connection)
    grown = case.poll_until(lambda: path.stat().st_size > before, bool, within_s=SENT_WITHIN_S)
    case.require("the coordinator has appended its decision", grown, True)
    return sent


def _leads(case: CaseContext, log: TopicPartition, *order: int) -> None:
    """Elect the first of these replicas, by a clean election: all are in sync."""
    replicas.put(case, log, *order)
    replicas.elected(case, log, order[0])


@contextmanager
def _cut(case: CaseContext, *links: Link) -> Iterator[None]:
    brokers.require_links(case)
    case.cluster.links.cut(*links)
    try:
        yield
    finally:
        case.cluster.links.restore(*links)
