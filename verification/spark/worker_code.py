"""Sends our code to Spark's workers.

It goes there as an archive (`addArtifacts`), the one way that works in a local session, on a cluster and through Spark
Connect.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Packages whose code runs in workers.
SHIPPED = ("verification", "wire")

_shipped: set[int] = set()
_LOCK = threading.Lock()


def _archive() -> Path:
    """The packages as a zip, named by its content: a session cannot replace an artifact of the same name."""
    root = Path(__file__).resolve().parents[2]
    files = [path for package in SHIPPED for path in sorted((root / package).rglob("*.py"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    directory = Path(tempfile.mkdtemp(prefix="onceproof-"))
    # Executors compare their copy with the original before each job, so it stays until the process ends. Registered
    # before it is filled, which takes a while: an interruption in it leaves nothing behind.
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    target = directory / f"onceproof_{digest}.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in files:
            archive.write(path, path.relative_to(root))
    return target


def ship(spark: SparkSession) -> None:
    """Send our code to the session's workers and make our data source known to the session, once per session."""
    from verification.sources.source import OnceproofSource

    with _LOCK:
        if id(spark) in _shipped:
            return
        spark.addArtifacts(str(_archive()), pyfile=True)
        spark.dataSource.register(OnceproofSource)
        _shipped.add(id(spark))
