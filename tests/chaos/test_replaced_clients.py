"""Clients of one release are replaced by those of another, one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from chaos.clients import ClientProcess, Succession
from chaos.cluster import Site
from chaos.errors import UnresolvedTargetError
from chaos.operations import clients as replacing
from chaos.operations.clients import ReplaceNext
from tests.support.fake_cluster import FakeClients, arena

APP = Site("app")


def client(process: int, role: str, library: str) -> ClientProcess:
    return ClientProcess(process=process, role=role, site=APP, transactional_id=f"r-{process}", library=library)


@dataclass
class LeavingClients(FakeClients):
    """Clients that leave when they are dismissed, and whose successors have the release that is asked for, or `started`."""

    started: str = ""
    works: bool = True

    def dismiss(self, processes: tuple[ClientProcess, ...]) -> None:
        super().dismiss(processes)
        self.living = [each for each in self.living if each not in processes]

    def succeed(self, process: ClientProcess, *, site: Site, timeout_s: float, release: str = "") -> Succession:
        assert process not in self.living
        succession = super().succeed(process, site=site, timeout_s=timeout_s)
        library = f"kafka-clients {self.started or release} (Java 21)"
        self.living[-1] = replace(succession.successor, library=library, done=int(self.works))
        return replace(succession, successor=self.living[-1])


def clients(started: str = "", *, works: bool = True) -> LeavingClients:
    living = [
        client(0, "observer", "kafka-clients 3.9.2 (Java 21)"),
        client(1, "producer", "librdkafka 2.8.0"),
        client(2, "producer", "kafka-clients 3.9.2 (Java 21)"),
        client(3, "copier", "kafka-clients 3.9.2 (Java 21)"),
    ]
    return LeavingClients(living=living, started=started, works=works)


def test_writers_of_the_old_release_are_replaced_one_by_one() -> None:
    """The oldest goes first; observers and other libraries stay; each successor names the new release."""
    having, on = clients(), arena()
    for expected in (2, 3):
        injection = ReplaceNext("3.9.2", "4.3.1").inject(replace(on, clients=having))
        assert injection.processes == (expected,)
        assert injection.confirm() == (
            f"process {10 + expected} (kafka-clients 4.3.1 (Java 21)) has {'copied' if expected == 3 else 'written'} "
            f"after process {expected} left"
        )
    assert [each.process for each in having.living] == [0, 1, 12, 13]
    assert having.dismissed == {2, 3}


def test_a_successor_of_another_release_is_no_proof() -> None:
    """What its library says counts, not what was asked for."""
    injection = ReplaceNext("3.9.2", "4.3.1").inject(replace(arena(), clients=clients(started="4.2.1")))
    assert injection.confirm() is None


def test_a_successor_must_have_ended_an_operation() -> None:
    """Until then a copier may be waiting for its group, and no member of its release has copied."""
    having = clients(works=False)
    injection = ReplaceNext("3.9.2", "4.3.1").inject(replace(arena(), clients=having))
    assert injection.confirm() is None
    having.living[-1] = replace(having.living[-1], done=1)
    assert injection.confirm() is not None


def test_a_control_replaces_each_client_once_by_one_of_the_same_release() -> None:
    """Successors are younger, so the next step takes the next client."""
    having, on = clients(), arena()
    for expected in (2, 3):
        injection = ReplaceNext("3.9.2", "3.9.2").inject(replace(on, clients=having))
        assert injection.processes == (expected,)
        assert injection.confirm() is not None


def test_nothing_to_replace_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a client of the old release nothing was tried."""
    monkeypatch.setattr(replacing, "SUCCESSION_S", 0.1)
    with pytest.raises(UnresolvedTargetError, match=r"no client of kafka-clients 4\.0\.2 is running"):
        ReplaceNext("4.0.2", "4.3.1").inject(replace(arena(), clients=clients()))
