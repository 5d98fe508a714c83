"""A producer that acknowledges a record which is not in the log (twmb/franz-go#1217).

The broker appends a record, and each of its answers is lost: the frame proxy answers REQUEST_TIMED_OUT in their place.
The record is given up at its deadline. The next record of a bad version gets the same sequence number. So the broker takes
it for a repetition, and acknowledges it with the offset of the record that was given up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chaos.frames import FrameFilter, FrameLinks, Respond
from chaos.frames.selector import Direction
from fixtures.clients.contract.conversation import Conversation
from fixtures.clients.contract.rule import ContractBench, require, require_none
from verification.vocabulary.identity import RecordKind, decode
from wire.codes import ErrorCode

PATIENT_S = 20.0
#: The broker has appended the record by then, and answered several attempts.
GIVEN_UP_AFTER_S = 2.0
PLACE = (0, 0)
LOST = FrameFilter(api="Produce", direction=Direction.RESPONSE)


def lost_acknowledgement(bench: ContractBench, links: FrameLinks, *, through: str) -> str:
    """The record that was acknowledged and is not in the log, in words; empty if there is none. Raises ClientError.

    The client reaches the broker through the links, at the address `through`.
    """
    topics = bench.topics(1)
    producer, reader = replace(bench, bootstrap=through).open("producer", topics), bench.observer(topics)
    _, error = _write(producer, 0, PATIENT_S)
    require_none(error, "append")
    rule = links.add(LOST, Respond(error_code=int(ErrorCode.REQUEST_TIMED_OUT)))
    _, error = _write(producer, 1, GIVEN_UP_AFTER_S)
    links.remove(rule)
    require(error is not None and rule.count > 0, "the record whose answers were lost was not given up")
    offset, error = _write(producer, 2, PATIENT_S)
    require_none(error, "append")
    read = reader.read([PLACE], least=2)
    read += reader.do("poll", max_records=10, timeout_s=1.0)["records"]
    found = {each.operation for *_, value in read if (each := decode(value.encode("latin-1"))) is not None}
    return "" if 2 in found else f"a record was acknowledged with offset {offset}, and is not in the log"


def _write(producer: Conversation, operation: int, deadline_s: float) -> tuple[int, dict[str, Any] | None]:
    """Append one record; its offset and its error."""
    records = producer.records([PLACE], kind=RecordKind.PLAIN, operation=operation)
    (ack,) = producer.do("append", records=records, deadline_s=deadline_s)["acks"]
    return ack[3], ack[4]
