"""Links as Toxiproxy proxies: cuts, degrades, redirects and heals them. No other module knows that links are proxies.

* A *cut* link is a disabled proxy. Its connections are closed at once and new ones are refused; both ends notice it.
* A link whose destination does not listen is a disabled proxy, too, where the runtime says so (`follow`). It counts as
  healed: it opens as soon as its destination listens.
* A link that *drops responses* has a `timeout` toxic (of 0: forever) on its downstream, the bytes that return to the
  side that opened the connection. Requests arrive and are carried out, but their responses are lost.
* A *degraded* link has `latency` and `bandwidth` toxics on both streams.
* A *redirected* link leads to another address, which passes its bytes on (`chaos.frames`). Only `direct` and `heal` undo
  that. The server cannot move a connection: redirecting a link, and undoing it, closes its connections.

Each change is read back from the server. A link that does not show the change raises `LinkError`.

The API of the server can hang: it dials upstreams inside its accept loop without a timeout, holds the proxy's lock
meanwhile, and answers 503 after 25 s. A paused broker with a full accept queue causes that. So resume brokers before
healing links.
"""

from __future__ import annotations

import contextlib
import ipaddress
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from toxiproxy import Toxiproxy
from toxiproxy.proxy import Proxy

from chaos.cluster import Link
from chaos.errors import InjectionError, LinkError
from chaos.routes import Endpoint, Route
from chaos.toxiproxy_api import ToxiproxyApi

# Everything after a fault relies on healing: it is tried again for as long as one hanging dial can last.
_HEAL_DEADLINE_S = 30.0
_HEAL_PAUSE_S = 0.2
_STREAMS = ("upstream", "downstream")
_DROP = "drop_responses"
_DEGRADATIONS = ("latency", "bandwidth")


@dataclass(frozen=True, slots=True)
class _State:
    """The state of one proxy as the server reports it. A *deserted* one is closed only until its destination listens."""

    enabled: bool
    deserted: bool
    toxics: frozenset[str]
    upstream: str


class ToxiproxyMesh:
    """All links of one cluster on one Toxiproxy server; implements `chaos.cluster.LinkMesh`."""

    def __init__(self, api: Endpoint, routes: Mapping[Link, Route]) -> None:
        """Take over a server whose proxies `create` has made or will make."""
        self.api = api
        self._toxiproxy = ToxiproxyApi(api)
        self.routes = dict(sorted(routes.items()))
        self._cut: set[Link] = set()
        self._deserted: set[Link] = set()

    def create(self) -> None:
        """Make one open proxy per link. Raises LinkError, for instance when a port is in use."""
        with self._toxiproxy.server() as server:
            for link, route in self.routes.items():
                server.create(upstream=str(route.upstream), name=_name(link), listen=str(route.listen))
            self._require(self.routes, "open", _is_open)

    def follow(self, listening: Collection[Endpoint]) -> None:
        """Let exactly the links listen that are not cut and lead to one of these addresses. Raises LinkError."""
        with self._toxiproxy.server() as server:
            deserted = {link for link, route in self.routes.items() if route.upstream not in listening}
            if changed := sorted(deserted ^ self._deserted):
                for link, proxy in self._proxies(server, changed).items():
                    if link in deserted:
                        self._deserted.add(link)
                        proxy.disable()
                    else:
                        self._deserted.discard(link)
                        self._enable(link, proxy)

    def close(self) -> None:
        """Close the session to the server; the server itself belongs to the runtime."""
        self._toxiproxy.close()

    def links(self) -> tuple[Link, ...]:
        """Every link that exists, sorted."""
        return tuple(self.routes)

    def cut(self, *links: Link) -> None:
        """Close the links and refuse new connections through them."""
        with self._toxiproxy.server() as server:
            proxies = self._proxies(server, links)
            for link in links:
                self._cut.add(link)
                proxies[link].disable()
            self._require(links, "cut", lambda state: not state.enabled)

    def restore(self, *links: Link) -> None:
        """Open exactly these links again and remove their toxics."""
        with self._toxiproxy.server() as server:
            proxies = self._proxies(server, links)
            for link in links:
                self._open(link, proxies[link])
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
        with self._toxiproxy.server() as server:
            proxy = self._proxies(server, (link,))[link]
            for name in self._state(link).toxics & {f"{kind}_{way}" for kind in _DEGRADATIONS for way in _STREAMS}:
                proxy.destroy_toxic(name)
            for name, (kind, stream) in wanted.items():
                proxy.add_toxic(name=name, type=kind, stream=stream, attributes=toxics[kind])
            self._require((link,), "degraded", lambda state: state.toxics >= set(wanted))

    def drop_responses(self, *links: Link) -> None:
        """Let requests through and drop every byte of their responses; the connection stays open."""
        with self._toxiproxy.server() as server:
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
        with self._toxiproxy.server() as server:
            self._toxiproxy.lead(self._proxies(server, (link,))[link], to)
            self._require((link,), f"leading to {to}", lambda state: state.upstream == str(to))

    def direct(self, *links: Link) -> None:
        """Let these links lead to their first destinations; closes the connections of redirected ones."""
        with self._toxiproxy.server() as server:
            for link, proxy in self._proxies(server, links).items():
                if proxy.upstream != str(self.routes[link].upstream):
                    self._toxiproxy.lead(proxy, self.routes[link].upstream)
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
        with contextlib.suppress(LinkError), self._toxiproxy.server() as server:
            # A reset opens all links, so that those to an address at which no process listens would accept connections.
            if not self._deserted:
                server.reset()
                self._cut.clear()
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
        with self._toxiproxy.server() as server:
            proxy = server.get_proxy(_name(link))
            if proxy is None:
                route = self.routes[link]
                server.create(upstream=str(route.upstream), name=_name(link), listen=str(route.listen))
                self._cut.discard(link)
                self._deserted.discard(link)
            else:
                if proxy.upstream != str(self.routes[link].upstream):
                    self._toxiproxy.lead(proxy, self.routes[link].upstream)
                self._open(link, proxy)

    def _open(self, link: Link, proxy: Proxy) -> None:
        """Undo a cut and remove toxics; toxics first, so that no byte passes a toxic after the opening."""
        for name in proxy.toxics():
            proxy.destroy_toxic(name)
        self._cut.discard(link)
        self._enable(link, proxy)

    def _enable(self, link: Link, proxy: Proxy) -> None:
        if link not in self._cut and link not in self._deserted:
            proxy.enable()

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
        with self._toxiproxy.server():
            answer = self._toxiproxy.proxies()
            return {
                link: _State(
                    enabled=answer[name]["enabled"],
                    deserted=link in self._deserted - self._cut,
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


def _name(link: Link) -> str:
    """The proxy's name: that of the link has characters that do not belong in a URL."""
    return f"{link.plane}-{link.source}-{link.target}"


def _is_open(state: _State) -> bool:
    return (state.enabled or state.deserted) and not state.toxics


def _is_loopback(at: Endpoint) -> bool:
    try:
        return ipaddress.ip_address(at.host).is_loopback
    except ValueError:  # a name: only containers are called by one
        return False
