"""The handle of a client driver: what it says when a driver cannot start, dies, talks nonsense or is silent."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from fixtures.clients.driver import Driver
from fixtures.clients.errors import DriverDiedError, DriverGarbageError, DriverSilentError, DriverStartError
from tests.driver_talk import ROOT, await_gone


def start(tmp_path: Path, program: str) -> Driver:
    return Driver.start((sys.executable, "-c", program), name="odd", directory=tmp_path, work_directory=ROOT)


def test_a_program_that_cannot_be_started_is_said(tmp_path: Path) -> None:
    """A missing program is one sentence."""
    with pytest.raises(DriverStartError, match="could not be started"):
        Driver.start(("/nonexistent/driver",), name="none", directory=tmp_path, work_directory=ROOT)


def test_garbage_on_standard_output_is_an_error(tmp_path: Path) -> None:
    """What is not an event is quoted in the error."""
    driver = start(tmp_path, "import sys; print('hello', flush=True); sys.stdin.read()")
    with pytest.raises(DriverGarbageError, match="hello"):
        driver.receive(waiting_for="speak", timeout_s=30)
    driver.close()


def test_a_driver_that_dies_leaves_its_last_lines(tmp_path: Path) -> None:
    """The error names the exit code and quotes the log."""
    driver = start(tmp_path, "import sys; sys.exit('no such library')")
    with pytest.raises(DriverDiedError, match=r"exit code 1\.(?s:.*)no such library"):
        driver.receive(waiting_for="speak", timeout_s=30)
    driver.close()


def test_a_silent_driver_is_not_waited_for_forever(tmp_path: Path) -> None:
    """The error says what was waited for and how long."""
    driver = start(tmp_path, "import sys; sys.stdin.read()")
    with pytest.raises(DriverSilentError, match="did not speak within 0 s"):
        driver.receive(waiting_for="speak", timeout_s=0.3)
    driver.close()


def test_time_paused_is_not_silence(tmp_path: Path) -> None:
    """A driver that is stopped longer than the deadline and then answers has not been silent."""
    program = """
import json, sys, time
sys.stdin.readline()
time.sleep(0.1)
print(json.dumps({"event": "done"}), flush=True)
sys.stdin.read()
"""
    driver = start(tmp_path, program)
    driver.send({"do": "anything"})
    driver.pause()
    resume = threading.Timer(1.5, driver.resume)
    resume.start()
    assert driver.receive(waiting_for="speak", timeout_s=1.0)["event"] == "done"
    resume.join()
    driver.close()


def test_closing_reaches_the_whole_group(tmp_path: Path) -> None:
    """What a driver has started ends with it."""
    program = """
import json, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
print(json.dumps({"event": "ready", "child": child.pid}), flush=True)
sys.stdin.read()
"""
    driver = start(tmp_path, program)
    child = driver.receive(waiting_for="speak", timeout_s=30)["child"]
    driver.close()
    await_gone(child)
