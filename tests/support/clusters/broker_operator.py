"""An operator of a cluster, whom the commands of a user ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from chaos.cluster import BrokerId
from fixtures.clusters.local.cluster import LocalCluster
from tests.support.cluster_client import around


class Operator:
    """Another process's way to the brokers: an HTTP server that takes `/crash/2` and the like."""

    def __init__(self, cluster: LocalCluster, *, restarted_after_s: float) -> None:
        self.asked: list[str] = []
        actions: dict[str, Callable[[BrokerId], None]] = {
            "crash": cluster.crash,
            # Like an operator that takes note of it, and acts later.
            "restart": lambda broker: threading.Timer(restarted_after_s, cluster.start, (broker,)).start(),
            "pause": cluster.pause,
            "resume": cluster.resume,
            "cut": lambda broker: cluster.links.cut(*around(cluster.links.links(), broker)),
            "mend": lambda broker: cluster.links.restore(*around(cluster.links.links(), broker)),
        }
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path.strip("/"))
                name, _, broker = asked[-1].partition("/")
                actions[name](BrokerId(int(broker)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.at = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Operator:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
