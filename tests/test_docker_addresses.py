"""The star in containers, without any container."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.cluster import BrokerId, Link, Plane, Site
from chaos.routes import Endpoint
from fixtures.clusters.docker.addresses import BASE_PORT, DockerAddresses, ports_to_publish
from fixtures.clusters.network.port_plan import CONTROLLER, INTERNAL, WITNESS, Plan, listener_of
from fixtures.clusters.network.topology import Topology
from fixtures.clusters.spec import ClusterSpec

SITE_NAMES = ("app", "zombie", "observer", "east", "west", "b2")


def topology(spec: ClusterSpec) -> Topology:
    """As an engine might lay it out: the front network first, then one per party, the link server first in each."""
    plan = Plan(spec=spec, base=BASE_PORT)
    addresses = DockerAddresses(
        plan=plan,
        front="172.18.0.2",
        gates={party: f"172.{18 + party}.0.2" for party in spec.party_ids},
        homes={party: f"172.{18 + party}.0.3" for party in spec.party_ids},
        published={port: 32768 + at for at, port in enumerate(ports_to_publish(plan))},
    )
    return Topology(plan, addresses)


def addresses_of(made: Topology) -> DockerAddresses:
    """The addresses as what they are."""
    assert isinstance(made.addresses, DockerAddresses)
    return made.addresses


@st.composite
def specs(draw: st.DrawFn) -> ClusterSpec:
    """Any cluster that fits into a block of ports."""
    brokers = draw(st.integers(1, 6))
    return ClusterSpec(
        release="4.3.1",
        brokers=brokers,
        controllers=draw(st.integers(0, 9 - brokers)),
        sites=tuple(Site(name) for name in draw(st.permutations(SITE_NAMES))[: draw(st.integers(1, 6))]),
        replicas=1,
        min_in_sync=1,
    )


@settings(deadline=None)
@given(specs())
def test_the_link_server_listens_nowhere_twice(spec: ClusterSpec) -> None:
    """Links and the ways of the witness have different addresses, and none is the port of its API."""
    made = topology(spec)
    listening = [route.listen for route in made.routes().values()]
    listening += [route.listen for route in addresses_of(made).witness_routes().values()]
    assert len(set(listening)) == len(listening)
    assert made.plan.api_port not in {each.port for each in listening}


@settings(deadline=None)
@given(specs())
def test_a_broker_reaches_peers_only_in_its_own_network_and_through_its_link(spec: ClusterSpec) -> None:
    """What it resolves a peer's name to is the link server in its own network, where its link listens."""
    made = topology(spec)
    for link, route in made.routes().items():
        if link.source in spec.sites:
            continue
        party = BrokerId(int(link.source))
        hosts = made.addresses.hosts(party)
        listener = CONTROLLER if link.plane is Plane.RAFT else INTERNAL
        port = made.plan.port(listener, link.target)
        assert route.listen == Endpoint(host=hosts[made.plan.name(link.target)], port=port)
        assert route.upstream == Endpoint(
            host=made.addresses.hosts(link.target)[made.plan.name(link.target)], port=port
        )
        own_network = hosts[made.plan.name(party)].rpartition(".")[0]
        assert route.listen.host.rpartition(".")[0] == own_network
        assert route.upstream.host.rpartition(".")[0] != own_network


@settings(deadline=None)
@given(specs())
def test_a_broker_listens_in_its_own_network_only(spec: ClusterSpec) -> None:
    """Names and addresses that it binds are its own, so that nothing of it is published."""
    made = topology(spec)
    for party in spec.party_ids:
        own = made.addresses.hosts(party)[made.plan.name(party)]
        binds = [
            each.split("://")[1].rpartition(":")[0] for each in made.properties(party, "/d")["listeners"].split(",")
        ]
        assert set(binds) <= {own, made.plan.name(party)}


@settings(deadline=None)
@given(specs())
def test_what_clients_are_told_is_published_and_leads_to_their_link(spec: ClusterSpec) -> None:
    """Advertised sites and witness are ports of 127.0.0.1, each leading to the listening side of the right proxy."""
    made = topology(spec)
    addresses = addresses_of(made)
    inside = {outside: port for port, outside in addresses.published.items()}
    routes = made.routes()
    ways = {route.listen for route in addresses.witness_routes().values()}
    for broker in spec.broker_ids:
        advertised = dict(
            each.split("://") for each in made.properties(broker, "/d")["advertised.listeners"].split(",")
        )
        assert advertised[INTERNAL] == f"{made.plan.name(broker)}:{made.plan.port(INTERNAL, broker)}"
        for listener in (WITNESS, *map(listener_of, spec.sites)):
            host, _, port = advertised[listener].rpartition(":")
            assert host == "127.0.0.1"
            reached = Endpoint(host=addresses.front, port=inside[int(port)])
            if listener == WITNESS:
                assert reached in ways
            else:
                assert reached == routes[Link(source=listener.lower(), target=broker)].listen


@settings(deadline=None)
@given(specs())
def test_nothing_is_published_without_need(spec: ClusterSpec) -> None:
    """One port per site and broker, one witness per broker, one per voter, the API; none of them between brokers."""
    plan = Plan(spec=spec, base=BASE_PORT)
    ports = ports_to_publish(plan)
    assert len(set(ports)) == len(ports)
    assert len(ports) == 1 + len(spec.broker_ids) * (len(spec.sites) + 1) + len(spec.controller_ids)
    assert not {plan.port(INTERNAL, broker) for broker in spec.broker_ids} & set(ports)


def test_the_mesh_does_not_know_the_ways_of_the_witness() -> None:
    """Three combined brokers have the same 21 links as on loopback, and six ways that are no links."""
    made = topology(ClusterSpec(release="4.3.1"))
    ways = addresses_of(made).witness_routes()
    assert len(made.routes()) == 21
    assert len(ways) == 6
    assert not set(ways) & set(made.routes())
