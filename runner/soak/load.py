"""The loads of a soak: programs that never wait next to a run, or a single processor for all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

#: A load by its name: the number of hogs, and whether everything shares one processor.
LOADS: dict[str, tuple[int, bool]] = {
    "quiet": (0, False),
    "2-hogs": (2, False),
    "8-hogs": (8, False),
    "one-core": (0, True),
    # With the run's own processes this keeps the load average above 20.
    "24-hogs": (24, False),
}
#: A hog whose parent has died is adopted by another process, and ends.
_HOG = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(1_000_000): pass"


@contextmanager
def under(load: str) -> Iterator[None]:
    """Keep up a load of that name; what is started meanwhile shares it. The hogs end with it."""
    hogs, one_core = LOADS[load]
    before = os.sched_getaffinity(0)
    with ExitStack() as ending:
        for _ in range(hogs):
            hog = subprocess.Popen([sys.executable, "-c", _HOG, str(os.getpid())], start_new_session=True)
            ending.enter_context(hog)
            ending.callback(hog.kill)
        if one_core:
            ending.callback(os.sched_setaffinity, 0, before)
            os.sched_setaffinity(0, {min(before)})
        yield
