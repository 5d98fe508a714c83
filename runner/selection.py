"""Says whether a command line selects a whole suite, and how a command ends that only lists it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.config import ROOT
from verification.vocabulary.verdict import ExitCode

#: pytest's own codes for a listing. An error while collecting is a mistake of ours; an empty list means nothing to run.
_LISTED = {
    pytest.ExitCode.OK: ExitCode.CONFORMANT,
    pytest.ExitCode.NO_TESTS_COLLECTED: ExitCode.INCONCLUSIVE,
    pytest.ExitCode.USAGE_ERROR: ExitCode.USAGE,
}


def narrowed_by(config: pytest.Config, whole: Sequence[Path], deselected: int, *, stop_after: str = "") -> str:
    """The arguments that leave out a part of the run; empty when all of it is run.

    `whole` are the directories that select all of it. `deselected` is the number of experiments that an option
    deselected, for instance `-k`, `-m` or `--deselect`. An upgrade may end with the stage `stop_after`.
    """
    options = config.option
    is_whole = any(Path(each.partition("::")[0]).resolve() in whole and "::" not in each for each in config.args)
    found = [] if is_whole else [_from_root(each) for each in config.args]
    found += [f"--ignore {_from_root(each)}" for each in options.ignore or ()]
    found += [f"--ignore-glob {each}" for each in options.ignore_glob or ()]
    selected = [each for each in (options.keyword, options.markexpr and f"-m {options.markexpr}") if each]
    if selected or deselected:
        found += selected or [f"{deselected} deselected"]
    found += [f"--stop-after {stop_after}"] if stop_after else []
    return ", ".join(found)


def only_lists(config: pytest.Config) -> bool:
    """Whether nothing is started: `--list`, `--plan`, `--dry-run`, or pytest's `--collect-only`."""
    options = config.option
    return bool(options.list_scenarios or options.outline or options.collectonly or options.dry_run)


def code_of_listing(exitstatus: int) -> ExitCode:
    """The exit code of a command that starts nothing."""
    return _LISTED.get(pytest.ExitCode(exitstatus), ExitCode.ENVIRONMENT)


def _from_root(argument: str) -> str:
    """An argument as it can be repeated from the root of the checkout."""
    place, colons, name = argument.partition("::")
    path = Path(place).resolve()
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}{colons}{name}"
