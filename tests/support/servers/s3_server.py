"""A real S3 server on loopback, S3Proxy, which checks signatures and keeps what it is given in memory.

And the jars by which a Spark session reads it: pyspark brings the connector of no object store.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

import requests

from fixtures.clusters.locks import lockfile
from fixtures.clusters.locks.lockfile import LockedJar
from fixtures.clusters.locks.releases import fetch_jars
from fixtures.downloads.cache import ensure_dir
from fixtures.processes.keeper import Keeper
from fixtures.tools.java import find_java, spark_java_home
from fixtures.waiting import await_until

SERVER = LockedJar(
    path="org/gaul/s3proxy/2.9.0/s3proxy-2.9.0-jar-with-dependencies.jar",
    sha256="238f813ff9d6d295273f809f383d31307d88d8f56acc40109b68a5d49186a0eb",
    size_bytes=40_602_250,
)
CONNECTOR = Path(__file__).with_name("s3a_jars.txt")
#: It is up within two seconds; the rest is for a machine that is busy with clusters.
WITHIN_S = 90.0
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
KEY, SECRET = "reader", "of evidence"
SETTINGS = {
    "s3proxy.endpoint": "http://127.0.0.1:0",
    "s3proxy.authorization": "aws-v2-or-v4",
    "s3proxy.identity": KEY,
    "s3proxy.credential": SECRET,
    "jclouds.provider": "transient-nio2",
    **dict.fromkeys(("jclouds.identity", "jclouds.credential"), "nobody"),
}


class S3:
    """What is asked of it: to hold a copy of a directory, and what a session is to be told of it."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def settings(self) -> dict[str, str]:
        """Of a Spark session that reads from it."""
        jars = fetch_jars("the S3 connector", lockfile.read(CONNECTOR))
        told = {"endpoint": self._endpoint, "path.style.access": "true", "access.key": KEY, "secret.key": SECRET}
        return {"spark.jars": ",".join(map(str, jars))} | {f"spark.hadoop.fs.s3a.{key}": told[key] for key in told}

    def put(self, directory: Path, bucket: str) -> str:
        """Copy the files of a directory into a new bucket; the URI of the copy."""
        self._put(f"/{bucket}", b"")
        for path in directory.rglob("*"):
            if path.is_file():
                self._put(f"/{bucket}/{path.relative_to(directory.parent).as_posix()}", path.read_bytes())
        return f"s3a://{bucket}/{directory.name}"

    def _put(self, name: str, content: bytes) -> None:
        """Signed as S3 was first: the short way to do so."""
        date, name = formatdate(usegmt=True), quote(name)
        signed = hmac.new(SECRET.encode(), f"PUT\n\n\n{date}\n{name}".encode(), hashlib.sha1).digest()
        headers = {"Date": date, "Authorization": f"AWS {KEY}:{base64.b64encode(signed).decode()}"}
        done = requests.put(f"{self._endpoint}{name}", data=content, headers=headers, timeout=WITHIN_S)
        assert done.ok, done.text


@contextmanager
def s3(place: Path) -> Iterator[S3]:
    """A running server; a directory takes its settings and its log."""
    (server,) = fetch_jars("S3Proxy", (SERVER,))
    (place / "s3proxy.conf").write_text("".join(f"{key}={SETTINGS[key]}\n" for key in SETTINGS), encoding="utf-8")
    java = spark_java_home(find_java()) / "bin" / "java"
    command = [str(java), *FLAGS, "-jar", str(server), "--properties", str(place / "s3proxy.conf")]
    log = place / "s3proxy.log"
    started = re.compile(r"Started ServerConnector.*\{127\.0\.0\.1:(\d+)\}")
    with Keeper(ensure_dir(place / "ledgers")) as keeper:
        child = keeper.spawn("s3proxy", command, directory=place, log=log, variables={})
        await_until(
            lambda: child.exit_status is not None or started.search(log.read_text(encoding="utf-8")) is not None,
            "S3Proxy to say where it listens",
            timeout_s=WITHIN_S,
            last=lambda: log.read_text(encoding="utf-8")[-500:],
        )
        found = started.search(log.read_text(encoding="utf-8"))
        assert found, log.read_text(encoding="utf-8")
        yield S3(f"http://127.0.0.1:{found[1]}")
