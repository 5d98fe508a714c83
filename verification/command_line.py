"""What the commands beside pytest have in common: bad usage ends with 4, an interruption and an error of ours with 5.

All follow the one table of exit codes in `verification.vocabulary.verdict`. argparse would end bad usage with 2, which
here means inconclusive, and Python shows a stack trace for Ctrl-C and ends with 130, and after any other exception with
1, which here says that a violation was found.
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
    """A command line whose mistakes are one line and exit code 4."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line and leave."""
        self.exit(int(ExitCode.USAGE), f"{self.prog}: {message}\n")


def end_with(main: Callable[[], int], *, program: str, kept: str) -> NoReturn:
    """Run a command and leave with its exit code; `kept` says what an interruption leaves as it is."""
    # A shell that starts us in the background lets SIGINT be ignored, and SIGTERM would end us without ending anything.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        code = int(main())
    except KeyboardInterrupt:
        print(f"{program}: interrupted; {kept}.", file=sys.stderr)  # noqa: T201 - the voice of a command
        code = int(ExitCode.ENVIRONMENT)
    except Exception:  # noqa: BLE001 - it is shown, as Python would
        traceback.print_exc()
        code = int(ExitCode.ENVIRONMENT)
    sys.exit(code)
