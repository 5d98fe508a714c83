"""A whole run of the suite in a process of its own, for commands that make several and read what each of them left.

The run leads a session of its own, so that Ctrl-C at a terminal reaches the command alone. It passes the request on, each
time that it is asked, and waits: the run still has faults to heal, a cluster to end and a report to write. Whoever kills
it instead, as `subprocess.run` does after a quarter of a second, loses all that and leaves containers behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from fixtures.errors import EnvironmentProblemError
from runner.config import ROOT

#: How long a run may take to end once it was asked to: as long as `tox.ini` gives it.
ENDS_WITHIN_S = 120.0


class OverdueRunError(EnvironmentProblemError):
    """A run did not end in time; it was asked to, and is gone."""


def run_pytest(arguments: Sequence[str], *, within_s: float) -> int:
    """Run pytest with these arguments to its end and return its exit code.

    Raises OverdueRunError when that takes longer than `within_s`, and KeyboardInterrupt when it is asked to end. The run
    is gone then.
    """
    process = subprocess.Popen([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, start_new_session=True)
    try:
        return process.wait(within_s)
    except subprocess.TimeoutExpired:
        _end(process)
        raise OverdueRunError(f"The run did not end within {within_s:.0f} s.") from None
    except KeyboardInterrupt:
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a run to end, once more for each time that this process is asked meanwhile, and kill it when it does not."""
    until_s = time.monotonic() + ENDS_WITHIN_S
    process.send_signal(signal.SIGINT)
    while process.poll() is None and (left_s := until_s - time.monotonic()) > 0:
        try:
            process.wait(left_s)
        except subprocess.TimeoutExpired:
            break
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
