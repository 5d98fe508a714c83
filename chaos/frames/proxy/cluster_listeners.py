"""Listeners in front of all brokers of a cluster: every address in a response becomes that of a listener.

Brokers give addresses in Metadata, FindCoordinator and DescribeCluster, and after a leader moved in Produce and Fetch.
An address that comes for the first time gets a listener before the response goes on. So brokers that join later are
behind the proxy, too. The rewriting comes before all rules, so no rule can undo it.

Clients and brokers agree on versions by ApiVersions. A version that the message definitions lack could not be rewritten,
so the proxy lowers the highest version of these APIs to the one that it knows.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from chaos.errors import InjectionError
from chaos.frames.framing import SIZE_MAX
from chaos.frames.links import FrameLinks
from chaos.frames.proxy.frame_log import FrameLog
from chaos.frames.request_fields import RequestFrame
from chaos.routes import Endpoint
from wire.connection import Connection
from wire.errors import ConnectError, WireError
from wire.messages import Definitions
from wire.request import decode_response, response_header_version
from wire.schema import Body

ADDRESSED = ("Metadata", "FindCoordinator", "DescribeCluster", "Produce", "Fetch", "ShareFetch", "ShareAcknowledge")
#: A running broker answers in milliseconds; the machine may be busy.
ANSWER_WITHIN_S = 10.0


class UnreachableError(InjectionError):
    """The upstream cluster does not accept a connection, or does not answer as Kafka does."""


class ClusterListeners:
    """The links to all brokers, and the tap that keeps clients behind them. The first listener is at `listen`.

    `fronts` are the addresses that clients are given for brokers to whose listeners other links lead.
    """

    def __init__(
        self,
        definitions: Definitions,
        listen: Endpoint,
        upstream: Endpoint,
        log: FrameLog,
        tls: ssl.SSLContext | None = None,
        *,
        fronts: Mapping[Endpoint, Endpoint] | None = None,
    ) -> None:
        self._listen, self._upstream, self._log, self._tls = listen, upstream, log, tls
        self._fronts = fronts or {}
        self._listeners: dict[Endpoint, Endpoint] = {}
        self._opening = asyncio.Lock()
        self.links = FrameLinks(definitions, tap=self, tls=tls, frame_bytes_max=SIZE_MAX)

    def start(self) -> None:
        """Ask the cluster for its brokers and open their listeners; raises UnreachableError, InjectionError."""
        brokers = self._brokers()

        async def work() -> None:
            await self._listener(self._upstream)
            for each in brokers:
                await self._rewrite_address(each)

        self.links.call("opening the listeners", work())

    def open(self, brokers: Iterable[Endpoint]) -> dict[Endpoint, Endpoint]:
        """Open listeners for brokers that are known, and return them by broker; raises InjectionError."""

        async def work() -> dict[Endpoint, Endpoint]:
            return {each: await self._listener(each) for each in brokers}

        return self.links.call("opening the listeners", work())

    def _brokers(self) -> list[Body]:
        """The brokers in Metadata, with their addresses; none where only clients may ask, because of SASL."""
        host, port = self._upstream.host, self._upstream.port
        try:
            with Connection(
                host, port, self.links.reader.definitions, timeout_s=ANSWER_WITHIN_S, ssl_context=self._tls
            ) as connection:
                try:
                    found: list[Body] = connection.call("Metadata", {"Topics": []})["Brokers"]
                except WireError as error:
                    self._log.write("no brokers yet", reason=f"{error}; they get listeners when clients ask for them")
                    return []
                return found
        except ConnectError as error:
            raise UnreachableError(f"the upstream broker {self._upstream} is unreachable: {error}") from error
        except WireError as error:
            raise UnreachableError(
                f"the upstream {self._upstream} does not answer as a Kafka broker: {error}",
                hint="a TLS listener needs --upstream-tls",
            ) from error

    def request(self, link: str, connection: int, request: RequestFrame) -> None:
        """Log it."""
        self._log.request(link, connection, request)

    async def response(self, link: str, connection: int, request: RequestFrame, response: bytes) -> bytes:
        """Log the response, and put the addresses of listeners into it."""
        self._log.response(link, connection, request, response)
        if request.api not in (*ADDRESSED, "ApiVersions"):
            return response
        definitions = request.reader.definitions
        try:
            correlation_id, body = decode_response(definitions, request.api, request.version, response[4:])
            if not await self._rewrite(request, body):
                return response
            header = response_header_version(definitions, request.api, request.version)
            content = definitions.encode("ResponseHeader", header, {"CorrelationId": correlation_id})
            content += definitions.encode(f"{request.api}Response", request.version, body)
        except (WireError, InjectionError) as error:
            self._log.write("not rewritten", api=request.api, version=request.version, reason=str(error))
            return response
        return struct.pack(">i", len(content)) + content

    def unreachable(self, link: str, error: OSError) -> None:
        """Log that a client's connection was closed for want of a broker."""
        self._log.write("unreachable", broker=link, reason=str(error) or type(error).__name__)

    async def _rewrite(self, request: RequestFrame, body: Body) -> bool:
        """Change a body in place; whether anything changed."""
        if request.api == "ApiVersions":
            return self._lower(body, request.reader.definitions)
        if request.api == "Metadata":
            for topic in body["Topics"]:
                if isinstance(topic.get("TopicId"), UUID) and topic["Name"]:
                    request.reader.topic_ids[topic["TopicId"]] = topic["Name"]
        return any([await self._rewrite_address(each) for each in _structures(body)])

    async def _rewrite_address(self, body: Body) -> bool:
        """Put the listener's address in place of a broker's; a failed answer has port -1 and no host."""
        if not body.get("Host") or body.get("Port", -1) < 0:
            return False
        broker = Endpoint(host=body["Host"], port=body["Port"])
        at = self._fronts.get(broker, await self._listener(broker))
        body["Host"], body["Port"] = at.host, at.port
        return True

    async def _listener(self, broker: Endpoint) -> Endpoint:
        """The listener in front of a broker; it is opened when the address comes for the first time."""
        async with self._opening:
            if broker in self._listeners.values():  # the cluster advertises this proxy
                return broker
            if broker not in self._listeners:
                self._listeners[broker] = at = await self._open(broker)
                self._log.write("listening", listener=str(at), broker=str(broker))
            return self._listeners[broker]

    async def _open(self, broker: Endpoint) -> Endpoint:
        """The first listener has the given port, later ones those that follow, or any free one."""
        if not self._listeners:
            return await self.links.opened(str(broker), broker, self._listen)
        following = Endpoint(
            host=self._listen.host, port=self._listen.port and self._listen.port + len(self._listeners)
        )
        try:
            return await self.links.opened(str(broker), broker, following)
        except (InjectionError, OverflowError):
            return await self.links.opened(str(broker), broker, Endpoint(host=self._listen.host, port=0))

    @staticmethod
    def _lower(body: Body, definitions: Definitions) -> bool:
        keys = {definitions.api_key(api): api for api in ADDRESSED if api in definitions.apis()}
        lowered = False
        for each in body["ApiKeys"]:
            if api := keys.get(each["ApiKey"]):
                known = definitions.latest(f"{api}Response")
                lowered |= each["MaxVersion"] > known
                each["MaxVersion"] = min(each["MaxVersion"], known)
        return lowered


def _structures(body: Body) -> Iterator[Body]:
    """The body, and the entries of its lists: one of them has the addresses."""
    yield body
    for value in body.values():
        for each in value if isinstance(value, list) else ():
            if isinstance(each, dict):
                yield each
