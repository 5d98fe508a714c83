"""Engines that do not answer, and owners that are dead; none of this needs an engine."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.clusters.docker.engine import Engine, is_alive
from fixtures.clusters.errors import EngineUnavailableError


@pytest.fixture
def silent_engine(tmp_path: Path) -> Iterator[Path]:
    """A socket that takes connections and never answers."""
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(8)
        yield path


def test_a_missing_engine_is_one_sentence_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It names the socket, says what else there is, and is an error of the environment."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(EngineUnavailableError, match=r"no\.sock\. Start Docker, or .*--runtime local") as raised:
        Engine.connect()
    assert raised.value.exit_code == 5


def test_a_socket_without_permission_says_which_group_helps(
    monkeypatch: pytest.MonkeyPatch, silent_engine: Path
) -> None:
    """Not being allowed is told from not being there."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{silent_engine}")
    # The superuser may do everything, so that a mode of 000 would not show it.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(EngineUnavailableError, match=r"may not talk to the Docker engine.*group"):
        Engine.connect()


def test_an_engine_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, silent_engine: Path) -> None:
    """The question has a deadline, and the sentence names it."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{silent_engine}")
    with pytest.raises(EngineUnavailableError, match="does not answer within 1 s"):
        Engine.connect(deadline_s=1)


@pytest.mark.parametrize("host", ["tcp://192.0.2.1:2375", "ssh://somebody@example.org"])
def test_an_engine_on_another_machine_is_refused_before_it_is_asked(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """Its published ports would lie on that machine's loopback."""
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(EngineUnavailableError, match="on another machine"):
        Engine.connect()


def test_an_owner_lives_as_long_as_its_very_process() -> None:
    """A process that ended, and a later one with its number, are dead owners; one on another machine cannot be judged."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    node = platform.node()
    assert not is_alive(f"{node}/{ended.pid}@1")
    assert is_alive(f"{node}/{os.getpid()}@")
    assert not is_alive(f"{node}/{os.getpid()}@1")
    assert is_alive(f"not-{node}/{ended.pid}@1")
    assert is_alive("something else")
