"""One codec for every version of every API, driven by the definitions that each kafka-clients jar carries.

A message is named as its definition is ("FetchRequest", "FetchResponse", "RequestHeader"), an API without the ending
("Fetch"). A body is a dict from the definition's field names (first letter capital throughout) to plain values (int,
str, bytes, bool, float, ``uuid.UUID``, list, dict). ``wire.schema`` says which fields may be left out.

Names belong to a release. Where a newer one renamed a field, only versions from an older jar know the older name. The
newest jar is used wherever it has the version, the others only for versions that were dropped since. Kafka 4.0 dropped
many (KIP-896), which 3.9 and, before it, 2.8 still define.

For a process that has no jar, ``carried`` puts the definitions of some APIs into one text.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from wire.errors import DefinitionError, FieldError, ProtocolError, VersionError
from wire.primitives import Raw, Reader
from wire.schema import Body, Compiler, Structure, span, within, write_or_raw

_FOLDER = "common/message/"
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
#: The beginning of an archive that is given as text; other archives are given as paths.
_CARRIED = "data:application/zip;base64,"
_HEADERS = ("RequestHeader", "ResponseHeader")


@dataclass(frozen=True, slots=True)
class Message:
    """A message at one version, ready to be written and read."""

    name: str
    version: int
    flexible: bool
    codec: Structure


class Definitions:
    """The message definitions of one or more jars, the first one preferred. Read when needed, compiled once."""

    def __init__(self, jars: tuple[str, ...]) -> None:
        self.jars = jars
        self._messages: dict[tuple[str, int], Message] = {}

    def __reduce__(self) -> tuple[type[Definitions], tuple[tuple[str, ...]]]:
        return Definitions, (self.jars,)

    @classmethod
    def load(cls, *jars: str | Path) -> Definitions:
        """From jars, newest first. Only the directory of the first is read now; raises DefinitionError."""
        if not jars:
            raise DefinitionError("no jar was given to read the message definitions from")
        definitions = cls(tuple(str(jar) for jar in jars))
        definitions.source("RequestHeader", 1)  # answer dropped: it raises if the jar has no definitions
        return definitions

    def apis(self) -> list[str]:
        """The names of all APIs that any of the jars knows, sorted."""
        names = {name for jar in self.jars for name in _archive(jar).namelist()}
        ends = len("Request.json")
        return sorted(name[len(_FOLDER) : -ends] for name in names if re.match(f"{_FOLDER}.+Request.json", name))

    def versions(self, message: str) -> list[int]:
        """All versions of a message ("FetchRequest") that can be spoken, ascending."""
        spans = [span(text["validVersions"]) for jar in self.jars if (text := _definition(jar, message))]
        return sorted({version for first, last in spans for version in range(first, last + 1)})

    @property
    def _sources(self) -> str:
        """The jars in words."""
        return ", ".join(dict.fromkeys(map(_called, self.jars)))

    def api_key(self, api: str) -> int:
        """The number of an API."""
        for jar in self.jars:
            if text := _definition(jar, f"{api}Request"):
                return int(text["apiKey"])
        raise DefinitionError(f"no API is called {api} in {self._sources}")

    def latest(self, message: str) -> int:
        """The highest version in the newest jar that has the message at all."""
        for jar in self.jars:
            if (text := _definition(jar, message)) and text["validVersions"] != "none":
                return span(text["validVersions"])[1]
        raise DefinitionError(f"no message is called {message} in {self._sources}")

    def knows(self, message: str, version: int) -> bool:
        """Whether a message can be spoken at that version."""
        return any((text := _definition(jar, message)) and within(version, text["validVersions"]) for jar in self.jars)

    def source(self, message: str, version: int) -> Body:
        """The definition of a message that holds for a version; raises DefinitionError, VersionError."""
        found = False
        for jar in self.jars:
            if text := _definition(jar, message):
                found = True
                if within(version, text["validVersions"]):
                    return text
        if not found:
            raise DefinitionError(f"no message is called {message} in {self._sources}")
        known = self.versions(message)
        raise VersionError(f"{message} has no version {version}, only {known[0]} to {known[-1]}" if known else message)

    def message(self, name: str, version: int) -> Message:
        """A message ("FetchRequest", "RequestHeader" …) at a version."""
        key = (name, version)
        if key not in self._messages:
            text = self.source(name, version)
            flexible = within(version, text.get("flexibleVersions", "none"))
            commons = {common["name"]: common["fields"] for common in text.get("commonStructs", [])}
            codec = Compiler(version, flexible, commons).structure(text["fields"])
            self._messages[key] = Message(name, version, flexible, codec)
        return self._messages[key]

    def encode(self, name: str, version: int, body: Mapping[str, Any] | Raw) -> bytes:
        """The bytes of a body; raises FieldError with the path of a value that does not fit."""
        out = bytearray()
        try:
            write_or_raw(self.message(name, version).codec, out, body)
        except FieldError as error:
            raise FieldError(error.why, f"{name} v{version}, {error.path or 'body'}") from None
        return bytes(out)

    def decode(self, name: str, version: int, data: bytes) -> Body:
        """The body that the bytes encode; raises ProtocolError, also when some are left over."""
        return self.rest(name, version, Reader(data))

    def rest(self, name: str, version: int, source: Reader) -> Body:
        """The body that takes up the rest of the buffer; raises ProtocolError, also when some bytes are left over."""
        body = self.read(name, version, source)
        if source.remaining:
            raise ProtocolError(f"{source.remaining} bytes too many after {name} v{version}")
        return body

    def read(self, name: str, version: int, source: Reader) -> Body:
        """The message at the reader's position, which moves behind it; raises ProtocolError."""
        try:
            body = self.message(name, version).codec.read(source)
        except ProtocolError as error:
            raise type(error)(f"in {name} v{version}: {error}") from error
        assert body is not None  # only a structure inside a message can be null
        return body


def carried(*jars: str | Path, apis: Iterable[str]) -> tuple[str, ...]:
    """The definitions of some APIs from each jar as a text that ``Definitions.load`` takes like the jar's path.

    Some 10 to 20 kB each, the same for the same jar. Raises DefinitionError for a jar that cannot be read.
    """
    messages = [*_HEADERS, *(f"{api}{kind}" for api in apis for kind in ("Request", "Response"))]
    return tuple(_as_text(str(jar), messages) for jar in jars)


def _as_text(jar: str, messages: Iterable[str]) -> str:
    wanted = {f"{_FOLDER}{message}.json" for message in messages}
    held = BytesIO()
    with ZipFile(held, "w") as archive:
        for name in sorted(wanted.intersection(_archive(jar).namelist())):
            # A timestamp would make a different text of the same jar each time.
            archive.writestr(ZipInfo(name), _archive(jar).read(name), compress_type=ZIP_DEFLATED)
    return _CARRIED + b64encode(held.getvalue()).decode("ascii")


def _called(jar: str) -> str:
    return "carried definitions" if jar.startswith(_CARRIED) else jar


@lru_cache(maxsize=16)
def _archive(jar: str) -> ZipFile:
    try:
        return ZipFile(BytesIO(b64decode(jar.removeprefix(_CARRIED))) if jar.startswith(_CARRIED) else jar)
    except (OSError, ValueError, BadZipFile) as error:
        raise DefinitionError(f"cannot read message definitions from {_called(jar)}: {error}") from error


@lru_cache(maxsize=4096)
def _definition(jar: str, message: str) -> Body | None:
    try:
        text = _archive(jar).read(f"{_FOLDER}{message}.json").decode()
    except KeyError:
        return None
    # raw_decode: some files of older releases have a second closing brace, which Kafka's own reader overlooks.
    decoded: Body = json.JSONDecoder().raw_decode(_COMMENT.sub(r"\1", text).lstrip())[0]
    return decoded
