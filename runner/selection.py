"""What of a room a command line selects, and what merely listing it ends with."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.config import ROOT
from verification.vocabulary.verdict import ExitCode

#: pytest's own codes for a listing. A room that cannot be collected is a mistake of ours, nothing listed is nothing run.
_LISTED = {
    pytest.ExitCode.OK: ExitCode.CONFORMANT,
    pytest.ExitCode.NO_TESTS_COLLECTED: ExitCode.INCONCLUSIVE,
    pytest.ExitCode.USAGE_ERROR: ExitCode.USAGE,
}


def narrowed_by(config: pytest.Config, room: Path, deselected: int, noun: str) -> str:
    """What left something out of a room of this directory; empty when everything in it is run.

    `deselected` is how many of its `noun` an option deselected, for instance `-k`, `-m` or `--deselect`.
    """
    options = config.option
    whole = any(Path(each.partition("::")[0]).resolve() == room and "::" not in each for each in config.args)
    told = [] if whole else [_told(each) for each in config.args]
    told += [f"--ignore {_told(each)}" for each in options.ignore or ()]
    told += [f"--ignore-glob {each}" for each in options.ignore_glob or ()]
    if options.keyword or deselected:
        told.append(options.keyword or f"{deselected} {noun} deselected")
    return ", ".join(told)


def only_lists(config: pytest.Config) -> bool:
    """Whether nothing is started: `--list`, or pytest's `--collect-only`."""
    return bool(config.option.list_scenarios or config.option.collectonly)


def code_of_listing(exitstatus: int) -> ExitCode:
    """The exit code of a command that starts nothing."""
    return _LISTED.get(pytest.ExitCode(exitstatus), ExitCode.ENVIRONMENT)


def _told(argument: str) -> str:
    """An argument as it can be repeated from the root of the checkout."""
    place, colons, name = argument.partition("::")
    path = Path(place).resolve()
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}{colons}{name}"
