"""What java.util.Properties and Kafka's JaasConfig read in texts, by a program that a Java runtime with a compiler runs."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fixtures.tools.java import find_java

#: 20,000 texts take two seconds on a quiet machine.
_WITHIN_S = 120.0


def java_reads(reader: str, texts: Sequence[bytes], *jars: str) -> list[list[tuple[str, str]] | None]:
    """The entries of each text by `properties` or `jaas`, sorted; None for one that Java refuses.

    An entry without a name is left out; of `jaas` the login module is an entry without a value.
    """
    java = str(find_java().executable)
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=_WITHIN_S, check=True)
    if "jdk.compiler" not in modules.stdout:
        pytest.skip("this Java runtime cannot run a source file")
    path = ("-cp", ":".join(jars)) if jars else ()
    ended = subprocess.run(
        [java, *path, str(Path(__file__).parent / "Readers.java"), reader],
        input=b"".join(struct.pack(">I", len(text)) + text for text in texts),
        capture_output=True,
        timeout=_WITHIN_S,
        check=True,
    )
    return [None if line == "refused" else _entries(line) for line in ended.stdout.decode("ascii").splitlines()]


def _entries(line: str) -> list[tuple[str, str]]:
    pairs = [tuple(_text(part) for part in entry.split("=")) for entry in line.split()]
    return sorted((name, value) for name, value in pairs if name)


def _text(digits: str) -> str:
    return bytes.fromhex(digits).decode("utf-16-be", "surrogatepass")
