"""Connections by address, opened when needed, replaced when ended, closed together."""

from __future__ import annotations

import ssl

from wire.connection import Authentication, Connection
from wire.deadline import Deadline
from wire.errors import AbandonedError, ConnectError, DeadlineError, DisconnectedError
from wire.messages import Definitions
from wire.values import Address


class Pool:
    """One connection per address. Not for use by several threads at once, except for `abandon`."""

    def __init__(
        self,
        bootstrap: list[Address],
        definitions: Definitions,
        *,
        client_id: str,
        attempt_s: float,
        ssl_context: ssl.SSLContext | None,
        authentication: Authentication | None,
    ) -> None:
        self.bootstrap, self.definitions, self.client_id = bootstrap, definitions, client_id
        self.attempt_s, self.ssl_context, self.authentication = attempt_s, ssl_context, authentication
        self._connections: dict[Address, Connection] = {}
        self._abandoned = False
        #: Addresses that do not count as any broker, for instance of a broker whose metadata are old.
        self.shunned: frozenset[Address] = frozenset()

    def at(self, address: Address, deadline: Deadline) -> Connection:
        """The connection to an address, opened again if it ended; raises ConnectError, DeadlineError."""
        connection = self._connections.get(address)
        if connection is None or connection.closed:
            connection = self._connections[address] = self.open(address, deadline)
        return connection

    def open(self, address: Address, deadline: Deadline) -> Connection:
        """One more connection, which the caller closes; raises ConnectError, DeadlineError, AbandonedError."""
        if self._abandoned:
            raise AbandonedError(f"{address} was not tried: this client was abandoned")
        attempt = deadline.at_most(self.attempt_s)
        return Connection(
            *address,
            self.definitions,
            client_id=self.client_id,
            timeout_s=attempt.remaining_s(f"{address} to be tried"),
            ssl_context=self.ssl_context,
            authentication=self.authentication,
        )

    def any(self, deadline: Deadline) -> Connection:
        """An open connection, else one to the first bootstrap address that answers.

        Raises ConnectError when none does. Raises BrokerError when one refuses this client: another one would, too.
        """
        for address, connection in self._connections.items():
            if not connection.closed and address not in self.shunned:
                return connection
        failures = []
        for address in tuple(self.bootstrap):
            if deadline.passed:
                break  # the others were not tried, so they keep their place before the one that was
            try:
                return self.at(address, deadline)
            except (DisconnectedError, DeadlineError) as error:
                failures.append(str(error))
                self._demote(address)
        raise ConnectError(f"no broker answers: {'; '.join(failures)}")

    def drop(self, connection: Connection, why: str) -> None:
        """Close a connection that does not answer, and try its address last from now on."""
        connection.close(why)
        self._demote(Address(connection.host, connection.port))

    def _demote(self, address: Address) -> None:
        self.bootstrap.sort(key=address.__eq__)

    def abandon(self) -> None:
        """Open no further connection. Another thread may call it; connections that are open stay open."""
        self._abandoned = True

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
