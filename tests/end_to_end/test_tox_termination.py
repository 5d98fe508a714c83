"""SIGTERM to a real tox: its command receives it too, and has the time to end by itself."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.whole_commands import Command, python

#: Creating the environment takes two seconds on a quiet machine.
BEGINS_WITHIN_S = 120.0
ENDS_WITHIN_S = 60.0
#: Longer than tox waits by default.
HEALING_S = 3
#: A command that takes its time to heal, and says which signals it received.
PROGRAM = """import pathlib, signal, sys, time
said, received = pathlib.Path(sys.argv[1]), []
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, lambda number, _: received.append(signal.Signals(number).name))
said.write_text("ready")
while not received:
    time.sleep(0.05)
said.write_text("heals")
until = time.monotonic() + {healing_s}
while time.monotonic() < until:
    time.sleep(0.05)
said.write_text(" ".join(["healed", *sorted(set(received))]))
sys.exit(5)
"""


@pytest.fixture
def said(tmp_path: Path) -> Path:
    """The file that the program writes."""
    return tmp_path / "said"


@pytest.fixture(params=["tox", "timeout"])
def command(request: pytest.FixtureRequest, tmp_path: Path, said: Path) -> Iterator[Command]:
    """A real tox with this project's settings, alone or in `timeout`, once its command is ready."""
    program, place = tmp_path / "program.py", tmp_path / "command"
    program.write_text(PROGRAM.format(healing_s=HEALING_S), encoding="utf-8")
    place.mkdir()
    overrides = ("-x", "testenv:conformance.deps=", "-x", f"testenv:conformance.commands=python {program} {said}")
    tox = python("tox", "run", "--workdir", str(tmp_path / "tox"), "-e", "conformance", *overrides)
    timeout = shutil.which("timeout") or pytest.skip("the machine has no `timeout`")
    before = (timeout, "600") if request.param == "timeout" else ()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with closing(Command(place, (*before, *tox), {"PATH": path})) as started:
        has_said(started, said, "ready")
        yield started


def has_said(command: Command, said: Path, word: str) -> None:
    """Wait until the program has written a word."""
    command.wait_for(
        lambda: said.is_file() and said.read_text(encoding="utf-8") == word, word, within_s=BEGINS_WITHIN_S
    )


def test_the_command_receives_sigterm_and_heals(command: Command, said: Path) -> None:
    """`timeout` sends SIGTERM to the whole group, others to tox alone. tox adds no SIGINT, and waits."""
    command.terminate()
    ended = command.end(within_s=ENDS_WITHIN_S)
    assert said.read_text(encoding="utf-8") == "healed SIGTERM"
    assert ended.code in (1, 5), ended.output
    assert "Traceback" not in ended.output
    ended.left_nothing()


@pytest.mark.parametrize("command", ["tox"], indirect=True)
def test_a_second_sigterm_changes_nothing(command: Command, said: Path) -> None:
    """The command has all its time."""
    command.terminate()
    has_said(command, said, "heals")
    command.terminate()
    ended = command.end(within_s=ENDS_WITHIN_S)
    assert said.read_text(encoding="utf-8") == "healed SIGTERM"
    assert ended.code in (1, 5), ended.output
    ended.left_nothing()
