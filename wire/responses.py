"""Receives many responses of one connection at once and decodes each on demand, because few are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from wire.connection import Connection, Pending
from wire.schema import Body


class Responses(Sequence[Body]):
    """The responses to requests on one connection. All have arrived; each is decoded when it is looked at."""

    def __init__(self, connection: Connection, pendings: Sequence[Pending]) -> None:
        """Wait until all have arrived; raises as `Connection.receive` does."""
        self._connection, self._pendings = connection, pendings
        for pending in pendings:
            connection.receive_bytes(pending)

    def __len__(self) -> int:
        return len(self._pendings)

    @overload
    def __getitem__(self, at: int) -> Body: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Body]: ...

    def __getitem__(self, at: int | slice) -> Body | Sequence[Body]:
        if isinstance(at, slice):
            return Responses(self._connection, self._pendings[at])
        return self._connection.receive(self._pendings[at])
