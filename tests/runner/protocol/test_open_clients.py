"""Whoever asks a cluster that is taken away learns of it at once, whichever of several clients it asks with."""

from __future__ import annotations

import pytest

from runner.protocol.open_clients import OpenClients
from tests.support.wire_definitions import definitions
from wire.errors import AbandonedError, ConnectError

NOBODY = "127.0.0.1:1"


def test_every_client_is_abandoned_also_one_that_comes_late() -> None:
    """Two that are open, and one that is opened afterwards, try no broker any more; one that has ended is forgotten."""
    clients = OpenClients()
    with clients.opened(NOBODY, definitions()) as ended:
        pass
    with clients.opened(NOBODY, definitions()) as one, clients.opened(NOBODY, definitions()) as two:
        clients.abandon()
        with clients.opened(NOBODY, definitions()) as late:
            for client in (one, two, late):
                with pytest.raises(AbandonedError):
                    client.pool.at(client.pool.bootstrap[0], client.deadline())
    with pytest.raises(ConnectError, match="no connection"):
        ended.pool.at(ended.pool.bootstrap[0], ended.deadline())
