"""Sends the requests of a walk to a broker and reads its answers, over connections that walks share.

One broker leads and coordinates everything. A request that it is not ready for is sent again, within bounds; every other
answer is the walk's. Every exchange is recorded as it is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fixtures.waiting import LOOK_EVERY_S
from runner.explorer.moves import PRODUCERS
from runner.explorer.observe import WalkObserver
from runner.protocol.toolkit.context import NOT_NOW
from runner.protocol.toolkit.inspector import COMPLETE, COMPLETE_WITHIN_S
from runner.protocol.toolkit.producer import PRODUCE_TIMEOUT_MS, base_offset
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.script_recorder import ScriptRecorder
from verification.specification.state import NO_EPOCH, ModelAnswer, ModelRequest, RequestKind, Rules
from wire.client import Client
from wire.codes import ErrorCode as Code
from wire.connection import Connection
from wire.errors import BrokerError, WireError
from wire.records import encode
from wire.request import Request as Frame
from wire.schema import Body
from wire.transaction_versions import AT_MOST

if TYPE_CHECKING:
    from runner.explorer.moves import Move

#: Codes after which a request is sent again: a new topic or coordinator is known everywhere within milliseconds. That a
#: transaction still completes is an answer of the walk.
NOT_READY = NOT_NOW - {Code.CONCURRENT_TRANSACTIONS} | {Code.UNKNOWN_TOPIC_OR_PARTITION}
READY_WITHIN_S = 10.0
#: The distance from the walk's producer id to a foreign one, which no producer has.
FOREIGN = 1_000_000
#: A walk with a short timeout that was slower than this share of it proves nothing.
SLOW_SHARE = 0.6


@dataclass(slots=True, kw_only=True, eq=False)
class WalkConnections:
    """The connections that walks send on: one per instance, and one for requests that are sent again."""

    instances: list[Connection]
    other: Connection

    @classmethod
    def open(cls, client: Client, broker: int) -> WalkConnections:
        """Open them."""
        opened = [client.open(broker) for _ in range(PRODUCERS + 1)]
        return cls(instances=opened[:PRODUCERS], other=opened[-1])

    @property
    def ended(self) -> bool:
        """Whether one of them cannot be used any more."""
        return any(each.closed for each in (*self.instances, self.other))

    def close(self) -> None:
        """Close them all."""
        for each in (*self.instances, self.other):
            each.close()


class Broker:
    """One walk's requests; `name` is its transactional id and group, `topic` has its two partitions."""

    def __init__(
        self, client: Client, connections: WalkConnections, rules: Rules, *, name: str, topic: str, timeout_ms: int
    ) -> None:
        self.recording = ScriptRecorder()
        self.slow = False
        self._connections, self._rules, self._name, self._topic = connections, rules, name, topic
        self._timeout_ms = timeout_ms
        self._id: int | None = None
        self._frames: dict[int, Frame] = {}
        self._began_s = time.monotonic()
        self._observer = WalkObserver(client, name=name, topic=topic)

    # -- the answerer ------------------------------------------------------------------------------------------

    def ask(self, move: Move, request: ModelRequest) -> ModelAnswer:
        """Send one request and wait for its answer."""
        if request.kind is RequestKind.LOOK:
            answer = self._seen(self._observer.everything)
            self._note(request.kind, answer)
            return answer
        if request.kind is RequestKind.EXPIRE:
            return self._seen(self._expired)
        replayed = move.send == "replay"
        connection = self._connections.other if replayed else self._connections.instances[move.who]
        frame = self._frames.get(move.of if replayed else move.number) or self._made(move, request, connection)
        end_s = time.monotonic() + READY_WITHIN_S
        while (answered := self._exchange(frame, connection, move)).body is not None:
            answer = self._read(request.kind, answered)
            self._note(request.kind, answer)
            if answer.code not in NOT_READY or time.monotonic() > end_s:
                return answer
            time.sleep(LOOK_EVERY_S / 2)
        return ModelAnswer(trouble=f"no answer ({answered.error.partition(':')[0][:40]})")

    def hold(self, move: Move, request: ModelRequest) -> None:
        """Encode a request for later."""
        self._made(move, request, self._connections.instances[move.who])

    def settle(self) -> ModelAnswer:
        """Wait until the coordinator has completed the transaction."""
        # A completion takes about a millisecond.
        return self._seen(partial(self._completed, within_s=COMPLETE_WITHIN_S, every_s=0.001))

    # -- requests ----------------------------------------------------------------------------------------------

    def _made(self, move: Move, request: ModelRequest, connection: Connection) -> Frame:
        api = str(request.kind)
        version = connection.version_for(api, at_most=AT_MOST[self._rules.generation].get(api, 0x7FFF))
        self._frames[move.number] = frame = connection.request(api, _BODIES[request.kind](self, request), version)
        return frame

    def _exchange(self, frame: Frame, connection: Connection, move: Move) -> Response:
        where = f"instance {move.who}" if connection is not self._connections.other else "another connection"
        begun = self.recording.begin(frame.api, frame.version, where, frame.body)
        try:
            return self.recording.answered(begun, connection.receive(connection.send(frame)))
        except WireError as error:
            return self.recording.answered(begun, error)

    def producer(self, request: ModelRequest) -> int:
        """The producer id that a request names."""
        own = -1 if self._id is None else self._id
        return own + FOREIGN if request.foreign or own < 0 else own

    def init(self, request: ModelRequest) -> Body:
        """InitProducerId."""
        body: Body = {"TransactionalId": self._name, "TransactionTimeoutMs": self._timeout_ms}
        if request.epoch != NO_EPOCH:
            body |= {"ProducerId": self.producer(request), "ProducerEpoch": request.epoch}
        return body

    def add(self, request: ModelRequest) -> Body:
        """AddPartitionsToTxn, as clients send it."""
        return {
            "V3AndBelowTransactionalId": self._name,
            "V3AndBelowProducerId": self.producer(request),
            "V3AndBelowProducerEpoch": request.epoch,
            "V3AndBelowTopics": [{"Name": self._topic, "Partitions": [request.place]}],
        }

    def add_offsets(self, request: ModelRequest) -> Body:
        """AddOffsetsToTxn."""
        return self._identified(request) | {"GroupId": self._name}

    def produce(self, request: ModelRequest) -> Body:
        """Produce of one transactional batch."""
        batch = encode(
            [(None, value.encode()) for value in request.values],
            producer_id=self.producer(request),
            producer_epoch=request.epoch,
            base_sequence=request.sequence,
            transactional=True,
        )
        data = [{"Name": self._topic, "PartitionData": [{"Index": request.place, "Records": batch}]}]
        return {"TransactionalId": self._name, "Acks": -1, "TimeoutMs": PRODUCE_TIMEOUT_MS, "TopicData": data}

    def commit_offset(self, request: ModelRequest) -> Body:
        """TxnOffsetCommit in the form that names no member."""
        offsets = [{"PartitionIndex": 0, "CommittedOffset": request.offset}]
        return self._identified(request) | {
            "GroupId": self._name,
            "Topics": [{"Name": self._topic, "Partitions": offsets}],
        }

    def end(self, request: ModelRequest) -> Body:
        """EndTxn."""
        return self._identified(request) | {"Committed": request.commit}

    def _identified(self, request: ModelRequest) -> Body:
        return {
            "TransactionalId": self._name,
            "ProducerId": self.producer(request),
            "ProducerEpoch": request.epoch,
        }

    # -- answers -----------------------------------------------------------------------------------------------

    def _read(self, kind: RequestKind, answered: Response) -> ModelAnswer:
        code = answered.code
        if code or kind in (RequestKind.ADD, RequestKind.ADD_OFFSETS, RequestKind.COMMIT_OFFSET):
            return ModelAnswer(code=code)
        if kind is RequestKind.PRODUCE:
            return ModelAnswer(offset=base_offset(answered))
        body = answered.body or {}
        if body.get("ProducerId", -1) < 0:
            return ModelAnswer()
        if self._id is None:
            self._id = body["ProducerId"]
        trouble = "" if self._id == body["ProducerId"] else "another producer id"
        return ModelAnswer(epoch=body["ProducerEpoch"], trouble=trouble)

    def _seen(self, look: Callable[[], dict[str, Any]]) -> ModelAnswer:
        """Look, and give the result as an answer.

        The client asks again until its deadline. An error code that it then received last is the answer.
        """
        try:
            return ModelAnswer(seen=look())
        except WireError as error:
            refusal = error if isinstance(error, BrokerError) else error.__cause__
            if isinstance(refusal, BrokerError):
                return ModelAnswer(code=refusal.code, api=refusal.what.partition(" ")[0])
            return ModelAnswer(trouble=f"no answer ({type(error).__name__})")

    def _completed(self, *, within_s: float, every_s: float) -> dict[str, Any]:
        """Wait until the transaction is complete; the state and epoch that the coordinator had last."""
        end_s = time.monotonic() + within_s
        while (seen := self._observer.coordinator())["state"] not in COMPLETE and time.monotonic() < end_s:
            time.sleep(every_s)
        return seen

    def _expired(self) -> dict[str, Any]:
        seen = self._completed(within_s=COMPLETE_WITHIN_S + self._timeout_ms / 1000, every_s=LOOK_EVERY_S / 2)
        self._began_s = time.monotonic()
        return {"state": seen["state"]}

    def _note(self, kind: RequestKind, answer: ModelAnswer) -> None:
        """Notes whether the coordinator may have aborted by itself a transaction that is open in the model."""
        now_s = time.monotonic()
        self.slow = self.slow or now_s - self._began_s > SLOW_SHARE * self._timeout_ms / 1000
        if answer.code == 0 and kind in (RequestKind.INIT, RequestKind.END):
            self._began_s = now_s  # no transaction is open after them


_BODIES: Mapping[RequestKind, Callable[[Broker, ModelRequest], Body]] = {
    RequestKind.INIT: Broker.init,
    RequestKind.ADD: Broker.add,
    RequestKind.ADD_OFFSETS: Broker.add_offsets,
    RequestKind.PRODUCE: Broker.produce,
    RequestKind.COMMIT_OFFSET: Broker.commit_offset,
    RequestKind.END: Broker.end,
}
