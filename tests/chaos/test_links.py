"""Links over a real Toxiproxy server, between a real client socket and a real echo server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import requests

from chaos import links as links_module
from chaos import toxiproxy_api
from chaos.cluster import BrokerId, Link, LinkMesh, Plane
from chaos.errors import LinkError
from chaos.links import ToxiproxyMesh
from chaos.routes import Endpoint, Route
from fixtures.clusters.network.toxiproxy_server import start_toxiproxy
from fixtures.processes.keeper import Child, Keeper
from fixtures.tools.toxiproxy_build import fetch_toxiproxy

ONE = Link(source="1", target=BrokerId(2))
RAFT = Link(source="1", target=BrokerId(2), plane=Plane.RAFT)
SITE = Link(source="app", target=BrokerId(2))
LINKS = (ONE, RAFT, SITE)
# Loopback answers within a millisecond; a busy machine within seconds.
PATIENCE_S = 10.0
# Long enough for bytes that are let through to arrive, in tests of bytes that are not.
SILENCE_S = 0.3


class EchoServer:
    """Answers every byte with itself and remembers all that it was sent."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.at = Endpoint(host="127.0.0.1", port=self._listener.getsockname()[1])
        self.received = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with closing(connection), suppress(OSError):
            while data := connection.recv(4096):
                self.received += data
                connection.sendall(data)

    def close(self) -> None:
        """Stop accepting; `shutdown` wakes the thread that `close` alone would leave blocked."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def free_endpoint() -> Endpoint:
    """Somewhere to listen."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return Endpoint(host="127.0.0.1", port=probe.getsockname()[1])


def new_mesh(keeper: Keeper, upstream: Endpoint, directory: Path) -> tuple[Child, ToxiproxyMesh]:
    """A server of its own with three links to one upstream."""
    api = free_endpoint()
    child = start_toxiproxy(keeper, fetch_toxiproxy(), api, directory)
    mesh = ToxiproxyMesh(api, {link: Route(listen=free_endpoint(), upstream=upstream) for link in LINKS})
    mesh.create()
    return child, mesh


@pytest.fixture(scope="module")
def echo() -> Iterator[EchoServer]:
    with closing(EchoServer()) as server:
        yield server


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    with Keeper(tmp_path_factory.mktemp("ledgers")) as kept:
        yield kept


@pytest.fixture(scope="module")
def shared(keeper: Keeper, echo: EchoServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToxiproxyMesh]:
    _, mesh = new_mesh(keeper, echo.at, tmp_path_factory.mktemp("toxiproxy"))
    with closing(mesh):
        yield mesh


@pytest.fixture
def mesh(shared: ToxiproxyMesh) -> Iterator[ToxiproxyMesh]:
    yield shared
    shared.heal()


def dial(mesh: ToxiproxyMesh, link: Link) -> socket.socket:
    """A connection through a link."""
    at = mesh.routes[link].listen
    return socket.create_connection((at.host, at.port), timeout=PATIENCE_S)


def echoes(mesh: ToxiproxyMesh, link: Link) -> bool:
    """Whether a new connection through a link carries a byte there and back."""
    with dial(mesh, link) as connection:
        connection.sendall(b"?")
        return connection.recv(1) == b"?"


def refuses(mesh: ToxiproxyMesh, link: Link) -> bool:
    """Whether connections to a link are refused."""
    try:
        dial(mesh, link).close()
    except ConnectionRefusedError:
        return True
    return False


def ended(connection: socket.socket) -> bool:
    """Whether the other side ends a connection, in order or not."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def silent(connection: socket.socket) -> bool:
    """Whether a connection stays open and nothing arrives."""
    connection.settimeout(SILENCE_S)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    return False


def await_true(what: str, holds: Callable[[], bool]) -> None:
    """Wait for something that happens in another thread."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE_S, f"{what} did not happen within {PATIENCE_S} s"
        time.sleep(0.01)


def test_all_links_carry_bytes_at_first(mesh: LinkMesh, shared: ToxiproxyMesh) -> None:
    """A new mesh is healed, sorted, and every link of it carries bytes in both directions."""
    assert mesh.links() == tuple(sorted(LINKS))
    assert mesh.is_healed()
    assert all(echoes(shared, link) for link in LINKS)


def test_a_cut_ends_connections_and_refuses_new_ones_on_that_link_only(mesh: ToxiproxyMesh) -> None:
    """Data and raft of one pair, and a site, are cut apart from each other."""
    with dial(mesh, ONE) as old, dial(mesh, RAFT) as other:
        mesh.cut(ONE)
        assert ended(old)
        assert refuses(mesh, ONE)
        other.sendall(b"!")
        assert other.recv(1) == b"!"
    assert echoes(mesh, SITE)
    assert not mesh.is_healed()


def test_restore_opens_exactly_the_links_it_is_given(mesh: ToxiproxyMesh) -> None:
    """Of two links that are cut, the other one stays cut."""
    mesh.cut(ONE, SITE)
    mesh.restore(ONE)
    assert echoes(mesh, ONE)
    assert refuses(mesh, SITE)
    mesh.restore(SITE)
    assert mesh.is_healed()


def test_dropped_responses_leave_requests_and_the_connection_alone(mesh: ToxiproxyMesh, echo: EchoServer) -> None:
    """The server receives the bytes, the client gets none and sees no end; after healing no old bytes arrive."""
    with dial(mesh, SITE) as connection:
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        mesh.drop_responses(SITE)
        connection.sendall(b"lost-response")
        await_true("the request's arrival", lambda: echo.received.endswith(b"lost-response"))
        assert silent(connection)
        mesh.restore(SITE)
        connection.settimeout(PATIENCE_S)
        assert ended(connection)
    assert echoes(mesh, SITE)


def test_dropping_responses_twice_is_dropping_them_once(mesh: ToxiproxyMesh) -> None:
    """The second call changes nothing and is no error, and one restore undoes both."""
    mesh.drop_responses(SITE)
    mesh.drop_responses(SITE, ONE)
    mesh.restore(SITE, ONE)
    assert mesh.is_healed()


def test_a_degraded_link_delays_both_directions(mesh: ToxiproxyMesh) -> None:
    """A round trip takes at least twice the latency, and no longer does after the healing."""
    mesh.degrade(ONE, latency_ms=100)
    with dial(mesh, ONE) as connection:
        began = time.monotonic()
        connection.sendall(b"?")
        assert connection.recv(1) == b"?"
        assert time.monotonic() - began >= 0.2
    mesh.heal()
    began = time.monotonic()
    assert echoes(mesh, ONE)
    assert time.monotonic() - began < 0.2


def test_a_throttled_link_is_slow(mesh: ToxiproxyMesh) -> None:
    """50 kB at 100 kB/s take at least 0.4 s."""
    mesh.degrade(ONE, rate_kb_s=100)
    size = 50_000
    with dial(mesh, ONE) as connection:
        began = time.monotonic()
        connection.sendall(bytes(size))
        left = size
        while left:
            left -= len(connection.recv(left))
        assert time.monotonic() - began >= 0.4


def test_degrading_again_replaces(mesh: ToxiproxyMesh) -> None:
    """The second latency holds, not the sum, and the first one's rate is gone."""
    mesh.degrade(ONE, latency_ms=2000, rate_kb_s=1)
    mesh.degrade(ONE, latency_ms=1)
    with dial(mesh, ONE) as connection:
        began = time.monotonic()
        connection.sendall(bytes(4000))
        left = 4000
        while left:
            left -= len(connection.recv(left))
        assert time.monotonic() - began < 1.5


def test_a_link_refuses_while_its_destination_does_not_listen(mesh: ToxiproxyMesh, echo: EchoServer) -> None:
    """A cut stays a cut when the destination is back; healing opens no deserted link, and the mesh counts as healed."""
    mesh.follow(())
    assert all(refuses(mesh, link) for link in LINKS)
    assert mesh.is_healed()
    mesh.cut(ONE)
    mesh.restore(SITE)
    assert refuses(mesh, SITE)
    mesh.follow((echo.at,))
    assert refuses(mesh, ONE)
    assert echoes(mesh, SITE)
    mesh.follow(())
    mesh.heal()
    assert refuses(mesh, ONE)
    mesh.follow((echo.at,))
    assert all(echoes(mesh, link) for link in LINKS)


@pytest.mark.parametrize("options", [{}, {"latency_ms": -1}, {"rate_kb_s": 0}])
def test_degrading_by_nothing_or_less_is_refused(mesh: ToxiproxyMesh, options: dict[str, int]) -> None:
    """There would be no fault, or, at a rate of 0, another one."""
    with pytest.raises(LinkError, match="cannot be degraded"):
        mesh.degrade(ONE, **options)
    assert mesh.is_healed()


def test_heal_undoes_everything_and_may_be_repeated(mesh: ToxiproxyMesh) -> None:
    """A cut link with toxics, a mute one and a degraded one are all as new."""
    mesh.drop_responses(ONE, RAFT)
    mesh.cut(ONE)
    mesh.degrade(SITE, latency_ms=5, jitter_ms=2, rate_kb_s=10)
    mesh.heal()
    assert mesh.is_healed()
    assert all(echoes(mesh, link) for link in LINKS)
    mesh.heal()
    assert mesh.is_healed()


def test_heal_brings_back_a_proxy_that_the_server_lost(mesh: ToxiproxyMesh) -> None:
    """Another program removed it: cutting reports that, healing makes it again."""
    requests.delete(f"http://{mesh.api}/proxies/data-1-2", timeout=PATIENCE_S).raise_for_status()
    assert not mesh.is_healed()
    with pytest.raises(LinkError, match="lost 1→2"):
        mesh.cut(ONE)
    mesh.heal()
    assert echoes(mesh, ONE)


def test_heal_opens_the_others_when_one_cannot_be_opened(mesh: ToxiproxyMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program has taken one link's port: the error names that link, the other link works, and later all do."""
    monkeypatch.setattr(links_module, "_HEAL_DEADLINE_S", 0.5)
    mesh.cut(ONE, SITE)
    at = mesh.routes[ONE].listen
    with socket.create_server((at.host, at.port)):
        with pytest.raises(LinkError, match="1→2 not open"):
            mesh.heal()
        assert echoes(mesh, SITE)
        assert not mesh.is_healed()
    mesh.heal()
    assert echoes(mesh, ONE)


def test_a_link_that_does_not_exist_is_refused_before_anything_is_cut(mesh: ToxiproxyMesh) -> None:
    """The message names it and the existing ones; the known link next to it stays open."""
    with pytest.raises(LinkError, match="no link 9→2; there are"):
        mesh.cut(ONE, Link(source="9", target=BrokerId(2)))
    assert mesh.is_healed()


def test_a_taken_port_is_an_error_at_creation(keeper: Keeper, echo: EchoServer, tmp_path: Path) -> None:
    """The library alone would answer with a KeyError."""
    api = free_endpoint()
    start_toxiproxy(keeper, fetch_toxiproxy(), api, tmp_path)
    with closing(ToxiproxyMesh(api, {ONE: Route(listen=echo.at, upstream=echo.at)})) as mesh:
        with pytest.raises(LinkError, match="address already in use"):
            mesh.create()
        assert not mesh.is_healed()


def test_a_dead_server_is_an_error_and_not_a_healed_mesh(keeper: Keeper, echo: EchoServer, tmp_path: Path) -> None:
    """Cutting and asking both raise the error."""
    server, mesh = new_mesh(keeper, echo.at, tmp_path)
    with closing(mesh):
        server.kill()
        with pytest.raises(LinkError, match="did not answer"):
            mesh.cut(ONE)
        with pytest.raises(LinkError, match="did not answer"):
            mesh.is_healed()


def test_a_server_that_hangs_costs_the_deadline_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts and never answers; the library alone would wait forever."""
    monkeypatch.setattr(toxiproxy_api, "_CALL_DEADLINE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        api = Endpoint(host="127.0.0.1", port=mute.getsockname()[1])
        with closing(ToxiproxyMesh(api, {ONE: Route(listen=free_endpoint(), upstream=api)})) as mesh:
            began = time.monotonic()
            with pytest.raises(LinkError, match=r"within 0\.2 s"):
                mesh.cut(ONE)
            assert time.monotonic() - began < PATIENCE_S


def test_two_meshes_do_not_meet(mesh: ToxiproxyMesh, keeper: Keeper, echo: EchoServer, tmp_path: Path) -> None:
    """The library's server address is global; cuts on two servers at once, from threads, stay where they belong."""
    _, other = new_mesh(keeper, echo.at, tmp_path)
    failures: list[BaseException] = []

    def toggle(which: ToxiproxyMesh, link: Link) -> None:
        try:
            for _ in range(15):
                which.cut(link)
                which.restore(link)
            which.cut(link)
        except BaseException as error:  # noqa: BLE001 (a thread's failure must reach the test)
            failures.append(error)

    with closing(other):
        threads = [threading.Thread(target=toggle, args=each) for each in ((mesh, ONE), (other, SITE))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not failures
        assert refuses(mesh, ONE)
        assert echoes(mesh, SITE)
        assert refuses(other, SITE)
        assert echoes(other, ONE)


def test_concurrent_callers_share_one_mesh(mesh: ToxiproxyMesh) -> None:
    """Two threads that cut and restore different links do not disturb each other."""
    failures: list[BaseException] = []

    def toggle(link: Link) -> None:
        try:
            for _ in range(15):
                mesh.cut(link)
                mesh.restore(link)
        except BaseException as error:  # noqa: BLE001 (a thread's failure must reach the test)
            failures.append(error)

    threads = [threading.Thread(target=toggle, args=(link,)) for link in (ONE, SITE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not failures
    assert mesh.is_healed()
