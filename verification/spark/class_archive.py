"""The class archive of Spark's JVM, where a run has left one in the per-user cache.

Until its first answer a session spends half of its time on loading classes. A JVM that maps them from an archive starts
in half the time. A run makes the archive at its end (`fixtures.tools.spark_class_archive`). Judging saved evidence on
the same machine then starts faster too. This package makes no archive; it only looks there.

An archive never changes the behaviour of a program: a JVM silently ignores one that does not fit (other jars, other
JVM). So it is used with any Java.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from verification.vocabulary.user_cache import user_cache


def options_file() -> Path:
    """The file with the JVM options that use the archive of this release of Spark, one per line."""
    return user_cache() / "class-archives" / f"spark-{version('pyspark')}.options"


def sharing_options() -> tuple[str, ...]:
    """JVM options that use the archive; no options where there is no archive."""
    try:
        return tuple(options_file().read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return ()
