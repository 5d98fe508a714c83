"""The topology of a cluster, without starting anything."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.cluster import BrokerId, Link, Plane, Site
from chaos.routes import Endpoint
from fixtures.clusters.errors import ClusterSpecError
from fixtures.clusters.local.loopback import LoopbackAddresses
from fixtures.clusters.network.port_plan import CONTROLLER, INTERNAL, PORTS_PER_BLOCK, WITNESS, Plan, listener_of
from fixtures.clusters.network.topology import Topology
from fixtures.clusters.spec import ClusterSpec

BASE = 20_000
SITE_NAMES = ("app", "zombie", "observer", "east", "west", "b2")


def topology(spec: ClusterSpec) -> Topology:
    """On loopback, from port 20 000 on."""
    plan = Plan(spec=spec, base=BASE)
    return Topology(plan, LoopbackAddresses(plan))


@st.composite
def specs(draw: st.DrawFn) -> ClusterSpec:
    """Any cluster that fits into a block of ports."""
    brokers = draw(st.integers(1, 6))
    secured = draw(st.booleans())
    return ClusterSpec(
        release="4.3.1",
        brokers=brokers,
        controllers=draw(st.integers(0, 9 - brokers)),
        sites=tuple(
            Site(name) for name in draw(st.permutations(SITE_NAMES))[: draw(st.integers(1, 5 if secured else 6))]
        ),
        secured=secured,
        replicas=1,
        min_in_sync=1,
    )


def listening(of: Topology) -> list[Endpoint]:
    """Everything that somebody listens on."""
    plan = of.plan
    own = [
        of.addresses.upstream(listener, broker)
        for broker in plan.spec.party_ids
        for listener in plan.listeners_of(broker)
    ]
    return [*own, *(route.listen for route in of.routes().values()), Endpoint(host="127.0.0.1", port=plan.api_port)]


@settings(deadline=None)
@given(specs())
def test_nobody_listens_where_another_does(spec: ClusterSpec) -> None:
    """All addresses are different, on loopback, and inside the block of ports."""
    everything = listening(topology(spec))
    assert len(set(everything)) == len(everything)
    assert all(each.host.startswith("127.") for each in everything)
    assert all(BASE <= each.port < BASE + PORTS_PER_BLOCK for each in everything)


@settings(deadline=None)
@given(specs())
def test_a_name_leads_to_the_link_of_whoever_asks(spec: ClusterSpec) -> None:
    """What a broker resolves a peer's name to, with the advertised port, is where its own link listens."""
    made = topology(spec)
    for link, route in made.routes().items():
        if link.source in spec.sites:
            continue
        lines = made.hosts_file(BrokerId(int(link.source))).splitlines()
        hosts = {name: address for address, name in (line.split() for line in lines)}
        listener = CONTROLLER if link.plane is Plane.RAFT else INTERNAL
        port = made.plan.port(listener, link.target)
        assert route.listen == Endpoint(host=hosts[made.plan.name(link.target)], port=port)
        assert route.upstream == made.addresses.upstream(listener, link.target)
        assert route.listen != route.upstream


@settings(deadline=None)
@given(specs())
def test_every_advertised_address_but_the_witness_is_a_link(spec: ClusterSpec) -> None:
    """A client that believes the metadata stays on the links of its site; only the witness goes around them."""
    made = topology(spec)
    routes = made.routes()
    for broker in spec.broker_ids:
        advertised = dict(
            each.split("://") for each in made.properties(broker, "/data")["advertised.listeners"].split(",")
        )
        for site in spec.sites:
            assert advertised[listener_of(site)] == str(routes[Link(source=site, target=broker)].listen)
        name = made.plan.name(broker)
        assert advertised[INTERNAL] == f"{name}:{made.plan.port(INTERNAL, broker)}"
        assert advertised[WITNESS] not in {str(route.listen) for route in routes.values()}
        assert CONTROLLER not in advertised


def test_three_combined_brokers_and_three_sites_have_21_links() -> None:
    """Six for data, six for raft, three per site."""
    links = topology(ClusterSpec(release="4.3.1")).plan.links()
    assert len(links) == 21
    assert list(links) == sorted(set(links))
    assert Link(source="1", target=BrokerId(1)) not in links


def test_dedicated_controllers_are_dialled_and_dial_no_broker() -> None:
    """Brokers and controllers open raft links to controllers; controllers open nothing else."""
    spec = ClusterSpec(release="4.3.1", brokers=2, controllers=2, replicas=2, min_in_sync=1)
    links = topology(spec).plan.links()
    raft = {(link.source, link.target) for link in links if link.plane is Plane.RAFT}
    assert raft == {("1", 3), ("1", 4), ("2", 3), ("2", 4), ("3", 4), ("4", 3)}
    assert not [link for link in links if link.source in {"3", "4"} and link.plane is Plane.DATA]


def test_a_dedicated_controller_opens_its_own_listener_only() -> None:
    """Its properties have one listener, no advertised ones, and the same voters as everybody."""
    made = topology(ClusterSpec(release="4.3.1", brokers=3, controllers=1))
    controller, broker = made.properties(BrokerId(4), "/c"), made.properties(BrokerId(1), "/b")
    assert controller["listeners"] == "CONTROLLER://controller-4:20014"
    assert "advertised.listeners" not in controller
    assert controller["process.roles"] == "controller"
    assert broker["process.roles"] == "broker"
    assert "CONTROLLER" not in broker["listeners"]
    assert broker["controller.quorum.voters"] == controller["controller.quorum.voters"] == "4@controller-4:20014"


def test_the_loopback_star_is_as_documented() -> None:
    """The addresses of the table in the module's docstring."""
    made = topology(ClusterSpec(release="4.3.1"))
    assert made.hosts_file(BrokerId(2)) == "127.0.2.1 broker-1\n127.1.0.2 broker-2\n127.0.2.3 broker-3\n"
    assert made.bootstrap(Site("app")) == "127.2.0.1:20021,127.2.0.2:20022,127.2.0.3:20023"
    assert made.bootstrap(Site("zombie")) == "127.3.0.1:20031,127.3.0.2:20032,127.3.0.3:20033"
    assert made.witness_bootstrap() == "127.1.0.1:20081,127.1.0.2:20082,127.1.0.3:20083"
    assert {str(each) for each in made.voters().values()} == {
        "127.1.0.1:20011",
        "127.1.0.2:20012",
        "127.1.0.3:20013",
    }


def test_settings_of_the_spec_win() -> None:
    """A broker setting of the spec replaces the harness's own; the others stay."""
    spec = ClusterSpec(release="4.3.1", broker_settings={"unclean.leader.election.enable": "true", "x.y": "z"})
    properties = topology(spec).properties(BrokerId(1), "/data")
    assert properties["unclean.leader.election.enable"] == "true"
    assert properties["x.y"] == "z"
    assert properties["broker.session.timeout.ms"] == "3000"


def test_equal_specs_are_interchangeable() -> None:
    """Equality and hash go by content, and a mapping that changes later does not change the spec."""
    broker_settings = {"a": "1"}
    one = ClusterSpec(release="4.3.1", broker_settings=broker_settings, feature_levels={"transaction.version": 2})
    other = ClusterSpec(release="4.3.1", broker_settings={"a": "1"}, feature_levels={"transaction.version": 2})
    assert one == other
    assert hash(one) == hash(other)
    broker_settings["a"] = "2"
    assert one == other
    assert one != ClusterSpec(release="4.3.1", broker_settings={"a": "2"}, feature_levels={"transaction.version": 2})


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"brokers": 0}, "0 brokers"),
        ({"brokers": 8, "controllers": 3}, "more than 9"),
        ({"brokers": 2}, "3 on 2 brokers"),
        ({"min_in_sync": 4}, "4 in-sync"),
        ({"partitions": 0}, "0 partitions"),
        ({"sites": ()}, "sites must be"),
        ({"sites": (Site("app"), Site("app"))}, "different names"),
        ({"sites": (Site("App"),)}, "'App'"),
        ({"sites": (Site("witness"),)}, "'witness'"),
        ({"sites": (Site("a-b"),)}, "'a-b'"),
    ],
)
def test_impossible_clusters_are_refused(change: dict[str, object], word: str) -> None:
    """One sentence says what cannot be."""
    with pytest.raises(ClusterSpecError, match=word):
        ClusterSpec(**({"release": "4.3.1"} | change))  # type: ignore[arg-type]


def test_only_the_secured_listener_is_secured() -> None:
    """It speaks SASL_SSL at the broker's own address, without a link; the others stay as they are."""
    secured = topology(ClusterSpec(release="4.3.1", sites=(Site("app"),), secured=True))
    properties = secured.properties(BrokerId(2), "/data")
    assert properties["listener.security.protocol.map"] == (
        "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,APP:PLAINTEXT,SECURED:SASL_SSL,WITNESS:PLAINTEXT"
    )
    assert "SECURED://127.1.0.2:20072" in properties["advertised.listeners"].split(",")
    assert secured.secured_bootstrap() == "127.1.0.1:20071,127.1.0.2:20072,127.1.0.3:20073"
    assert "SECURED" not in str(topology(ClusterSpec(release="4.3.1")).properties(BrokerId(1), "/data"))
