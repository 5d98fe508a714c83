"""`run.log`: everything that the harness did in a run, in order, to find out why a run went wrong.

Each module logs through its own logger (`logging.getLogger(__name__)`): phases, faults, started processes, long waits,
protocol cases, and every line of the terminal. A case or scenario that breaks leaves its traceback here, where the
terminal shows one sentence. Times are UTC. Threads are named, because the judge and the lanes run
at the same time. No program reads this file: verdicts depend on the evidence alone.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

#: The file's name in the run directory.
NAME = "run.log"
#: The packages whose loggers write into it.
PACKAGES = ("suites", "runner", "fixtures", "reports", "chaos", "verification", "wire")


class RunLog:
    """The open log of one run; `close` it when the run ends."""

    def __init__(self, directory: Path) -> None:
        """Open `run.log` in a run directory that exists. Raises OSError."""
        self._handler = logging.FileHandler(directory / NAME, encoding="utf-8")
        lines = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)-7s [%(threadName)s] %(name)s: %(message)s")
        lines.datefmt = "%Y-%m-%dT%H:%M:%S"
        lines.converter = time.gmtime
        self._handler.setFormatter(lines)
        for logger in map(logging.getLogger, PACKAGES):
            logger.addHandler(self._handler)
            logger.setLevel(logging.INFO)
            # pytest would print all of it again below each case that fails.
            logger.propagate = False

    def close(self) -> None:
        """Stop logging and close the file. May be called again."""
        for logger in map(logging.getLogger, PACKAGES):
            logger.removeHandler(self._handler)
            logger.setLevel(logging.NOTSET)
            logger.propagate = True
        self._handler.close()
