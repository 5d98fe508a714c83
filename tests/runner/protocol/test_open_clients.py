"""When a cluster is taken away, each of its clients fails at once."""

from __future__ import annotations

import pytest

from runner.protocol.open_clients import OpenClients
from tests.support.wire_definitions import definitions
from wire.errors import AbandonedError, ConnectError

UNREACHABLE = "127.0.0.1:1"


def test_every_client_is_abandoned_also_one_that_comes_late() -> None:
    """Two open clients, and one that is opened later, try no broker any more; a closed client is not abandoned."""
    clients = OpenClients()
    with clients.opened(UNREACHABLE, definitions()) as ended:
        pass
    with clients.opened(UNREACHABLE, definitions()) as one, clients.opened(UNREACHABLE, definitions()) as two:
        clients.abandon()
        with clients.opened(UNREACHABLE, definitions()) as late:
            for client in (one, two, late):
                with pytest.raises(AbandonedError):
                    client.pool.at(client.pool.bootstrap[0], client.deadline())
    with pytest.raises(ConnectError, match="no connection"):
        ended.pool.at(ended.pool.bootstrap[0], ended.deadline())
