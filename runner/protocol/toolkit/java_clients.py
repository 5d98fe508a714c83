"""Clients of the release's own kafka-clients, which a case makes, calls and closes.

A script of requests cannot say what a client library does with the answers. These clients connect at the site of the
application, behind the links, as an application does. Results are plain Python values, errors are names of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from chaos.cluster import Site
from fixtures.clients.java.gateway import GatewayJvm
from runner.protocol.toolkit.context import CaseContext
from wire.values import TopicPartition

APP = Site("app")
_STRING = "org.apache.kafka.common.serialization.String"
_CLIENTS = "org.apache.kafka.clients"
#: The first poll finds the leaders and the group; the rest is for a busy machine.
POLLED_WITHIN_S = 15.0
_POLL_S = 0.2
_CLOSE_S = 5.0
_SERIALIZERS = {"key.serializer": f"{_STRING}Serializer", "value.serializer": f"{_STRING}Serializer"}
_DESERIALIZERS = {"key.deserializer": f"{_STRING}Deserializer", "value.deserializer": f"{_STRING}Deserializer"}


@contextmanager
def java_producer(case: CaseContext, **settings: Any) -> Iterator[JavaProducer]:
    """A KafkaProducer with its defaults and these settings, named with underscores for dots."""
    with _client(case, f"{_CLIENTS}.producer.KafkaProducer", _SERIALIZERS | _named(settings)) as made:
        yield JavaProducer(case.java.library, made)


@contextmanager
def java_consumer(case: CaseContext, **settings: Any) -> Iterator[JavaConsumer]:
    """A KafkaConsumer under `read_committed` with these settings, which commits nothing by itself."""
    own = {"isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    with _client(case, f"{_CLIENTS}.consumer.KafkaConsumer", _DESERIALIZERS | own | _named(settings)) as made:
        yield JavaConsumer(case, made)


@contextmanager
def java_share_consumer(case: CaseContext, **settings: Any) -> Iterator[JavaConsumer]:
    """A KafkaShareConsumer with its defaults and these settings (KIP-932)."""
    with _client(case, f"{_CLIENTS}.consumer.KafkaShareConsumer", _DESERIALIZERS | _named(settings)) as made:
        yield JavaConsumer(case, made)


@contextmanager
def java_admin(case: CaseContext) -> Iterator[Any]:
    """An Admin, as the library has it."""
    jvm = case.java.library
    properties = jvm.root.java.util.HashMap()
    for name, value in _connection(case).items():
        properties.put(name, value)
    made = jvm.root.org.apache.kafka.clients.admin.Admin.create(properties)
    try:
        yield made
    finally:
        made.close(jvm.duration(_CLOSE_S))


def outcome(call: Callable[[], object]) -> str:
    """`done`, or the name of the exception that a call of the library throws; the cause of a wrapper."""
    try:
        call()
    except Py4JJavaError as raised:
        thrown = raised.java_exception
        while thrown.getClass().getSimpleName() == "ExecutionException" and thrown.getCause() is not None:
            thrown = thrown.getCause()
        return str(thrown.getClass().getSimpleName())
    return "done"


class JavaProducer:
    """A producer of the library."""

    def __init__(self, jvm: GatewayJvm, made: Any) -> None:
        self._jvm = jvm
        self.library = made

    def sends(self, at: TopicPartition, value: str) -> Any:
        """Hand a record over; returns the library's Future. `get` of it waits for the answer."""
        record = self._jvm.root.org.apache.kafka.clients.producer.ProducerRecord
        return self.library.send(record(at.topic, at.partition, None, value))

    def sends_offsets(self, reader: JavaConsumer, offsets: Mapping[TopicPartition, int]) -> None:
        """Make the next offsets of a reader part of the transaction, for the reader's group."""
        made = self._jvm.root.java.util.HashMap()
        for at, offset in offsets.items():
            made.put(reader.place(at), self._jvm.root.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset))
        self.library.sendOffsetsToTransaction(made, reader.library.groupMetadata())


class JavaConsumer:
    """A consumer of the library."""

    def __init__(self, case: CaseContext, made: Any) -> None:
        self._case = case
        self._jvm = case.java.library
        self.library = made

    def place(self, at: TopicPartition) -> Any:
        """The library's object for a partition."""
        return self._jvm.root.org.apache.kafka.common.TopicPartition(at.topic, at.partition)

    def places(self, *at: TopicPartition) -> Any:
        """The library's objects for partitions, in a list."""
        found = self._jvm.root.java.util.ArrayList()
        for each in at:
            found.add(self.place(each))
        return found

    def assigned(self, *at: TopicPartition) -> JavaConsumer:
        """Read these partitions from their beginning, in no group."""
        self.library.assign(self.places(*at))
        self.library.seekToBeginning(self.places(*at))
        return self

    def records(self) -> Iterator[Any]:
        """The library's records of one poll."""
        return iter(self.library.poll(self._jvm.duration(_POLL_S)).iterator())

    def polled(self) -> list[str]:
        """The values that one poll returns."""
        return [str(record.value()) for record in self.records()]

    def read_to(self, at: TopicPartition, end: int) -> list[str]:
        """The values that it delivers until its position is `end`, or the time is over; the case requires the end."""
        values: list[str] = []

        def position() -> int:
            values.extend(self.polled())
            return int(self.library.position(self.place(at)))

        seen = self._case.poll_until(position, lambda reached: reached >= end, within_s=POLLED_WITHIN_S)
        self._case.require(f"the position in {at} to which a Java consumer reads", seen, end)
        return values


@contextmanager
def _client(case: CaseContext, name: str, settings: dict[str, Any]) -> Iterator[Any]:
    jvm = case.java.library
    made = jvm.create(name, _connection(case) | settings)
    try:
        yield made
    finally:
        made.close(jvm.duration(_CLOSE_S))


def _connection(case: CaseContext) -> dict[str, str]:
    """The settings with which a client of the library reaches the cluster."""
    settings = case.client_settings("java")
    case.java.library.allow_issuer(settings)
    return {"bootstrap.servers": case.cluster.bootstrap(APP), **settings}


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}
