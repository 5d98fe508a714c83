"""A real HTTP server on 127.0.0.1 whose misbehaviour is scripted, for the tests of everything that fetches."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(kw_only=True)
class Page:
    """One address: its bytes, and how the first answers differ from the plain one.

    `statuses` are answered first, one each; `cut_after` breaks off the next transfers after so many bytes, one each.
    """

    body: bytes
    statuses: list[int] = field(default_factory=list)
    cut_after: list[int] = field(default_factory=list)
    ranges: bool = True
    chunk_delay_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request that arrived."""

    path: str
    range_header: str | None


class LocalServer:
    """Serves `pages` by path and remembers in `asked` what was requested."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[Asked] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.asked.append(Asked(path=self.path, range_header=self.headers.get("Range")))
                _answer(self, site.pages.get(self.path))

            def do_HEAD(self) -> None:
                _answer(self, site.pages.get(self.path))

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def put(self, path: str, body: bytes) -> Page:
        """Serve these bytes, and their SHA-1 next to them, as a Maven repository does."""
        self.pages[path] = Page(body=body)
        self.pages[f"{path}.sha1"] = Page(body=hashlib.sha1(body, usedforsecurity=False).hexdigest().encode())
        return self.pages[path]

    def times_asked(self, path: str) -> int:
        """How often a path was requested with GET."""
        return sum(asked.path == path for asked in self.asked)

    @contextlib.contextmanager
    def running(self) -> Iterator[LocalServer]:
        """Serve until the end of the block."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join(10)


def _answer(handler: BaseHTTPRequestHandler, page: Page | None) -> None:
    if page is None or page.statuses:
        status = page.statuses.pop(0) if page else 404
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    offset = _offset(handler.headers.get("Range")) if page.ranges else 0
    if offset >= len(page.body) and offset:
        handler.send_response(416)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    rest = page.body[offset:]
    handler.send_response(206 if offset else 200)
    if offset:
        handler.send_header("Content-Range", f"bytes {offset}-{len(page.body) - 1}/{len(page.body)}")
    handler.send_header("Content-Length", str(len(rest)))
    # A package index is read only as HTML.
    handler.send_header("Content-Type", "text/html" if handler.path.endswith("/") else "application/octet-stream")
    handler.end_headers()
    if handler.command == "HEAD":
        return
    _send(handler, rest, page)


def _send(handler: BaseHTTPRequestHandler, rest: bytes, page: Page) -> None:
    cut = page.cut_after.pop(0) if page.cut_after else None
    with contextlib.suppress(ConnectionError):
        for start in range(0, len(rest[:cut]), 65_536):
            handler.wfile.write(rest[:cut][start : start + 65_536])
            time.sleep(page.chunk_delay_s)
    handler.close_connection = handler.close_connection or cut is not None


def _offset(header: str | None) -> int:
    return int(header.removeprefix("bytes=").partition("-")[0]) if header else 0
