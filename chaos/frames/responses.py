"""Makes responses in place of a broker, at the version of the request.

An error code goes where the API has one: at the top of the response or, for requests that are answered per partition,
next to every partition of the request. A body is encoded as it is given.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from chaos.frames.actions import Respond
from chaos.frames.request_fields import RequestFrame
from wire.errors import FieldError
from wire.request import response_header_version
from wire.schema import Body

_NONE = -1


def answer_frame(request: RequestFrame, answer: Respond) -> bytes:
    """The response with its length; raises WireError where the request or its response cannot be read or written."""
    definitions = request.reader.definitions
    body = answer.body
    if body is None:
        assert answer.error_code is not None
        body = error_body(request.api, request.body(), answer.error_code)
    header_version = response_header_version(definitions, request.api, request.version)
    content = definitions.encode("ResponseHeader", header_version, {"CorrelationId": request.correlation_id})
    content += definitions.encode(f"{request.api}Response", request.version, body)
    return struct.pack(">i", len(content)) + content


def error_body(api: str, request: Body, code: int) -> Body:
    """The body of a response with this code; raises FieldError for an API that has no field for it."""
    if api in _BY_PARTITION:
        return _BY_PARTITION[api](request, code)
    if api in ("Fetch", "ListOffsets", "OffsetFetch", "Metadata", "DescribeTransactions", "DescribeProducers"):
        raise FieldError(f"{api} has no error code for the whole request; give the body of the answer")
    return {"ErrorCode": code}


def _topics(topics: list[Any], results: str, partition: Callable[[Any], Body]) -> list[Body]:
    """One entry per topic and partition of the request, topics by the name or id that the request used."""
    return [
        {
            **{name: topic[name] for name in ("Name", "TopicId") if name in topic},
            results: [partition(each) for key in _LISTS if key in topic for each in topic[key]],
        }
        for topic in topics
    ]


_LISTS = ("PartitionData", "Partitions", "PartitionIndexes")


def _produce(request: Body, code: int) -> Body:
    def partition(each: Any) -> Body:
        return {"Index": each["Index"], "ErrorCode": code, "BaseOffset": _NONE}

    return {"Responses": _topics(request["TopicData"], "PartitionResponses", partition)}


def _add_partitions(request: Body, code: int) -> Body:
    def partition(each: Any) -> Body:
        return {"PartitionIndex": each, "PartitionErrorCode": code}

    if "V3AndBelowTopics" in request:
        results = _topics(request["V3AndBelowTopics"], "ResultsByPartition", partition)
        return {"ResultsByTopicV3AndBelow": results}
    return {
        "ErrorCode": 0,
        "ResultsByTransaction": [
            {
                "TransactionalId": each["TransactionalId"],
                "TopicResults": _topics(each["Topics"], "ResultsByPartition", partition),
            }
            for each in request["Transactions"]
        ],
    }


def _commit(request: Body, code: int) -> Body:
    def partition(each: Any) -> Body:
        return {"PartitionIndex": each["PartitionIndex"], "ErrorCode": code}

    return {"Topics": _topics(request["Topics"], "Partitions", partition)}


def _markers(request: Body, code: int) -> Body:
    def partition(each: Any) -> Body:
        return {"PartitionIndex": each, "ErrorCode": code}

    return {
        "Markers": [
            {"ProducerId": each["ProducerId"], "Topics": _topics(each["Topics"], "Partitions", partition)}
            for each in request["Markers"]
        ]
    }


def _coordinator(request: Body, code: int) -> Body:
    none: Body = {"NodeId": _NONE, "Host": "", "Port": _NONE, "ErrorCode": code}
    if "CoordinatorKeys" not in request:  # up to version 3
        return none
    return {"Coordinators": [{"Key": key, **none} for key in request["CoordinatorKeys"]]}


_BY_PARTITION: dict[str, Callable[[Body, int], Body]] = {
    "Produce": _produce,
    "AddPartitionsToTxn": _add_partitions,
    "TxnOffsetCommit": _commit,
    "OffsetCommit": _commit,
    "WriteTxnMarkers": _markers,
    "FindCoordinator": _coordinator,
}
