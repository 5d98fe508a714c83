"""Blocks of ports on this machine."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from chaos.routes import Endpoint
from fixtures.clusters.errors import NoFreePortsError
from fixtures.clusters.network import ports
from fixtures.clusters.network.port_plan import PORTS_PER_BLOCK


def claim_at(base: int) -> Endpoint:
    """The last port of a block."""
    return Endpoint(host="127.0.0.1", port=base + PORTS_PER_BLOCK - 1)


def first(base: int) -> list[Endpoint]:
    """A need for the first port only."""
    return [Endpoint(host="127.1.0.1", port=base)]


def test_two_claims_never_share_a_block() -> None:
    """Not even when both want the same one first; a block that was given up can be had again."""
    with closing(ports.claim_block(claim_at, first)) as one, closing(ports.claim_block(claim_at, first)) as other:
        assert one.base != other.base
        with pytest.raises(NoFreePortsError):
            ports.claim_block(lambda _: claim_at(one.base), first)
    ports.claim_block(lambda _: claim_at(one.base), first).close()


def test_a_block_with_a_taken_port_is_not_claimed() -> None:
    """The error says which port of the last block was taken, and no claim stays behind."""
    with socket.create_server(("127.1.0.1", 0)) as stranger:
        taken = Endpoint(host="127.1.0.1", port=stranger.getsockname()[1])
        with pytest.raises(NoFreePortsError, match=f"{taken}: Address already in use"):
            ports.claim_block(claim_at, lambda _: [taken])
    ports.claim_block(claim_at, lambda _: [taken]).close()


def test_blocks_lie_below_the_ports_of_outgoing_connections() -> None:
    """Otherwise anybody's connection could take a port while its broker is down."""
    with closing(ports.claim_block(claim_at, first)) as block, socket.create_server(("127.0.0.1", 0)) as outgoing:
        assert block.base + PORTS_PER_BLOCK <= outgoing.getsockname()[1]
