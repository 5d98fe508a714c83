"""The class archive of Spark's JVM, where a run has left one in the per-user cache.

Half of what a session does until its first answer is loading classes. A JVM that maps them from an archive starts in
half the time. A run makes one at its end (`fixtures.tools.spark_class_archive`); whoever judges saved evidence on the
same machine profits from it. This room makes nothing and only looks there.

An archive never changes what a program does: a JVM that finds it unsuitable (other jars, other JVM) ignores it, and says
nothing of it. So it is used whatever Java is found.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from verification.spark.java import user_cache


def told() -> Path:
    """The file that says how to use the archive of this release of Spark: JVM options, one per line."""
    return user_cache() / "class-archives" / f"spark-{version('pyspark')}.options"


def sharing_options() -> tuple[str, ...]:
    """JVM options that use the archive; none where there is none."""
    try:
        return tuple(told().read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return ()
