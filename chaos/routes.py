"""A route: the two addresses of a link.

A link is a name. Its route says where Toxiproxy listens for the source, and the address that Toxiproxy connects to. Both
are `host:port` texts, as seen from the machine or container in which the Toxiproxy server runs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Endpoint:
    """A TCP address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The address that a link's source connects to (`listen`) and the one that its bytes go to (`upstream`)."""

    listen: Endpoint
    upstream: Endpoint
