"""Encodes a request once, as a value that can be held, sent, and sent again byte for byte.

The frame holds everything, its correlation id and client id included, so a replay on another connection has the same
bytes. Kafka answers the requests of a connection in order, and a connection matches answers by that order. Therefore two
requests with one correlation id may be outstanding at once.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wire.messages import Definitions
from wire.primitives import Raw, Reader
from wire.schema import Body

_correlation_ids = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request at one version, encoded; ``frame`` begins with its four length bytes."""

    api: str
    version: int
    correlation_id: int
    frame: bytes = field(repr=False)
    body: Mapping[str, Any] | Raw = field(repr=False, compare=False)
    answered: bool = True  # Produce with Acks 0 gets no answer

    @classmethod
    def of(
        cls,
        definitions: Definitions,
        api: str,
        version: int,
        body: Mapping[str, Any] | Raw,
        *,
        client_id: str | None = "onceproof",
        correlation_id: int | None = None,
        header_version: int | None = None,
    ) -> Request:
        """Encode a request; raises FieldError and VersionError.

        A ``Raw`` body may have a version without definition, when its header version (0, 1 or 2) is given.
        """
        number = next(_correlation_ids) & 0x7FFFFFFF if correlation_id is None else correlation_id
        header = {
            "RequestApiKey": definitions.api_key(api),
            "RequestApiVersion": version,
            "CorrelationId": number,
            "ClientId": client_id,
        }
        if header_version is None:
            header_version = request_header_version(definitions, api, version)
        if header_version == 0:
            del header["ClientId"]
        content = definitions.encode("RequestHeader", header_version, header)
        content += body if isinstance(body, Raw) else definitions.encode(f"{api}Request", version, body)
        answered = api != "Produce" or isinstance(body, Raw) or body.get("Acks", 0) != 0
        frame = struct.pack(">i", len(content)) + content
        return cls(api=api, version=version, correlation_id=number, frame=frame, body=body, answered=answered)


def request_header_version(definitions: Definitions, api: str, version: int) -> int:
    """The request header that goes with an API version: 2 for flexible ones, else 1; 0 only for one of 0.8's."""
    if api == "ControlledShutdown" and version == 0:
        return 0
    return 2 if definitions.message(f"{api}Request", version).flexible else 1


def response_header_version(definitions: Definitions, api: str, version: int) -> int:
    """The response header that goes with an API version.

    ApiVersions is always answered with header 0 (KIP-511), so that a client can read it before it knows anything.
    """
    if api == "ApiVersions":
        return 0
    return 1 if definitions.message(f"{api}Response", version).flexible else 0


def decode_response(definitions: Definitions, api: str, version: int, frame: bytes) -> tuple[int, Body]:
    """Correlation id and body of a response frame without its length; raises ProtocolError.

    Bytes behind the body are an error, but for Metadata: librdkafka's mock cluster ends its flexible versions with a byte
    too many, and could not be tried otherwise.
    """
    source = Reader(frame)
    header = definitions.read("ResponseHeader", response_header_version(definitions, api, version), source)
    decode = definitions.read if api == "Metadata" else definitions.rest
    return header["CorrelationId"], decode(f"{api}Response", version, source)


def decode_request(definitions: Definitions, api: str, version: int, frame: bytes) -> tuple[Body, Body]:
    """Header and body of a request frame without its length, as a broker would read them."""
    source = Reader(frame)
    header = definitions.read("RequestHeader", request_header_version(definitions, api, version), source)
    return header, definitions.rest(f"{api}Request", version, source)
