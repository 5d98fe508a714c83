"""Starts whole commands in a prepared environment, and finds the processes and files that they leave behind.

Each command gets a mark in its environment, and its child processes inherit the mark: processes that are left are found
by the mark, never by name. Temporary files have a directory of their own, which must be empty in the end. A command runs
in a session of its own, so a signal to its process group has the effect of Ctrl-C in a terminal.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.paths import ROOT, WITHOUT_HYPOTHESIS

#: The only scenario of the smoke profile that is not a control.
FLOOR = ("--profile", "smoke", "--seed", "1", "-k", "without_faults")
NOWHERE = "http://127.0.0.1:9"
#: tox passes it on, because of its prefix.
MARK = "ONCEPROOF_TEST_MARK"
#: A start takes seconds, fetching gives up after as many; the rest is for a machine that is busy with clusters.
WITHIN_S = 180.0
#: Spark's JVM and its Python workers end when they read that the command's pipe is closed: within a second, measured.
GONE_WITHIN_S = 15.0
_LOOK_EVERY_S = 0.1
# Variables that tox and pytest set for their children. A tox inside a tox would use TOX_WORK_DIR as its own.
_NOT_INHERITED = re.compile(r"TOX_|PYTEST_|VIRTUAL_ENV$")
#: An empty cache and no network: variables that the user of the tests may have set are emptied.
BARE = {
    "ONCEPROOF_MAVEN_REPOSITORY": NOWHERE,
    "PIP_INDEX_URL": NOWHERE,
    "PIP_FIND_LINKS": "",
    "PIP_CONSTRAINT": "",
    "PIP_RETRIES": "0",
    "PIP_CONFIG_FILE": os.devnull,
    "GOPROXY": "off",
    "NO_PROXY": "*",
    "no_proxy": "*",
}


class Command:
    """A running command, with its mark, its temporary directory and its output in a file."""

    def __init__(self, place: Path, arguments: tuple[str, ...], variables: dict[str, str]) -> None:
        self.mark = uuid.uuid4().hex
        self.temporary = place / "tmp"
        self.temporary.mkdir()
        self._said = place / "output"
        inherited = {name: value for name, value in os.environ.items() if not _NOT_INHERITED.match(name)}
        with self._said.open("wb") as output:
            self._process = subprocess.Popen(
                arguments,
                cwd=ROOT,
                # Spark's JVM does not read TMPDIR.
                env={
                    **inherited,
                    "TMPDIR": str(self.temporary),
                    "SPARK_LOCAL_DIRS": str(self.temporary),
                    # SIGABRT prints the stacks of all threads: see `end`.
                    "PYTHONFAULTHANDLER": "1",
                    "PYTEST_ADDOPTS": WITHOUT_HYPOTHESIS,
                    **variables,
                    MARK: self.mark,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process that was started."""
        return self._process.pid

    @property
    def output(self) -> str:
        """The output so far."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, seen: Callable[[], bool], what: str, *, within_s: float) -> None:
        """Wait until a condition holds while the command runs."""
        deadline = time.monotonic() + within_s
        while not seen():
            assert self._process.poll() is None, f"it ended before {what}:\n{self.output}"
            assert time.monotonic() < deadline, f"{what} was not seen within {within_s:.0f} s:\n{self.output}"
            time.sleep(_LOOK_EVERY_S)

    def command_lines(self, *, within_s: float) -> set[str]:
        """Every command line that is seen until the command ends, looked at twice a second."""
        seen: set[str] = set()
        deadline = time.monotonic() + within_s
        while self._process.poll() is None and time.monotonic() < deadline:
            seen.update(self.processes().values())
            time.sleep(0.5)
        return seen

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """SIGINT to the process group, as Ctrl-C in a terminal; `timeout` sends SIGTERM to the group."""
        os.killpg(self._process.pid, number)

    def terminate(self) -> None:
        """SIGTERM to the command alone, as a CI system sends it."""
        self._process.terminate()

    def end(self, *, within_s: float = WITHIN_S) -> Ended:
        """Wait for the end of the command. After the bound, fail with the stacks of all its threads."""
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            running = "\n".join(self.processes().values())
            self._process.send_signal(signal.SIGABRT)
            self._process.wait(GONE_WITHIN_S)
            pytest.fail(f"no end within {within_s:.0f} s, running:\n{running}\nand said:\n{self.output}")
        deadline = time.monotonic() + GONE_WITHIN_S
        while self.processes() and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)
        return Ended(
            code=code, output=self.output, left=tuple(self.processes().values()), files=tuple(self.temporary.iterdir())
        )

    def processes(self) -> dict[int, str]:
        """Command lines of the processes that carry the mark, by process id."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                        found[int(entry.name)] = command.decode(errors="replace")
                except OSError:
                    continue  # it has just ended, or belongs to another user
        return found

    def close(self) -> None:
        """End the processes that a failed test left, and no others."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(WITHIN_S)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended. `left` are the processes, `files` the temporary files that outlived it."""

    code: int
    output: str
    left: tuple[str, ...]
    files: tuple[Path, ...]

    def refused(self, sentence: str, *, code: int) -> None:
        """Check that one line has the sentence (a regular expression), the exit code, and that nothing is left."""
        lines = [line for line in self.output.splitlines() if re.search(sentence, line)]
        assert len(lines) == 1, self.output
        assert "Traceback" not in self.output
        assert "INTERNALERROR" not in self.output
        assert self.code == code, self.output
        self.left_nothing()

    def left_nothing(self) -> None:
        """Check that no process and no temporary file is left."""
        assert self.left == ()
        assert self.files == ()


def python(*arguments: str, patch: str = "") -> tuple[str, ...]:
    """`python -m …` with this interpreter; `patch` is code that runs first and replaces a part of the environment."""
    if not patch:
        return (sys.executable, "-m", *arguments)
    module, *rest = arguments
    code = f"{patch}\nimport runpy, sys\nsys.argv[1:] = {rest!r}\nrunpy.run_module({module!r}, run_name='__main__')"
    return (sys.executable, "-c", code)


def conformance(place: Path, *options: str, patch: str = "") -> tuple[str, ...]:
    """A conformance run of one scenario, as tox starts it; its directory is `run` below the place."""
    return python("pytest", "suites", *FLOOR, "--run-dir", str(place / "run"), *options, patch=patch)


@contextlib.contextmanager
def starting(directory: Path) -> Iterator[Callable[..., Command]]:
    """Starts `python -m …` commands, each in a directory of its own; whatever they started ends with the context."""
    commands: list[Command] = []

    def start(*arguments: str) -> Command:
        place = directory / f"place-{len(commands)}"
        place.mkdir()
        commands.append(Command(place, python(*arguments), {}))
        return commands[-1]

    try:
        yield start
    finally:
        for each in commands:
            each.close()
