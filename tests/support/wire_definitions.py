"""Message definitions for the tests of ``wire``, and bodies that fit them.

The jars are those that ONCEPROOF_TEST_JARS names, else those of supported releases.
"""

from __future__ import annotations

import os
from functools import cache

from hypothesis import strategies as st

from wire.messages import Definitions
from wire.primitives import Blob, Codec, Identifier, Number, Text
from wire.schema import Body, Sequence, Structure


@cache
def definition_jars() -> tuple[str, ...]:
    """The newest supported release first, then the last one before Kafka 4.0 dropped old versions."""
    if named := os.environ.get("ONCEPROOF_TEST_JARS"):
        return tuple(named.split(os.pathsep))
    from fixtures.clusters.locks.releases import Release, clients_jar, default_release, fetch_release

    releases = (default_release(), Release.parse("3.9.2"))
    return tuple(str(clients_jar(fetch_release(release))) for release in releases)


@cache
def definitions() -> Definitions:
    """The definitions in the jars."""
    return Definitions.load(*definition_jars())


def every_message() -> list[tuple[str, int]]:
    """Every request and response at every version that can be spoken."""
    known = definitions()
    names = [f"{api}{kind}" for api in known.apis() for kind in ("Request", "Response")]
    return [(name, version) for name in names for version in known.versions(name)]


def values(codec: Codec, *, tame: bool = False) -> st.SearchStrategy[object]:
    """Values of a type, null where it is allowed; tame ones have small numbers only."""
    if isinstance(codec, Number):
        return st.integers(0, 100) if tame and codec.name not in ("bool", "float64") else _numbers(codec)
    if isinstance(codec, Identifier):
        return st.uuids()
    if isinstance(codec, Text):
        return _nullable(st.text(max_size=20), nullable=codec.length.nullable)
    if isinstance(codec, Blob):
        return _nullable(st.binary(max_size=40), nullable=codec.length.nullable)
    if isinstance(codec, Sequence):
        return _nullable(st.lists(values(codec.element, tame=tame), max_size=3), nullable=codec.length.nullable)
    assert isinstance(codec, Structure)
    return _nullable(bodies(codec, tame=tame), nullable=codec.nullable)


def bodies(structure: Structure, *, tame: bool = False) -> st.SearchStrategy[Body]:
    """Complete bodies of a structure."""
    fields = (*structure.fields, *structure.tagged.values())
    return st.fixed_dictionaries({field.name: values(field.codec, tame=tame) for field in fields})


def _nullable(strategy: st.SearchStrategy[object], *, nullable: bool) -> st.SearchStrategy[object]:
    return st.none() | strategy if nullable else strategy


def _numbers(codec: Number) -> st.SearchStrategy[object]:
    if codec.name == "bool":
        return st.booleans()
    if codec.name == "float64":
        return st.floats(allow_nan=False)
    bits = 8 * codec.layout.size
    low, high = (0, 2**bits - 1) if codec.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.integers(low, high)
