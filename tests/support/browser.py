"""A headless Chromium for tests of pages: its console, the document, and the result of a script in the page."""

from __future__ import annotations

import functools
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.page_tools import required

#: The policy that Jenkins sends with archived pages: no script, no inline style, nothing from other hosts.
JENKINS = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
#: A page of two megabytes is laid out in a second; a minute is for a machine that is busy with a cluster.
WITHIN_S = 60.0
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and not required(), reason="no chromium on this machine: the page was not looked at"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A loaded page: its document, and the messages on the console."""

    dom: str
    console: tuple[str, ...]


def visit(url: str, profile: Path, *, dark: bool = False, width: int = 1280, within_s: float = WITHIN_S) -> Visit:
    """Open a page until it is loaded; `profile` is a new directory."""
    assert CHROMIUM is not None, "ONCEPROOF_REQUIRE_BROWSER asks for a chromium on PATH"
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            # Containers have neither the namespaces nor the user for a sandbox, and the page is our own.
            "--no-sandbox",
            "--enable-logging=stderr",
            f"--user-data-dir={profile}",
            f"--window-size={width},2000",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            url,
        ],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=within_s,
        check=True,
        env={**os.environ, "HOME": str(profile)},
    )
    console = re.findall(r':CONSOLE[^\]]*\] "(.*?)", source:', done.stderr, re.DOTALL)
    return Visit(dom=done.stdout, console=tuple(console))


#: A headless Chromium has no narrower window; a narrower page is looked at in a frame.
NARROWEST = 500
_FRAME = """<!doctype html><title></title><body style="margin:0;background:#8a94a0">
<iframe src="{url}" style="display:block;border:0;margin:0 auto;width:{width}px;height:2000px"></iframe>
<script>onmessage = (event) => (document.title = event.data);</script>"""
_HAND_OVER = """
new MutationObserver(() => parent.postMessage(document.title, "*")).observe(document.querySelector("title"), {
    childList: true,
});
"""


def framed(page: Path, width: int, fragment: str = "") -> Path:
    """Write a page that shows another one of its directory in a frame of this width."""
    frame = page.with_name("framed.html")
    frame.write_text(_FRAME.format(url=page.name + fragment, width=width), encoding="utf-8")
    return frame


def told(page: Path, script: str, profile: Path, **options: Any) -> Any:
    """Run a script in a copy of the page and return the JSON that it writes behind FOUND.

    The copy may be visited at a fragment: `fragment="#ISO-02"`.
    """
    fragment = options.pop("fragment", "")
    copy = page.with_name("probed.html")
    text = page.read_text(encoding="utf-8")
    narrow = options.get("width", NARROWEST) < NARROWEST
    inserted = f"<script>{_HAND_OVER if narrow else ''}{script}</script></body>"
    copy.write_text(text.replace("</body>", inserted), encoding="utf-8")
    url = copy.as_uri() + fragment
    if narrow:
        url = framed(copy, options.pop("width"), fragment).as_uri()
    dom = visit(url, profile, **options).dom
    match = re.search(r"<title>FOUND(.*?)</title>", dom, re.DOTALL)
    assert match is not None, "the script in the page did not come to its end"
    return json.loads(html.unescape(match[1]))


@contextmanager
def served(directory: Path, policy: str) -> Iterator[str]:
    """Serve the directory on a loopback port with a Content-Security-Policy on every response."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        """Sends the policy, and logs nothing."""

        def end_headers(self) -> None:
            """Add the header to every response."""
            self.send_header("Content-Security-Policy", policy)
            super().end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Log nothing into the test's output."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
