"""`tox -e bisect`: finds the first build, of a list of builds of your own or releases, on which a case or scenario fails.

The bad end is run until its rate of failure is known. Every other build is run until it fails once, or until it passed so
often that a bad one would have failed, with the stated confidence. The ledger is written after each run, so a bisection that
was stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fixtures.clients.registry import CLIENTS
from fixtures.errors import OnceproofError, UsageError
from runner import checkout
from runner.bisect.bisection import Bisection, perform_with
from runner.bisect.candidates import candidates
from runner.bisect.experiment import Repeated, case, scenario
from runner.bisect.ledger import Ledger
from runner.config import DEFAULT_CLIENT, OUT
from verification.command_line import Parser, end_with
from verification.vocabulary.verdict import ExitCode

PROGRAM = "python -m runner.bisect"


def _parser() -> Parser:
    parser = Parser(prog=PROGRAM, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--good", required=True, metavar="BUILD", help="a release or a directory of jars that passes")
    parser.add_argument("--bad", required=True, metavar="BUILD", help="a release or a directory of jars that fails")
    parser.add_argument(
        "--builds",
        nargs="+",
        default=[],
        metavar="BUILD",
        help="those in between, in their order (default: the supported releases between two releases)",
    )
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--case", metavar="ID", help="the protocol case to repeat")
    kind.add_argument(
        "--scenario",
        metavar="ID",
        help="the scenario to repeat, such as coordinator/coordinator-crash-while-committing",
    )
    parser.add_argument("--seed", type=int, help="the seed of the scenario (default: that in its id)")
    parser.add_argument(
        "--client", choices=list(CLIENTS), help=f"its client (default: that in its id, or {DEFAULT_CLIENT})"
    )
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="P",
        help="the likelihood with which a bad build is not taken for a good one (default 0.95)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory of ledger and runs (default: reports/out/…)")
    parser.add_argument("--rerun", action="store_true", help="make all runs again, also those that are in the ledger")
    return parser


def _repeated(options: argparse.Namespace) -> Repeated:
    """The case or scenario. Raises UsageError."""
    if options.case:
        if options.seed is not None:
            raise UsageError("--seed is for a scenario: nothing in a protocol case is random.")
        return case(options.case)
    return scenario(options.scenario, seed=options.seed, client=options.client)


def _say(text: str) -> None:
    print(text, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Find the first bad build: exit code 0 when it is found, 2 when the ends or a build could not be decided."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not 0 < options.confidence < 1:
        parser.error(f"--confidence {options.confidence:g} is not between 0 and 1")
    try:
        repeated = _repeated(options)
        builds = candidates(options.good, options.bad, options.builds, scripted=repeated.scripted)
        directory = (options.out or OUT / f"bisect-{repeated.name}").resolve()
        ledger = Ledger(directory, repeated, builds, confidence=options.confidence, commit=checkout.commit())
        if options.rerun:
            ledger.forget()
        _say(f"{repeated.identity} on {', '.join(each.name for each in builds)}")
        bisection = Bisection(
            builds=builds,
            ledger=ledger,
            confidence=options.confidence,
            perform=perform_with(ledger, repeated),
            say=_say,
        )
        return int(bisection.run())
    except OnceproofError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return int(error.exit_code)
    except OSError as error:
        print(f"{PROGRAM}: the ledger cannot be written: {error}", file=sys.stderr)
        return int(ExitCode.ENVIRONMENT)


if __name__ == "__main__":
    end_with(main, program=PROGRAM, kept="the runs so far are in the ledger")
