"""Links as Toxiproxy proxies: cuts, degrades, redirects and heals them. No other module knows that links are proxies.

* A *cut* link is a disabled proxy. Its connections are closed at once and new ones are refused; both ends notice it.
* A link that *drops responses* has a `timeout` toxic (of 0: forever) on its downstream, the bytes that return to the
  side that opened the connection. Requests arrive and are carried out, but their responses are lost.
* A *degraded* link has `latency` and `bandwidth` toxics on both streams.
* A *redirected* link leads to another address, which passes its bytes on (`chaos.frames`). Only `direct` and `heal` undo
  that. The server cannot move a connection: redirecting a link, and undoing it, closes its connections.

Each change is read back from the server. A link that does not show the change raises `LinkError`.

This module works around three defects of the client library. Its server address and its use of `requests` are global, so
every call holds a lock of the whole module and sets both. It has no timeouts, so its session gets one. It reports several
refusals as `KeyError` or not at all, so the session raises for every status but success.

The API of the server can hang: it dials upstreams inside its accept loop without a timeout, holds the proxy's lock
meanwhile, and answers 503 after 25 s. A paused broker with a full accept queue causes that. So resume brokers before
healing links.
"""

from __future__ import annotations

import contextlib
import ipaddress
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import requests
import toxiproxy.api
from toxiproxy import Toxiproxy
from toxiproxy.proxy import Proxy

from chaos.cluster import Link
from chaos.errors import InjectionError, LinkError
from chaos.routes import Endpoint, Route

# A call takes 1 to 5 ms, and 0.3 s on an overloaded machine; the server itself gives up after 25 s.
_CALL_DEADLINE_S = 5.0
# Everything after a fault relies on healing: it is tried again for as long as one hanging dial can last.
_HEAL_DEADLINE_S = 30.0
_HEAL_PAUSE_S = 0.2
_STREAMS = ("upstream", "downstream")
_DROP = "drop_responses"
_DEGRADATIONS = ("latency", "bandwidth")

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


@dataclass(frozen=True, slots=True)
class _State:
    """The state of one proxy as the server reports it."""

    enabled: bool
    toxics: frozenset[str]
    upstream: str


class ToxiproxyMesh:
    """All links of one cluster on one Toxiproxy server; implements `chaos.cluster.LinkMesh`."""

    def __init__(self, api: Endpoint, routes: Mapping[Link, Route]) -> None:
        """Take over a server whose proxies `create` has made or will make."""
        self.api = api
        self.routes = dict(sorted(routes.items()))
        self._session = _Session()
        # The API is on this machine or in a container of it; a configured HTTP proxy must not come between.
        self._session.trust_env = False

    def create(self) -> None:
        """Make one open proxy per link. Raises LinkError, for instance when a port is in use."""
        with self._server() as server:
            for link, route in self.routes.items():
                server.create(upstream=str(route.upstream), name=_name(link), listen=str(route.listen))
            self._require(self.routes, "open", _is_open)

    def close(self) -> None:
        """Close the session to the server; the server itself belongs to the runtime."""
        self._session.close()

    def links(self) -> tuple[Link, ...]:
        """Every link that exists, sorted."""
        return tuple(self.routes)

    def cut(self, *links: Link) -> None:
        """Close the links and refuse new connections through them."""
        with self._server() as server:
            proxies = self._proxies(server, links)
            for link in links:
                proxies[link].disable()
            self._require(links, "cut", lambda state: not state.enabled)

    def restore(self, *links: Link) -> None:
        """Open exactly these links again and remove their toxics."""
        with self._server() as server:
            proxies = self._proxies(server, links)
            for link in links:
                _open(proxies[link])
            self._require(links, "open", _is_open)

    def degrade(self, link: Link, *, latency_ms: int = 0, jitter_ms: int = 0, rate_kb_s: int | None = None) -> None:
        """Delay and throttle a link in both directions; replaces an earlier degradation.

        A round trip takes `latency_ms` ± `jitter_ms` longer *twice*, once per direction. `rate_kb_s` is kilobytes per
        second of each connection and direction. Raises LinkError when there is nothing to degrade.
        """
        if latency_ms < 0 or jitter_ms < 0 or (rate_kb_s is not None and rate_kb_s < 1):
            raise LinkError(f"{link} cannot be degraded by {latency_ms} ± {jitter_ms} ms, {rate_kb_s} kB/s")
        toxics = {}
        if latency_ms or jitter_ms:
            toxics["latency"] = {"latency": latency_ms, "jitter": jitter_ms}
        if rate_kb_s is not None:
            toxics["bandwidth"] = {"rate": rate_kb_s}
        if not toxics:
            raise LinkError(f"{link} cannot be degraded without latency or rate")
        wanted = {f"{kind}_{stream}": (kind, stream) for kind in toxics for stream in _STREAMS}
        with self._server() as server:
            proxy = self._proxies(server, (link,))[link]
            for name in self._state(link).toxics & {f"{kind}_{way}" for kind in _DEGRADATIONS for way in _STREAMS}:
                proxy.destroy_toxic(name)
            for name, (kind, stream) in wanted.items():
                proxy.add_toxic(name=name, type=kind, stream=stream, attributes=toxics[kind])
            self._require((link,), "degraded", lambda state: state.toxics >= set(wanted))

    def drop_responses(self, *links: Link) -> None:
        """Let requests through and drop every byte of their responses; the connection stays open."""
        with self._server() as server:
            proxies = self._proxies(server, links)
            for link in links:
                if _DROP not in self._state(link).toxics:
                    proxies[link].add_toxic(name=_DROP, type="timeout", stream="downstream", attributes={"timeout": 0})
            self._require(links, "without responses", lambda state: _DROP in state.toxics)

    def destination(self, link: Link) -> Endpoint:
        """Where a link leads when it is healed. Raises LinkError for one that does not exist."""
        self._refuse_unknown((link,))
        return self.routes[link].upstream

    def redirect(self, link: Link, to: Endpoint) -> None:
        """Let a link lead to another address of this machine until `direct` or `heal`; closes its connections.

        Raises InjectionError where the Toxiproxy server cannot reach this machine's loopback addresses, and LinkError
        for a link that is redirected already.
        """
        original = self.destination(link)
        if not _is_loopback(original):
            raise InjectionError(
                f"{link} cannot be redirected: it leads to {original}, so its Toxiproxy server is in a container, which"
                f" cannot reach {to}",
                hint="frames can be tampered with in the local runtime",
            )
        if (state := self._state(link)).upstream != str(original):
            raise LinkError(f"{link} is redirected to {state.upstream} already")
        with self._server() as server:
            _lead(self._proxies(server, (link,))[link], to)
            self._require((link,), f"leading to {to}", lambda state: state.upstream == str(to))

    def direct(self, *links: Link) -> None:
        """Let these links lead to their first destinations; closes the connections of redirected ones."""
        with self._server() as server:
            for link, proxy in self._proxies(server, links).items():
                if proxy.upstream != str(self.routes[link].upstream):
                    _lead(proxy, self.routes[link].upstream)
            states = self._states()
            wrong = [str(link) for link in links if states[link].upstream != str(self.routes[link].upstream)]
            if wrong:
                raise LinkError(f"Toxiproxy still redirects {', '.join(wrong)}")

    def heal(self) -> None:
        """Open every link, remove every toxic and undo every redirection, whatever happened before.

        Each link is tried by itself, so one that hangs does not keep the others cut. Raises LinkError with the links
        that are still not open after 30 s.
        """
        began = time.monotonic()
        while (problem := self._heal_once()) is not None:
            waited_s = time.monotonic() - began
            if waited_s > _HEAL_DEADLINE_S:
                raise LinkError(f"links are not healed after {waited_s:.0f} s: {problem}")
            time.sleep(_HEAL_PAUSE_S)

    def is_healed(self) -> bool:
        """Whether the server itself says that every link is open, direct and free of toxics.

        Raises LinkError if it does not answer.
        """
        return not self._unhealed()

    def _heal_once(self) -> str | None:
        """Make one attempt; returns the remaining problem, or None."""
        problems = []
        with contextlib.suppress(LinkError), self._server() as server:
            server.reset()
        try:
            for link in self._unhealed():
                try:
                    self._reopen(link)
                except LinkError as error:
                    problems.append(str(error))
            left = self._unhealed()
        except LinkError as error:
            return str(error)
        return f"{', '.join(map(str, left))} not open; {'; '.join(problems)}" if left else None

    def _reopen(self, link: Link) -> None:
        """Open one link, also when its proxy has vanished."""
        with self._server() as server:
            proxy = server.get_proxy(_name(link))
            if proxy is None:
                route = self.routes[link]
                server.create(upstream=str(route.upstream), name=_name(link), listen=str(route.listen))
            else:
                if proxy.upstream != str(self.routes[link].upstream):
                    _lead(proxy, self.routes[link].upstream)
                _open(proxy)

    def _unhealed(self) -> list[Link]:
        """The links that are not open, have toxics, lead elsewhere, or are unknown to the server."""
        states = self._states()
        return [
            link
            for link, route in self.routes.items()
            if link not in states or not _is_open(states[link]) or states[link].upstream != str(route.upstream)
        ]

    def _states(self) -> dict[Link, _State]:
        """The state of every link that the server knows."""
        with self._server():
            answer = toxiproxy.api.APIConsumer.get("/proxies").json()
            return {
                link: _State(
                    enabled=answer[name]["enabled"],
                    toxics=frozenset(toxic["name"] for toxic in answer[name]["toxics"]),
                    upstream=answer[name]["upstream"],
                )
                for link in self.routes
                if (name := _name(link)) in answer
            }

    def _state(self, link: Link) -> _State:
        return self._states()[link]

    def _require(self, links: Iterable[Link], what: str, holds: Callable[[_State], bool]) -> None:
        """Read back; raises LinkError with the links for which a postcondition does not hold."""
        states = self._states()
        wrong = [link for link in links if link not in states or not holds(states[link])]
        if wrong:
            seen = ", ".join(f"{link}: {states.get(link)}" for link in wrong)
            raise LinkError(f"Toxiproxy does not show these links as {what}: {seen}")

    def _proxies(self, server: Toxiproxy, links: Iterable[Link]) -> dict[Link, Proxy]:
        """The proxies of these links. Raises LinkError for a link that this mesh or the server does not have."""
        self._refuse_unknown(links)
        found = server.proxies()
        missing = [str(link) for link in links if _name(link) not in found]
        if missing:
            raise LinkError(f"Toxiproxy has lost {', '.join(missing)}", hint="was it restarted? heal the links")
        return {link: found[_name(link)] for link in links}

    def _refuse_unknown(self, links: Iterable[Link]) -> None:
        unknown = [str(link) for link in links if link not in self.routes]
        if unknown:
            raise LinkError(f"there is no link {', '.join(unknown)}; there are {', '.join(map(str, self.routes))}")

    @contextlib.contextmanager
    def _server(self) -> Iterator[Toxiproxy]:
        """The library with this mesh's server and session; its failures become `LinkError`s."""
        with _LIBRARY:
            library = toxiproxy.api
            library.APIConsumer.host, library.APIConsumer.port = self.api.host, self.api.port
            library.requests = self._session
            try:
                yield Toxiproxy()
            # A body that is not JSON is a ValueError (and a RequestException); one that lacks a field a KeyError.
            except (KeyError, TypeError, ValueError, requests.RequestException) as error:
                raise LinkError(f"the Toxiproxy server at {self.api} gave an unusable answer: {error!r}") from error


def _name(link: Link) -> str:
    """The proxy's name: that of the link has characters that do not belong in a URL."""
    return f"{link.plane}-{link.source}-{link.target}"


def _is_open(state: _State) -> bool:
    return state.enabled and not state.toxics


def _is_loopback(at: Endpoint) -> bool:
    try:
        return ipaddress.ip_address(at.host).is_loopback
    except ValueError:  # a name: only containers are called by one
        return False


def _lead(proxy: Proxy, to: Endpoint) -> None:
    """Change where a proxy leads, which the library cannot; it stays open or closed, and keeps its toxics."""
    toxiproxy.api.APIConsumer.post(f"/proxies/{proxy.name}", json={"upstream": str(to)})


def _open(proxy: Proxy) -> None:
    """Enable a proxy and remove its toxics; toxics first, so that no byte passes a toxic after the opening."""
    for name in proxy.toxics():
        proxy.destroy_toxic(name)
    proxy.enable()
