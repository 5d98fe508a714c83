"""An issuer of tokens on a loopback address, for clients that log in with OAUTHBEARER."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from fixtures.clusters.network.certificates import TokenIssuer


@contextmanager
def issuing(
    issuer: TokenIssuer, secrets: Mapping[str, str], asked: list[str] | None = None, *, own: Path | None = None
) -> Iterator[str]:
    """The URL of the token endpoint; a client with its secret gets a token, any other 401.

    `asked` collects the scope of each request. `own` is a PEM file of key and certificate, with which it speaks TLS.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode("ascii"))
            login = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode("ascii")
            name, _, secret = login.partition(":")
            known = form["grant_type"] == ["client_credentials"] and secrets.get(name) == secret
            if asked is not None:
                asked.extend(form.get("scope", [""]))
            body = {"access_token": issuer.token(name), "token_type": "Bearer", "expires_in": 3600} if known else {}
            content = json.dumps(body).encode("ascii")
            self.send_response(200 if known else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if own:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http{'s' if own else ''}://127.0.0.1:{server.server_port}/token"
    finally:
        server.shutdown()
        server.server_close()
