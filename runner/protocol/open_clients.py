"""The open clients of cases, which are all abandoned at once when their cluster is taken away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from verification.sources.access import Access
from wire.client import Client
from wire.messages import Definitions


class OpenClients:
    """One client per case. Several threads may use it."""

    def __init__(self) -> None:
        self._open: set[Client] = set()
        self._lock = threading.Lock()
        self.abandoned = False

    @contextmanager
    def opened(self, bootstrap: str, definitions: Definitions, access: Access | None = None) -> Iterator[Client]:
        """A client of a cluster, with TLS and SASL where its listener has them."""
        way = access or Access()
        with Client(
            bootstrap,
            definitions,
            client_id="protocol",
            ssl_context=way.ssl_context,
            authentication=way.authentication,
        ) as client:
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
        """End every wait for an answer: each client, also one that is opened later, raises AbandonedError at once."""
        with self._lock:
            self.abandoned = True
            for client in self._open:
                client.abandon()
