"""A run in a process of its own receives SIGINT, is waited for, and has ended afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runner import pytest_process
from runner.config import ROOT
from runner.pytest_process import OverdueRunError, run_pytest
from verification.vocabulary.verdict import ExitCode

#: Notes every request to end, and takes its time.
RUN = """
import pathlib, time
def test_it():
    said = pathlib.Path(__file__).parent / "said"
    with said.open("a", buffering=1) as file:
        file.write("began\\n")
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            file.write("asked\\n")
            try:
                time.sleep(2 if {patient} else 60)
            except KeyboardInterrupt:
                file.write("hurried\\n")
            file.write("ended")
            raise
"""
COMMAND = """
from runner.pytest_process import run_pytest
from verification.command_line import end_with
end_with(lambda: run_pytest([{path!r}, "-q", "-p", "no:cacheprovider"], within_s=60), program="it", kept="all is kept")
"""
BEGINS_WITHIN_S = 60.0


def awaited(said: Path, word: str) -> None:
    """Wait until the run has printed a word."""
    until_s = time.monotonic() + BEGINS_WITHIN_S
    while not said.exists() or word not in said.read_text(encoding="utf-8"):
        assert time.monotonic() < until_s, f"the run has not said {word!r}"
        time.sleep(0.05)


@pytest.mark.parametrize("how", ["SIGTERM to the command", "Ctrl-C at its terminal", "Ctrl-C twice"])
def test_a_request_to_end_reaches_the_run_once_each_time(tmp_path: Path, how: str) -> None:
    """The command waits until the run has ended, and neither kills it nor leaves it running."""
    path, said = tmp_path / "test_run.py", tmp_path / "said"
    path.write_text(RUN.replace("{patient}", str(how != "Ctrl-C twice")), encoding="utf-8")
    command = [sys.executable, "-c", COMMAND.format(path=str(path))]
    started = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE, text=True)
    awaited(said, "began")
    if how == "SIGTERM to the command":
        started.terminate()
    else:
        os.killpg(started.pid, signal.SIGINT)
    if how == "Ctrl-C twice":
        awaited(said, "asked")
        os.killpg(started.pid, signal.SIGINT)
    _, error = started.communicate(timeout=BEGINS_WITHIN_S)
    assert started.returncode == ExitCode.ENVIRONMENT
    assert error == "it: interrupted; all is kept.\n"
    assert said.read_text(encoding="utf-8").split() == [
        "began",
        "asked",
        *(["hurried"] if how == "Ctrl-C twice" else []),
        "ended",
    ]


def test_a_run_that_takes_too_long_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error of the environment, also when the run ignores SIGINT."""
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    path = tmp_path / "test_run.py"
    path.write_text(
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)\n", encoding="utf-8"
    )
    monkeypatch.setattr(subprocess, "Popen", Recorded)
    monkeypatch.setattr(pytest_process, "ENDS_WITHIN_S", 0.5)
    with pytest.raises(OverdueRunError, match="did not end within 1 s"):
        run_pytest([str(path), "-q"], within_s=1.0)
    assert started[0].returncode is not None
