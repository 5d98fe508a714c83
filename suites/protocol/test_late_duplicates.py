"""A batch that arrives once more after its transaction has ended, and must not affect the next transaction.

Correct clients cause such duplicates. If the network holds a Produce request, the client gives it up after the socket
timeout and sends it again on a new connection. The first one still arrives, at any time.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from chaos.cluster import BrokerId, Link, Site
from chaos.frames import FrameFilter, Hold
from runner.protocol.toolkit.case import BOTH, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.inspector import ending
from runner.protocol.toolkit.producer import base_offset, transactional
from runner.protocol.toolkit.tampering import tampered
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.transaction_versions import TransactionVersion

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

#: librdkafka gives a request up after this long and sends it again on a new connection.
GIVEN_UP_AFTER_S = 1.0
#: A transaction under the attack takes the time above and a reconnect; the rest is for a busy machine.
DONE_WITHIN_S = 30.0
APP = Site("app")


@requirement("TXN-31", "IDEMP-03")
@versions(*BOTH)
def test_a_late_duplicate_leaves_the_next_transaction_alone(case: CaseContext) -> None:
    """A batch that comes again between two transactions is refused or known, and the next one is written in order."""
    for commit in (True, False):
        (at,) = case.topic()
        producer = transactional(case, ending(commit=commit))
        if case.transaction_version is TransactionVersion.TV1:
            case.set_up("the partition is added", partial(producer.add, at))
        batch = producer.batch(at, ["a"])
        case.require_code("a batch", producer.send_batch(at, batch))
        producer.sequences[at] += 1
        producer.ends(commit=commit)
        end = case.inspect.end(at)
        late = producer.send_batch(at, batch)
        # Up to 3.5 it is recognised as a duplicate; later releases refuse it, by the version of the request.
        expected = {Code.NONE, Code.INVALID_TXN_STATE, Code.TRANSACTION_ABORTABLE, Code.INVALID_PRODUCER_EPOCH}
        case.expect_code(f"the batch again after the end, {ending(commit=commit)}", late, *sorted(expected))
        if late.code == Code.NONE:
            case.expect(f"its offset, {ending(commit=commit)}", base_offset(late), 0)
        case.expect(f"the end of the log after it, {ending(commit=commit)}", case.inspect.end(at), end)
        if case.transaction_version is TransactionVersion.TV1:
            case.set_up("the partition is added again", partial(producer.add, at))
        case.expect_code("the next transaction's first batch", producer.produce(at, ["b"]), Code.NONE)
        case.set_up("the next transaction ends", partial(producer.end, commit=True))
        case.inspect.complete(producer.transactional_id)
        case.expect("what a reader is given", case.inspect.committed(at)[-1:], ["b"])


@requirement("TXN-31")
@versions(TransactionVersion.TV1)
def test_a_client_survives_a_late_duplicate(case: CaseContext) -> None:
    """A librdkafka producer goes on after the duplicate of a request that the network held has arrived."""
    (at,) = case.topic()
    name = f"{case.name}-client"
    held = FrameFilter(api="Produce", transactional_id=name, count=1)
    with tampered(case, held, Hold(), Link(source=APP, target=BrokerId(case.leader(at)))) as late:
        client = LibrdkafkaClient(case, name)
        case.require("the first transaction", client.transaction(at.topic, "a"), "committed")
        case.require("requests that were held", late.rule.count, 1)
        case.require("what a reader is given", case.inspect.committed(at), ["a"])
        case.require("the answer to the late duplicate", len(late.released()), 1)
        case.expect("the next transaction", client.transaction(at.topic, "b"), "committed")
        case.expect("the fatal error of the client", client.fatal(), None)
        client.close()
    case.expect("what a reader is given at last", case.inspect.committed(at), ["a", "b"])
    case.expect("the markers", len(case.inspect.markers(at)), 2, Relation.AT_LEAST)


class LibrdkafkaClient:
    """A transactional librdkafka producer at the client's site, behind the links."""

    def __init__(self, case: CaseContext, name: str) -> None:
        from confluent_kafka import Producer

        # With an error callback the library does not raise errors during its delivery reports.
        self._errors: list[KafkaError] = []
        settings: dict[str, Any] = {
            "error_cb": self._errors.append,
            "bootstrap.servers": case.cluster.bootstrap(APP),
            "transactional.id": name,
            "socket.timeout.ms": int(GIVEN_UP_AFTER_S * 1000),
            "transaction.timeout.ms": int(DONE_WITHIN_S * 1000),
            "message.timeout.ms": int(DONE_WITHIN_S * 1000),
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 50,
            "linger.ms": 0,
        }
        logger = logging.getLogger(__name__)
        logger.setLevel(logging.CRITICAL)
        self._producer = Producer(settings, logger=logger)
        self._producer.init_transactions(DONE_WITHIN_S)

    def transaction(self, topic: str, value: str) -> str:
        """Write one record and commit; returns `committed`, or the error."""
        from confluent_kafka import KafkaException

        delivered: list[KafkaError | None] = []

        def report(error: KafkaError | None, _: object) -> None:
            delivered.append(error)

        try:
            self._producer.begin_transaction()
            self._producer.produce(topic, value.encode(), partition=0, on_delivery=report)
            self._producer.flush(DONE_WITHIN_S)  # answer dropped: the report is looked at
            if delivered != [None]:
                return f"not delivered: {', '.join(map(str, delivered)) or 'no report'}"
            self._producer.commit_transaction(DONE_WITHIN_S)
        except (KafkaException, SystemError) as error:
            # The library may call `error_cb` with a fatal error while it raises the same one. Python then raises a
            # SystemError, whose cause is the error of the library.
            cause = error.__cause__ if isinstance(error, SystemError) else error
            return str(cause.args[0] if cause is not None and cause.args else error)
        return "committed"

    def fatal(self) -> str | None:
        """The error because of which the client can never go on, or None."""
        return next((error.str() for error in self._errors if error.fatal()), None)

    def close(self) -> None:
        """Close the producer without waiting for records that can never be sent."""
        self._producer.purge()
        self._producer.flush(0)  # answer dropped: nothing shall be delivered any more
