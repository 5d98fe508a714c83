"""Children of the harness end with it, however it ends. Harnesses here are real processes that really die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.processes.keeper import Keeper, ProcessError, sweep

PATIENCE_S = 15.0
# A child that ends only when it is killed, and has a child of its own in another session.
STUBBORN = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "signal.signal(signal.SIGINT, signal.SIG_IGN);"
    "inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True);"
    "print(inner.pid, flush=True); time.sleep(600)"
)
# Prints the supervisor's and the child's process ids, then waits to be killed. A shell that starts the tests in the
# background lets SIGINT be ignored, and so would whatever they start.
HARNESS = """
import signal, sys, time
from pathlib import Path
from fixtures.processes.keeper import Keeper
signal.signal(signal.SIGINT, signal.default_int_handler)
directory = Path(sys.argv[1])
keeper = Keeper(directory / "ledgers")
child = keeper.spawn("child", [sys.executable, "-c", sys.argv[2]], directory=directory, log=directory / "log")
print(keeper._supervisor.pid, child.pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def await_true(what: str, holds: Callable[[], bool]) -> None:
    """Wait for something that happens in another process."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE_S, f"{what} did not happen within {PATIENCE_S} s"
        time.sleep(0.01)


class Harness:
    """A harness in a process of its own, with a stubborn child and a grandchild."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HARNESS, str(directory), STUBBORN],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        )
        assert self.process.stdout is not None
        with self.process.stdout as output:
            self.supervisor, self.child = map(int, output.readline().split())
        log = directory / "log"
        await_true("the grandchild's start", lambda: log.read_text(encoding="utf-8").endswith("\n"))
        self.grandchild = int(log.read_text(encoding="utf-8"))

    def end(self, number: signal.Signals) -> None:
        """Send a signal to the process group of the harness and wait for its end."""
        os.killpg(self.process.pid, number)
        self.process.wait(PATIENCE_S)

    def nothing_is_left(self) -> bool:
        """Whether child, grandchild and supervisor are gone."""
        return not any(map(alive, (self.supervisor, self.child, self.grandchild)))


def spawn_sleeper(keeper: Keeper, directory: Path) -> int:
    """A child that would outlive the test."""
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    return keeper.spawn("sleeper", command, directory=directory, log=directory / "log").pid


def test_close_ends_children_and_leaves_no_ledger(tmp_path: Path) -> None:
    """Also paused ones; closing again does nothing."""
    keeper = Keeper(tmp_path / "ledgers")
    pid = spawn_sleeper(keeper, tmp_path)
    os.killpg(pid, signal.SIGSTOP)
    assert len(list((tmp_path / "ledgers").iterdir())) == 1
    keeper.close()
    keeper.close()
    assert not alive(pid)
    assert not list((tmp_path / "ledgers").iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_end_with_a_harness_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    """The supervisor kills the child and what it started in another session, although both ignore SIGTERM."""
    harness = Harness(tmp_path)
    assert alive(harness.child)
    assert alive(harness.grandchild)
    harness.end(number)
    await_true("the end of all", harness.nothing_is_left)


def test_an_interrupt_at_the_terminal_does_not_reach_children(tmp_path: Path) -> None:
    """A child is in a session of its own, so signals to the group of the harness pass it by."""
    with Keeper(tmp_path / "ledgers") as keeper:
        pid = spawn_sleeper(keeper, tmp_path)
        assert os.getpgid(pid) == os.getsid(pid) == pid


def test_the_next_start_sweeps_what_a_dead_harness_left(tmp_path: Path) -> None:
    """Harness and supervisor were killed together; the child lives until somebody opens the same ledgers."""
    harness = Harness(tmp_path)
    os.kill(harness.supervisor, signal.SIGKILL)
    harness.end(signal.SIGKILL)
    assert alive(harness.child)
    with Keeper(tmp_path / "ledgers"):
        await_true("the end of all", harness.nothing_is_left)
        assert len(list((tmp_path / "ledgers").iterdir())) == 1


def test_a_sweep_spares_the_children_of_a_living_harness(tmp_path: Path) -> None:
    """Two runs share a cache; the second one's start must not end the first one's brokers."""
    with Keeper(tmp_path / "ledgers") as keeper:
        pid = spawn_sleeper(keeper, tmp_path)
        assert sweep(tmp_path / "ledgers") == 0
        with Keeper(tmp_path / "ledgers"):
            assert alive(pid)


def test_after_its_end_a_keeper_starts_nothing(tmp_path: Path) -> None:
    """Whoever brings a broker back after its cluster has ended is told so, and no process is left behind."""
    keeper = Keeper(tmp_path / "ledgers")
    keeper.close()
    with pytest.raises(ProcessError, match="late was not started: everything that was started here has been ended"):
        keeper.spawn("late", ["true"], directory=tmp_path, log=tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_a_program_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    """And leaves the keeper usable."""
    with Keeper(tmp_path / "ledgers") as keeper:
        with pytest.raises(ProcessError, match="ghost could not be started"):
            keeper.spawn("ghost", [str(tmp_path / "no-such-program")], directory=tmp_path, log=tmp_path / "log")
        assert alive(spawn_sleeper(keeper, tmp_path))


def test_a_child_that_does_not_end_is_named(tmp_path: Path) -> None:
    """Waiting has a deadline."""
    with Keeper(tmp_path / "ledgers") as keeper:
        child = keeper.spawn(
            "sleeper", [sys.executable, "-c", "import time; time.sleep(600)"], directory=tmp_path, log=tmp_path / "log"
        )
        with pytest.raises(ProcessError, match=r"sleeper \(pid \d+\) did not end within 0\.1 s"):
            child.await_exit(0.1)
        child.kill()
        assert child.exit_status == -signal.SIGKILL
