"""KB-15: committed offsets are briefly stale after the transaction is complete (KAFKA-17507).

The classic group coordinator answers the transaction coordinator's WriteTxnMarkers before it has applied the marker to
its cache of offsets. The transaction is then CompleteCommit while OffsetFetch still gives the previous offset, or
UNSTABLE_OFFSET_COMMIT (88), for less than two seconds. This race was seen twice and nine times in 1500 tries, so a
result without it means little. The result is the number of times that it was seen.

The script does not keep the thousands of requests; it states their number. TV1 is used because EndTxn, repeated until
it answers NONE, then shows without a pause that the transaction is complete.
"""

from __future__ import annotations

import time
from functools import partial
from operator import eq

from runner.protocol.toolkit.context import NOT_NOW, CaseContext
from runner.protocol.toolkit.groups import STABLE_VERSION
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.regressions.reproduction import reproduces
from wire.codes import ErrorCode
from wire.router import check
from wire.schema import Body
from wire.values import TopicPartition

#: As many tries as fit into this time: up to 1500 on two quiet cores.
TRIES_S = 8.0
#: Stale offsets heal within two seconds, and a transaction completes at once; a longer time is another problem.
HEALS_S = 5.0
APIS = ("AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")


@reproduces("KB-15", violated=[("3.0.0", "3.8")], only=("3.5.2", "3.8.1", "4.3.1"), race=True)
def test_offsets_after_the_commit(case: CaseContext) -> None:
    """The offsets that a transaction committed are there as soon as it is complete."""
    (at,) = case.topic()
    race = Race(case, transactional(case), f"{case.name}-group", at)
    end_s = time.monotonic() + TRIES_S
    tries = stale = 0
    while time.monotonic() < end_s:
        tries += 1
        race.commit(tries)
        stale += race.offset() != tries
        healed = case.poll_until(race.offset, partial(eq, tries), within_s=HEALS_S)
        if healed != tries:
            case.require(f"the offset of try {tries} at last", healed, tries)
    case.expect("stale offsets / tries", f"{stale}/{tries}", f"0/{tries}")


class Race:
    """One producer that commits offsets of one group as fast as it can; the coordinators are looked up once."""

    def __init__(self, case: CaseContext, producer: ScriptedProducer, group: str, at: TopicPartition) -> None:
        self.case, self.group, self.at = case, group, at
        self.coordinator = case.coordinator(str(producer.transactional_id))
        self.groups = case.group_coordinator(group)
        self.versions = {api: case.version_of(api, case.connection(self.coordinator)) for api in APIS}
        self.identity: Body = {
            "TransactionalId": producer.transactional_id,
            "ProducerId": producer.now.id,
            "ProducerEpoch": producer.now.epoch,
        }

    def commit(self, offset: int) -> None:
        """Commit one offset in a transaction, and wait until it is complete."""
        partition = {"PartitionIndex": self.at.partition, "CommittedOffset": offset}
        offsets = {"GroupId": self.group, "Topics": [{"Name": self.at.topic, "Partitions": [partition]}]}
        self._until_yes("AddOffsetsToTxn", {"GroupId": self.group}, self.coordinator)
        self._until_yes("TxnOffsetCommit", offsets, self.groups)
        for _ in range(2):  # the first NONE means that the end is decided, the second one that it is complete
            self._until_yes("EndTxn", {"Committed": True}, self.coordinator)

    def offset(self) -> int | str:
        """The answer of OffsetFetch: the offset, or the name of its error."""
        topics = [{"Name": self.at.topic, "PartitionIndexes": [self.at.partition]}]
        body = {"GroupId": self.group, "Topics": topics, "RequireStable": True}
        answer = self.case.client.call("OffsetFetch", body, STABLE_VERSION, broker=self.groups)
        found = answer["Topics"][0]["Partitions"][0]
        return ErrorCode(found["ErrorCode"]).name if found["ErrorCode"] else int(found["CommittedOffset"])

    def _until_yes(self, api: str, body: Body, broker: int) -> None:
        end_s = time.monotonic() + HEALS_S
        ask = partial(self.case.client.call, api, self.identity | body, self.versions[api], broker=broker)
        while (code := _code(ask())) in NOT_NOW and time.monotonic() < end_s:
            pass  # the stale offset is visible for a moment only: no pause
        check(code, api)


def _code(answer: Body) -> int:
    if "Topics" in answer:
        return int(answer["Topics"][0]["Partitions"][0]["ErrorCode"])
    return int(answer["ErrorCode"])
