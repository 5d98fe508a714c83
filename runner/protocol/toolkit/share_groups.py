"""Share groups (KIP-932) and a reader of one: a KafkaShareConsumer of the release's own kafka-clients.

Brokers hand records out one by one, remember which were acknowledged, and hide those of aborted transactions themselves
where the group asks for that. So a claim is on what the library delivers and not on what a fetch returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.java_clients import JavaConsumer, java_share_consumer
from runner.protocol.toolkit.script_recorder import NotApplicableError
from verification.scripts.script import Relation
from wire.router import check
from wire.values import TopicPartition

#: The group's setting, with the values of `isolation.level` of a consumer.
ISOLATION = "share.isolation.level"
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
#: The first poll waits for the group's assignment, and for its state to be read from `__share_group_state`.
DELIVERED_WITHIN_S = 30.0
#: Time in which a reader that may deliver a record would do it: ten polls.
QUIET_S = 2.0
SET_WITHIN_S = 10.0
_GROUPS = 32
_SET = 0


def need_share_groups(case: CaseContext) -> None:
    """Leave the case out where share groups are not finalized: before 4.2 a new cluster has none."""
    if case.client.connection().features.get("share.version", 0) < 1:
        raise NotApplicableError("share groups are a preview there: share.version is 0 on a new cluster")


def configure(case: CaseContext, group: str, name: str, value: str) -> None:
    """Change a setting of a group, live or before it exists, and wait until its broker names it."""
    resource = {"ResourceType": _GROUPS, "ResourceName": group}
    changed = resource | {"Configs": [{"Name": name, "ConfigOperation": _SET, "Value": value}]}
    answer = case.client.call("IncrementalAlterConfigs", {"Resources": [changed]})
    check(answer["Responses"][0]["ErrorCode"], f"{name}={value} of {group}")
    asked = resource | {"ConfigurationKeys": [name]}

    def seen() -> str:
        found = case.client.call("DescribeConfigs", {"Resources": [asked]}, broker=case.group_coordinator(group))
        return str(found["Results"][0]["Configs"][0]["Value"])

    case.require(
        f"{name} of the group", case.poll_until(seen, lambda each: each == value, within_s=SET_WITHIN_S), value
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A record that a reader was given; `record` is the library's."""

    at: TopicPartition
    offset: int
    value: str
    count: int
    record: Any

    @property
    def place(self) -> tuple[TopicPartition, int]:
        """Partition and offset."""
        return self.at, self.offset


class ShareReader:
    """A reader of a share group. It acknowledges each record itself, before its next poll.

    Brokers can refuse an acknowledgement: a new leader does, for what its predecessor handed out. The record must
    come again then. So a record whose acceptance was refused counts as read once, and is accepted again when it comes.
    """

    def __init__(self, case: CaseContext, java: JavaConsumer) -> None:
        self._case = case
        self._java = java
        self._acknowledged = case.java.library.root.org.apache.kafka.clients.consumer.AcknowledgeType
        self._refused: dict[tuple[TopicPartition, int], str] = {}
        """The error of the last acceptance of each record that the broker has not accepted yet."""

    def polled(self) -> list[Delivered]:
        """The records of one poll, which must be acknowledged."""
        return [
            Delivered(
                at=TopicPartition(str(each.topic()), int(each.partition())),
                offset=int(each.offset()),
                value=str(each.value()),
                count=int(each.deliveryCount().orElse(0)),
                record=each,
            )
            for each in self._java.records()
        ]

    def first(self, count: int) -> list[Delivered]:
        """So many records, none of which is acknowledged; they must come with one poll, as they are written before it."""
        found = self._case.poll_until(self.polled, bool, within_s=DELIVERED_WITHIN_S)
        self._case.require("the records of the first poll that returns any", len(found), count)
        return list(found)

    def accepts(self, *delivered: Delivered) -> None:
        """Acknowledge records as processed; the case requires that the broker takes it."""
        self._case.require("refused acceptances", self._answer(self._acknowledged.ACCEPT, *delivered), {})

    def releases(self, *delivered: Delivered) -> None:
        """Give records back, to be delivered again; the case requires that the broker takes it."""
        self._case.require("refused releases", self._answer(self._acknowledged.RELEASE, *delivered), {})

    def _answer(self, how: Any, *delivered: Delivered) -> dict[str, str]:
        """Acknowledge records; returns the broker's error by partition where it did not take that."""
        for each in delivered:
            self._java.library.acknowledge(each.record, how)
        answers = self._java.library.commitSync()
        errors = {str(each.at): "no answer" for each in delivered}
        for at in answers:
            error = answers[at].orElse(None)
            errors[f"{at.topic()}-{at.partition()}"] = "" if error is None else str(error.getClass().getSimpleName())
        return {at: error for at, error in errors.items() if error}

    def _taken(self) -> list[Delivered]:
        """The records of one poll, accepted, without those that come again because their acceptance was refused."""
        polled = self.polled()
        new = [each for each in polled if each.place not in self._refused]
        refused = self._answer(self._acknowledged.ACCEPT, *polled)
        for each in polled:
            self._refused.pop(each.place, None)
            if error := refused.get(str(each.at)):
                self._refused[each.place] = error
                what = f"the answer to an acceptance of offset {each.offset}, which may be delivered again"
                self._case.require(what, error, "accepted", Relation.DIFFERS)
        return new

    def reads_to(self, last: str) -> list[Delivered]:
        """Accept everything up to a record with this value, or until the time is over.

        The case requires that record, and that the broker accepts all of them in the end.
        """
        read: list[Delivered] = []

        def there() -> bool:
            read.extend(self._taken())
            return not self._refused and any(each.value == last for each in read)

        # answer dropped: both of its reasons are required below
        self._case.poll_until(there, bool, within_s=DELIVERED_WITHIN_S)
        self._case.require(f"the reader receives {last}", any(each.value == last for each in read), True)
        self._case.require("records whose acceptance is refused to the end", list(self._refused.values()), [])
        return read

    def given_meanwhile(self) -> list[str]:
        """The values that it is given, and accepts, in `QUIET_S`."""
        read: list[str] = []

        def look() -> bool:
            read.extend(each.value for each in self._taken())
            return False

        self._case.poll_until(look, bool, within_s=QUIET_S)  # answer dropped: it looks until the time is over
        return read


@contextmanager
def share_reader(case: CaseContext, group: str, at: TopicPartition) -> Iterator[ShareReader]:
    """A reader of a group that begins at the first record of its topic."""
    with java_share_consumer(case, group_id=group, share_acknowledgement_mode="explicit") as java:
        names = case.java.library.root.java.util.ArrayList()
        names.add(at.topic)
        java.library.subscribe(names)
        yield ShareReader(case, java)


def new_group(case: CaseContext, name: str, *, isolation: str = "") -> str:
    """The name of a group that begins at the first record; without `isolation` it has the default."""
    group = f"{case.name}-{name}"
    configure(case, group, "share.auto.offset.reset", "earliest")
    if isolation:
        configure(case, group, ISOLATION, isolation)
    return group
