"""Runs pytest in a process of its own, for commands that make several runs and read their results.

The run is in a session of its own, so Ctrl-C at a terminal reaches the command alone. The command passes each Ctrl-C on
and waits: the run still has to heal faults, end its cluster and write the report. Killing it, as `subprocess.run` does
after a quarter of a second, would lose all that and leave containers behind.
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

#: The time that a run has to end after a signal: as long as in `tox.ini`.
ENDS_WITHIN_S = 120.0


class OverdueRunError(EnvironmentProblemError):
    """A run did not end in time; it was then ended or killed."""


def run_pytest(arguments: Sequence[str], *, within_s: float) -> int:
    """Run pytest with these arguments to its end and return its exit code.

    Raises OverdueRunError when that takes longer than `within_s`, and KeyboardInterrupt after Ctrl-C. In both cases the
    run has ended.
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
    """Send SIGINT to a run, and once more for each further Ctrl-C; kill the run when it does not end in time."""
    until_s = time.monotonic() + ENDS_WITHIN_S
    process.send_signal(signal.SIGINT)
    while process.poll() is None and (left_s := until_s - time.monotonic()) > 0:
        try:
            process.wait(left_s)  # answer dropped: the run is ended because it took too long
        except subprocess.TimeoutExpired:
            break
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()  # answer dropped: it was killed
