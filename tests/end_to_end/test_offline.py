"""Commands with the network cut, in a network namespace where nothing answers, not even a name server.

A whole run with the network cut is in `test_integration`: it is the run that the tests there share.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.clusters.locks.releases import default_release
from tests.support.cut_off import CUT, can_cut
from tests.support.paths import ROOT

GOLDEN = ROOT / "tests" / "reports" / "golden" / "scenarios-4.3.1" / "run"
#: The first start fetches missing files, and builds Toxiproxy where the machine has none.
WITHIN_S = 900.0
needs_namespaces = pytest.mark.skipif(not can_cut(), reason="no network namespaces here: the network was not cut")


def run(*command: str, cut: bool, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of this checkout, with the network or without."""
    return subprocess.run(
        [*(CUT if cut else ()), sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, **({"PIP_NO_INDEX": "1"} if cut else {}), **variables},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


@needs_namespaces
def test_a_filled_cache_needs_no_network(tmp_path: Path) -> None:
    """A second `tox -e fetch` needs no network; with an empty cache one sentence names a missing file."""
    command = ("fixtures.fetch", "--kafka", default_release().version)
    connected = run(*command, cut=False)
    assert connected.returncode == 0, connected.stdout + connected.stderr
    alone = run(*command, cut=True)
    assert alone.returncode == 0, alone.stdout + alone.stderr
    said = (alone.stdout + alone.stderr).splitlines()
    assert "nothing" in next(line for line in said if line.startswith("To download"))
    empty = run(*command, cut=True, XDG_CACHE_HOME=str(tmp_path))
    assert empty.returncode == 5
    assert "could not be fetched" in empty.stdout + empty.stderr


#: Attempts of a program: a connection, a datagram or a name outside of the machine; or only its own machine.
TRIES = {
    "socket.create_connection(('192.0.2.1', 80))": 1,
    "socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 53))": 1,
    "socket.create_connection(socket.create_server(('127.1.0.3', 0)).getsockname())": 0,
}


@needs_namespaces
@pytest.mark.parametrize("tried", TRIES)
def test_attempts_to_leave_the_machine_are_counted(tried: str, tmp_path: Path) -> None:
    """A failed attempt without any message counts too; a connection within this machine does not."""
    program = f"import contextlib, socket\nwith contextlib.suppress(OSError): {tried}"
    done = run("tests.support.cut_off", str(tmp_path / "astray"), sys.executable, "-c", program, cut=True)
    assert done.returncode == 0, done.stderr
    assert int((tmp_path / "astray").read_text(encoding="ascii")) == TRIES[tried]


@needs_namespaces
def test_a_report_is_rendered_without_a_network(tmp_path: Path) -> None:
    """From files alone, with the exit code of its decision."""
    run_directory = tmp_path / "run"
    shutil.copytree(GOLDEN, run_directory)
    done = run("reports", str(run_directory), cut=True)
    assert done.returncode == 1, done.stderr
    assert "NO-GO" in done.stdout
    assert (run_directory / "report.html").stat().st_size > 100_000
