"""A route: the two addresses that a link consists of.

Links are names; the route says where the link server listens for the source and whom it dials for it. Both are
`host:port` texts as Toxiproxy takes them, seen from the machine (or container) that the link server runs in.
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
    """Where a link's source connects to (`listen`) and where its bytes go (`upstream`)."""

    listen: Endpoint
    upstream: Endpoint
