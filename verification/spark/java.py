"""Finds the Java for Spark's launcher: a given one, JAVA_HOME, PATH, or the runtime that a run has fetched.

A run on a machine without Java fetches a runtime into the per-user cache and makes a home there that Spark's launcher
can use (`spark-java-home/`). So evidence that was judged on this machine can be judged again from the run directory
alone. This package fetches nothing; it only looks there.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from verification.vocabulary.errors import JavaUnfitError
from verification.vocabulary.user_cache import user_cache

#: Spark 4 is compiled for Java 17; older ones refuse its class files.
JAVA_MIN = 17
#: `java -version` answers in well under a second; after thirty times that it will not.
JAVA_ANSWER_S = 30.0


def spark_java(given: Path | None = None) -> Path | None:
    """The JAVA_HOME for Spark, None for `java` on PATH. A given one is the only candidate.

    Raises JavaUnfitError, with the problem of the first candidate, when none starts and is new enough.
    """
    unfit: list[JavaUnfitError] = []
    for home in [given] if given is not None else _places():
        try:
            java_major(home)
        except JavaUnfitError as error:
            unfit.append(error)
        else:
            return home
    raise unfit[0]


def _places() -> Iterator[Path | None]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    yield None
    yield from sorted((user_cache() / "spark-java-home").glob("*"), reverse=True)


def java_major(home: Path | None) -> int:
    """The major version of the Java in a home, or on PATH.

    Raises JavaUnfitError when there is none, when it does not answer, or when it is older than Spark accepts.
    """
    program = str(home / "bin" / "java") if home else "java"
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=JAVA_ANSWER_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaUnfitError(
            f"{program} cannot be run ({error}); Spark needs Java {JAVA_MIN} or later, named by JAVA_HOME or on PATH"
        ) from error
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    if found is None or int(found[1]) < JAVA_MIN:
        said = (answer.stderr or answer.stdout).splitlines()
        raise JavaUnfitError(
            f"{program} is {said[0] if said else 'mute'}; Spark needs Java {JAVA_MIN} or later: set JAVA_HOME to one"
        )
    return int(found[1])
