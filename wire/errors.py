"""Everything that can go wrong between this machine and a broker.

::

    WireError
    ├── DefinitionError          the message definitions lack something, or cannot be read
    │   └── VersionError         no definition, or no broker, for that version of an API
    ├── FieldError               a value that does not fit its definition, found before anything was sent
    ├── ProtocolError            bytes that the protocol does not allow
    │   ├── TruncatedError       a declared length is longer than the bytes that are there
    │   ├── OversizedError       a declared length exceeds the bound set by the reader
    │   ├── CorrelationError     an answer to a request that was not sent
    │   └── BatchError           a record batch that contradicts itself
    │       ├── ChecksumError    its CRC does not match
    │       └── CodecError       its payload does not decompress
    ├── DisconnectedError        the connection ended; the broker may or may not have carried out the request
    │   └── ConnectError         no connection was made; nothing was sent
    ├── AbandonedError           this client was abandoned; nothing was sent
    ├── DeadlineError            the deadline passed; the broker may or may not have carried out the request
    └── BrokerError              the broker answered with an error code

These errors do not decide whether a request was *carried out*. An error from ``Connection.send`` means that the request
did not leave in full; one from ``Connection.receive`` means that it did.
"""

from __future__ import annotations

from wire.codes import ErrorCode


class WireError(Exception):
    """The protocol client failed. The subclasses say how; see the tree in the module's docstring."""


class DefinitionError(WireError):
    """The message definitions lack something. Hint: pass the kafka-clients jar of another release as well."""


class VersionError(DefinitionError):
    """The version of the API is unknown here, or the broker does not offer it. Hint: name the version to be used."""


class FieldError(WireError):
    """A value does not fit its field. Hint: to send it anyway, give the bytes as ``Raw``."""

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.why = why
        self.path = path

    def within(self, name: str) -> FieldError:
        """The same error, seen from the structure or list that holds the field."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return FieldError(self.why, f"{name}{joint}{self.path}")


class ProtocolError(WireError):
    """The protocol does not allow the bytes received. Hint: a TLS port answers a plain client like this."""


class TruncatedError(ProtocolError):
    """A declared length is longer than the bytes that are there, so the rest was cut off or the length is wrong."""


class OversizedError(ProtocolError):
    """A declared length exceeds the bound. Hint: raise the bound if the length may be right."""


class CorrelationError(ProtocolError):
    """The answer belongs to no outstanding request. The connection is closed: its order can no longer be trusted."""


class BatchError(ProtocolError):
    """The record batch contradicts itself or has a format other than v2."""


class ChecksumError(BatchError):
    """The CRC-32C of a record batch does not match its bytes: they were changed after they were written."""


class CodecError(BatchError):
    """The payload of a record batch does not decompress. Hint: a missing codec library is named in the message."""


class DisconnectedError(WireError):
    """The connection ended. The broker may have carried out requests that were already sent."""


class ConnectError(DisconnectedError):
    """No connection was made, so nothing was sent. Hint: see whether the broker is up at that address."""


class AbandonedError(WireError):
    """Another thread abandoned this client, so asking again is of no use. Nothing was sent."""


class DeadlineError(WireError):
    """The deadline passed. The broker may have carried out requests that were already sent."""


class BrokerError(WireError):
    """The broker answered with an error code.

    ``code`` is the number as it was sent, ``error`` its name where this release of the protocol knows it.
    """

    def __init__(self, code: int, what: str) -> None:
        self.code = code
        self.error = ErrorCode.of(code)
        self.what = what
        super().__init__(f"{what}: the broker answered {self.error.name if self.error else 'error'}({code})")

    def __reduce__(self) -> tuple[type[BrokerError], tuple[int, str]]:
        return BrokerError, (self.code, self.what)
