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
from collections.abc import Callable
from typing import NoReturn

from verification.vocabulary.verdict import ExitCode


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in one line and ends with exit code 4."""

    def error(self, message: str) -> NoReturn:
        """Print the mistake in the command line and exit."""
        self.exit(int(ExitCode.USAGE), f"{self.prog}: {message}\n")


def _interrupt_once(*_: object) -> NoReturn:
    """Treat SIGTERM as Ctrl-C, once: `timeout` and tox may send it several times, and must not break off a clean-up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def end_with(main: Callable[[], int], *, program: str, kept: str) -> NoReturn:
    """Run a command and exit with its exit code; `kept` names the results that an interruption leaves as they are."""
    # A shell starts background programs with SIGINT ignored. SIGTERM would end this program without any clean-up.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt_once)
    try:
        code = int(main())
    except KeyboardInterrupt:
        print(f"{program}: interrupted; {kept}.", file=sys.stderr)  # noqa: T201 - the output of a command
        code = int(ExitCode.ENVIRONMENT)
    except Exception:  # noqa: BLE001 - it is shown, as by Python
        traceback.print_exc()
        code = int(ExitCode.ENVIRONMENT)
    sys.exit(code)
