"""The listening side of a link, which can refuse connections for a while and keep its port.

A listener that accepts and closes is not like a process that is gone: franz-go takes a connection that ends before the
first answer for a wrong listener, and fails records. The kernel refuses connections to a socket that does not listen.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from chaos.frames.connection import CHUNK_BYTES
from chaos.routes import Endpoint

Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


class Listener:
    """Accepts connections from `open` to `close`, but for the time between `refuse` and `resume`."""

    def __init__(self, accept: Accept) -> None:
        self._accept = accept
        self._servers: list[asyncio.Server] = []
        self._bound: list[socket.socket] = []

    async def open(self, at: Endpoint) -> Endpoint:
        """Begin to accept; returns the address."""
        server = await asyncio.start_server(self._accept, at.host, at.port, limit=CHUNK_BYTES)
        self._servers = [server]
        host, port = server.sockets[0].getsockname()[:2]
        return Endpoint(host=host, port=port)

    def refuse(self) -> bool:
        """Refuse connections from now on; whether they were accepted until now."""
        if not self._servers:
            return False
        places = [(each.family, each.getsockname()) for server in self._servers for each in server.sockets]
        self.close()
        # A name may have an address of each family, and `open` listens at all of them.
        for family, address in places:
            self._bound.append(bound := socket.socket(family, socket.SOCK_STREAM))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(address)
        return True

    async def resume(self) -> None:
        """Accept again."""
        while self._bound:
            server = await asyncio.start_server(
                self._accept, sock=self._bound.pop(), limit=CHUNK_BYTES, start_serving=False
            )
            self._servers.append(server)
            await server.start_serving()

    def close(self) -> None:
        """Accept nothing more. May be repeated."""
        for server in self._servers:
            server.close()
        for bound in self._bound:
            bound.close()
        self._servers, self._bound = [], []
