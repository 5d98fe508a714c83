"""Answers in a broker's place, for the request's own version.

An error code goes where the API has one: at the top of the response, or, for the requests that are answered partition
by partition, beside every partition that was asked about. A body is encoded as it is given.
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

_NOBODY = -1


def answer_frame(asked: RequestFrame, answer: Respond) -> bytes:
    """The response with its length; raises WireError where the request or its response cannot be read or written."""
    definitions = asked.reader.definitions
    body = answer.body
    if body is None:
        assert answer.error_code is not None
        body = error_body(asked.api, asked.body(), answer.error_code)
    header_version = response_header_version(definitions, asked.api, asked.version)
    content = definitions.encode("ResponseHeader", header_version, {"CorrelationId": asked.correlation_id})
    content += definitions.encode(f"{asked.api}Response", asked.version, body)
    return struct.pack(">i", len(content)) + content


def error_body(api: str, request: Body, code: int) -> Body:
    """The body of a response that says this code; raises FieldError for an API whose errors have no such place."""
    if api in _BY_PARTITION:
        return _BY_PARTITION[api](request, code)
    if api in ("Fetch", "ListOffsets", "OffsetFetch", "Metadata", "DescribeTransactions", "DescribeProducers"):
        raise FieldError(f"{api} has no error code for all that was asked; give the body of the answer")
    return {"ErrorCode": code}


def _topics(topics: list[Any], results: str, partition: Callable[[Any], Body]) -> list[Body]:
    """One entry per topic and partition that was asked about, topics by the name or id that the request used."""
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
        return {"Index": each["Index"], "ErrorCode": code, "BaseOffset": _NOBODY}

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
    nobody: Body = {"NodeId": _NOBODY, "Host": "", "Port": _NOBODY, "ErrorCode": code}
    if "CoordinatorKeys" not in request:  # up to version 3
        return nobody
    return {"Coordinators": [{"Key": key, **nobody} for key in request["CoordinatorKeys"]]}


_BY_PARTITION: dict[str, Callable[[Body, int], Body]] = {
    "Produce": _produce,
    "AddPartitionsToTxn": _add_partitions,
    "TxnOffsetCommit": _commit,
    "OffsetCommit": _commit,
    "WriteTxnMarkers": _markers,
    "FindCoordinator": _coordinator,
}
