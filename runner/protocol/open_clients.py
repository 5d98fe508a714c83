"""The clients that cases ask with, all of which are abandoned at once when their cluster is taken away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from wire.client import Client
from wire.messages import Definitions


class Clients:
    """May be used by several threads: the cases of a company have one client each."""

    def __init__(self) -> None:
        self._open: set[Client] = set()
        self._lock = threading.Lock()
        self.abandoned = False

    @contextmanager
    def opened(self, bootstrap: str, definitions: Definitions) -> Iterator[Client]:
        """A client of a cluster."""
        with Client(bootstrap, definitions, client_id="protocol") as client:
            with self._lock:
                self._open.add(client)
                if self.abandoned:
                    client.abandon()
            try:
                yield client
            finally:
                with self._lock:
                    self._open.discard(client)

    def abandon(self) -> None:
        """Let nobody wait for an answer any more: whoever asks is told so at once, and ends."""
        with self._lock:
            self.abandoned = True
            for client in self._open:
                client.abandon()
