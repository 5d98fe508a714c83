"""librdkafka, as a case uses it: a reader under `read_committed`, and the outcome of a producer's calls as a word."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.java_clients import APP, POLLED_WITHIN_S
from wire.values import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

#: A flush waits for the answers of brokers; the rest is for a busy machine.
DONE_WITHIN_S = 30.0
_LOG = logging.getLogger(__name__)
# The library's own lines would stand between those of the run.
_LOG.setLevel(logging.CRITICAL)


class LibrdkafkaReader:
    """A librdkafka consumer under read_committed, which is assigned one partition at a time."""

    def __init__(self, case: CaseContext) -> None:
        from confluent_kafka import Consumer

        self._statistics: list[dict[str, Any]] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": case.cluster.bootstrap(APP),
                **case.client_settings("confluent"),
                "group.id": f"{case.name}-librdkafka",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "statistics.interval.ms": 100,
                "stats_cb": lambda text: self._statistics.append(json.loads(text)),
            },
            logger=_LOG,
        )

    def assigned(self, at: TopicPartition, offset: int) -> LibrdkafkaReader:
        """Read this partition from an offset, or from the end."""
        from confluent_kafka import TopicPartition as Place

        self._consumer.assign([Place(at.topic, at.partition, offset)])
        return self

    def read_to_end(self) -> list[str]:
        """The values until the library says that the partition has no more; raises TimeoutError."""
        from confluent_kafka import KafkaError

        values = []
        while (message := self._consumer.poll(POLLED_WITHIN_S)) is not None:
            error = message.error()
            if error is None:
                values.append((message.value() or b"").decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                return values
        raise TimeoutError(f"librdkafka came to no end in {POLLED_WITHIN_S:.0f} s, after {values}")

    def lag_after_one(self, at: TopicPartition) -> int | None:
        """The lag in the library's statistics once it has delivered one record; None if they never name it."""
        self._consumer.poll(POLLED_WITHIN_S)
        self._consumer.pause(self._consumer.assignment())
        end_s = time.monotonic() + POLLED_WITHIN_S
        while time.monotonic() < end_s:
            # Without a record to deliver it only calls back.
            self._consumer.poll(0.1)
            for each in self._statistics:
                seen = each["topics"].get(at.topic, {}).get("partitions", {}).get(str(at.partition), {})
                if seen.get("app_offset") == 1 and seen.get("ls_offset", -1) >= 0:
                    self._consumer.resume(self._consumer.assignment())
                    return int(seen["consumer_lag_stored"])
            self._statistics.clear()
        return None

    def close(self) -> None:
        """Leave, without waiting for anything."""
        self._consumer.close()


@contextmanager
def librdkafka_consumer(case: CaseContext) -> Iterator[LibrdkafkaReader]:
    """A librdkafka consumer at the client's site, which is closed at the end."""
    with closing(LibrdkafkaReader(case)) as reader:
        yield reader


def librdkafka_producer(case: CaseContext, name: str, **settings: Any) -> Producer:
    """An initialised transactional producer with these settings, named with underscores for dots."""
    from confluent_kafka import Producer

    own = {
        "bootstrap.servers": case.cluster.bootstrap(APP),
        **case.client_settings("confluent"),
        "transactional.id": name,
        "linger.ms": 0,
        # A link that is led through another closes its connections.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 200,
    }
    producer = Producer(own | {key.replace("_", "."): value for key, value in settings.items()}, logger=_LOG)
    producer.init_transactions(DONE_WITHIN_S)
    return producer


def delivered(producer: Producer, at: TopicPartition, value: str) -> str:
    """Hand a record over and wait for its report: `done`, or the name of its error."""
    reports: list[KafkaError | None] = []
    producer.produce(
        at.topic, value.encode(), partition=at.partition, on_delivery=lambda error, _: reports.append(error)
    )
    producer.flush(DONE_WITHIN_S)  # answer dropped: without a report the result says so
    return " ".join("done" if error is None else error.name() for error in reports) or "no report"


def ended(call: Callable[[], None]) -> str:
    """`done`, or the name of the error that a call of librdkafka raises."""
    from confluent_kafka import KafkaException

    try:
        call()
    except KafkaException as raised:
        return str(raised.args[0].name())
    return "done"
