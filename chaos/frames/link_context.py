"""The parts of a link that its connections use, and the tap that may see every frame of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chaos.frames.request_fields import FrameReader, RequestFrame
from chaos.frames.rule import Rule


class Tap(Protocol):
    """Sees every frame of the links, in front of the rules; used on the links' thread."""

    def request(self, link: str, connection: int, request: RequestFrame) -> None:
        """A request came."""

    async def response(self, link: str, connection: int, request: RequestFrame, response: bytes) -> bytes:
        """A response came, with its length; returns the one to go on in its place."""

    def unreachable(self, link: str, error: OSError) -> None:
        """The broker of a link did not accept a connection."""


class LinkContext(Protocol):
    """The parts of a link that a connection uses."""

    name: str
    tap: Tap | None
    reader: FrameReader
    rules: tuple[Rule, ...]
    frame_bytes_max: int

    def duplicate(self, rule: Rule, number: int, request: RequestFrame) -> None:
        """Send a met request again, as the rule's action says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatus:
    """One open connection. `opaque`: its bytes are not in Kafka's framing (for example TLS) and pass unread."""

    link: str
    connection: int
    requests: int
    responses: int
    request_bytes: int
    response_bytes: int
    opaque: bool
