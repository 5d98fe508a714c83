"""Everything that can go wrong between this machine and a broker.

::

    WireError
    ├── DefinitionError          the message definitions lack something, or cannot be read
    │   └── VersionError         no definition, or no broker, for that version of an API
    ├── FieldError               a value that does not fit its definition, found before anything was sent
    ├── ProtocolError            bytes that the protocol does not allow
    │   ├── TruncatedError       a declared length is longer than what is there
    │   ├── OversizedError       a declared length exceeds the bound set by the reader
    │   ├── CorrelationError     an answer to a question that was not asked
    │   └── BatchError           a record batch that cannot be what it says
    │       ├── ChecksumError    its CRC does not match
    │       └── CodecError       its payload does not decompress
    ├── DisconnectedError        the connection ended; what was sent may or may not have been done
    │   └── ConnectError         the connection never came about; nothing was sent
    ├── AbandonedError           whoever asks has been told to ask no more; nothing was sent
    ├── DeadlineError            the deadline passed; what was sent may or may not have been done
    └── BrokerError              the broker answered with an error code

Whether a request may have been *carried out* is not decided here: an error out of ``Connection.send`` means that
the request did not leave in full, one out of ``Connection.receive`` that it did.
"""

from __future__ import annotations

from wire.codes import ErrorCode


class WireError(Exception):
    """The protocol client failed. The subclasses say how; see the tree in the module's docstring."""


class DefinitionError(WireError):
    """The message definitions lack something. Hint: pass the kafka-clients jar of another release as well."""


class VersionError(DefinitionError):
    """That version of the API is unknown here or not offered by the broker. Hint: name the version to be used."""


class FieldError(WireError):
    """A value does not fit its field. Hint: to send it all the same, give the bytes as ``Raw``."""

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.why = why
        self.path = path

    def within(self, name: str) -> FieldError:
        """The same error, seen from the structure or list that holds the field."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return FieldError(self.why, f"{name}{joint}{self.path}")


class ProtocolError(WireError):
    """The bytes received are not what the protocol allows. Hint: a TLS port answers a plain client like this."""


class TruncatedError(ProtocolError):
    """A declared length is longer than the bytes that are there, so the rest was cut off or the length is a lie."""


class OversizedError(ProtocolError):
    """A declared length exceeds the bound. Hint: raise the bound if the broker is to be believed."""


class CorrelationError(ProtocolError):
    """The answer belongs to no outstanding request. The connection is closed: its order can no longer be trusted."""


class BatchError(ProtocolError):
    """The record batch contradicts itself or has a format other than v2."""


class ChecksumError(BatchError):
    """The CRC-32C of a record batch does not match its bytes: they were changed after they were written."""


class CodecError(BatchError):
    """The payload of a record batch does not decompress. Hint: a missing codec library is named in the message."""


class DisconnectedError(WireError):
    """The connection ended. Whether the broker carried out what was already sent is unknown."""


class ConnectError(DisconnectedError):
    """No connection came about, so nothing was sent. Hint: see whether the broker is up at that address."""


class AbandonedError(WireError):
    """The client was abandoned by somebody else, so there is no use in asking again. Nothing was sent."""


class DeadlineError(WireError):
    """The deadline passed. Whether the broker carried out what was already sent is unknown."""


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
