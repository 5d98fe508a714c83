"""The command line of every program besides pytest: bad usage ends with 4, an interruption and an internal error with 5.

All programs follow the one table of exit codes in `verification.vocabulary.verdict`. argparse would end bad usage with 2,
which here means inconclusive. Python would end with 130 and a stack trace after Ctrl-C, and with 1 after any other
exception, which here means a violation.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from verification.vocabulary.verdict import ExitCode


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in one line and ends with exit code 4."""

    def error(self, message: str) -> NoReturn:
        """Print the mistake in the command line and exit."""
        self.exit(int(ExitCode.USAGE), f"{self.prog}: {message}\n")


class _Interruption:
    """The handler of SIGINT and SIGTERM: it raises KeyboardInterrupt, and knows that it did.

    The exception alone can get lost: Python drops one that is raised in a finalizer, and the import system one that is
    raised in the callback of a module's lock (4 of 220 tries). Without this knowledge the command would end as if it
    were complete.
    """

    asked = False

    def __call__(self, number: int, _: object) -> NoReturn:
        self.asked = True
        if number == signal.SIGTERM:
            # `timeout` and tox may send it several times, and must not break off a clean-up.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt


@contextmanager
def interruptions_held() -> Iterator[None]:
    """Deliver SIGINT and SIGTERM only at the end of the block, which has to be short. For the main thread.

    For imports while another thread imports. An interruption in the wrong place leaves a lock of the import system taken,
    and the other thread waits for it for ever: 12 of 220 tries with Python 3.11.
    """
    noted: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _: noted.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for restored, handler in handlers.items():
            signal.signal(restored, handler)
        for number in noted[:1]:
            signal.raise_signal(number)


def end_with(main: Callable[[], int], *, program: str, kept: str) -> NoReturn:
    """Run a command and exit with its exit code; `kept` names the results that an interruption leaves as they are."""
    interruption = _Interruption()
    # A shell starts background programs with SIGINT ignored. SIGTERM would end this program without any clean-up.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interruption)
    code = int(ExitCode.ENVIRONMENT)
    try:
        code = int(main())
    except KeyboardInterrupt:
        interruption.asked = True
    except Exception:  # noqa: BLE001 - it is shown, as by Python
        traceback.print_exc()
    if interruption.asked:
        print(f"{program}: interrupted; {kept}.", file=sys.stderr)  # noqa: T201 - the output of a command
        code = int(ExitCode.ENVIRONMENT)
    sys.exit(code)
