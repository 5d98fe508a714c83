"""The HTTP API of a Toxiproxy server through its client library, whose three defects end here.

Its server address and its use of `requests` are global, so every call holds a lock of the whole module and sets both. It
has no timeouts, so its session gets one. It reports several refusals as `KeyError` or not at all, so the session raises
for every status but success.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import requests
import toxiproxy.api
from toxiproxy import Toxiproxy
from toxiproxy.proxy import Proxy

from chaos.errors import LinkError
from chaos.routes import Endpoint

# A call takes 1 to 5 ms, and 0.3 s on an overloaded machine; the server itself gives up after 25 s.
_CALL_DEADLINE_S = 5.0

# The library has one server address per process.
_LIBRARY = threading.RLock()


class _Session(requests.Session):
    """A session with a deadline per request, in which every failure is a `LinkError`."""

    def request(self, method: str | bytes, url: str | bytes, *rest: Any, **options: Any) -> requests.Response:
        """As `requests.Session.request`, except for the above."""
        options["timeout"] = _CALL_DEADLINE_S
        asked = f"{method!s} {url!s}"
        try:
            response = super().request(method, url, *rest, **options)
        except requests.RequestException as error:
            raise LinkError(
                f"Toxiproxy did not answer {asked} within {_CALL_DEADLINE_S:g} s: {error}",
                hint="it may be gone, or hang because a paused broker's accept queue is full",
            ) from error
        if not response.ok:
            raise LinkError(f"Toxiproxy refused {asked}: {response.status_code} {response.text.strip()[:200]}")
        return response


class ToxiproxyApi:
    """The API of one server. Every failure is a `LinkError`."""

    def __init__(self, at: Endpoint) -> None:
        self.at = at
        self._session = _Session()
        # The API is on this machine or in a container of it; a configured HTTP proxy must not come between.
        self._session.trust_env = False

    def close(self) -> None:
        """Close the session to the server; the server itself belongs to the runtime."""
        self._session.close()

    @contextlib.contextmanager
    def server(self) -> Iterator[Toxiproxy]:
        """The library with this server and session, for one thread at a time; its failures become `LinkError`s."""
        with _LIBRARY:
            library = toxiproxy.api
            library.APIConsumer.host, library.APIConsumer.port = self.at.host, self.at.port
            library.requests = self._session
            try:
                yield Toxiproxy()
            # A body that is not JSON is a ValueError (and a RequestException); one that lacks a field a KeyError.
            except (KeyError, TypeError, ValueError, requests.RequestException) as error:
                raise LinkError(f"the Toxiproxy server at {self.at} gave an unusable answer: {error!r}") from error

    def proxies(self) -> Any:
        """The server's answer about all proxies by name, within `server`."""
        return toxiproxy.api.APIConsumer.get("/proxies").json()

    def lead(self, proxy: Proxy, to: Endpoint) -> None:
        """Change where a proxy leads, which the library cannot; it stays open or closed, and keeps its toxics."""
        toxiproxy.api.APIConsumer.post(f"/proxies/{proxy.name}", json={"upstream": str(to)})
