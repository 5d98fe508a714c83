"""Composition root: pytest's options become one frozen configuration, and the plugins are named.

`pytest tests` runs the tests of the tool; `pytest suites` is a conformance run. Both load this file, so it imports
heavy modules only when it knows which of the two it is.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TextIO

import pytest

# Read by testcontainers when it is first imported. We remove containers by label ourselves; and inside a container
# published ports are reached at the Docker host's address, not at a bridge's.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
os.environ.setdefault("TESTCONTAINERS_CONNECTION_MODE", "docker_host")

from fixtures.errors import OnceproofError
from runner.config import PIPELINES, PROTOCOL, SUITES, UPGRADES, WATCH, Only, Profile
from runner.console import Console
from runner.options import add_options, from_options
from runner.signals import StopRequests
from runner.waivers import acceptances

REGRESSIONS = SUITES / "regressions"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of a conformance run."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Set up a conformance run when experiments are selected; of protocol cases only when no others are."""
    asked = _asked(config)
    if not any(_within(path, SUITES) for path in asked):
        return
    if any(_within(path, REGRESSIONS) for path in asked):
        raise pytest.UsageError(
            "suites/regressions is performed by `tox -e track-record -- --bugs KB-05`, not by pytest."
        )
    kinds = {PROTOCOL: Only.PROTOCOL, UPGRADES: Only.UPGRADE, PIPELINES: Only.PIPELINES, WATCH: Only.WATCH}
    kind = [only for suite, only in kinds.items() if all(_within(path, suite) for path in asked)]
    only = kind[0] if kind else (Only(config.option.only) if config.option.only else None)
    try:
        run = from_options(config, only=only)
        accepted = acceptances(run.accepted, run.waivers)
    except OnceproofError as error:
        raise pytest.UsageError(str(error)) from None
    # A shell ignores SIGINT for background jobs, and SIGTERM would end the run without healing anything.
    requests = StopRequests()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, requests)
    from runner.protocol.experiments import ProtocolExperiments
    from runner.run_plugin import RunPlugin
    from runner.run_record_writer import RunRecordWriter
    from runner.scenarios.experiments import ScenarioExperiments

    record = RunRecordWriter(run, _console(config), accepted)
    plugin = RunPlugin(
        record, requests, scenarios=ScenarioExperiments(run, record), cases=ProtocolExperiments(run, record)
    )
    config.pluginmanager.register(plugin, "onceproof")


def _console(config: pytest.Config) -> Console:
    """The console of a run. It writes to a copy of stdout, because pytest redirects file descriptors while a test runs.

    pytest's own lines must not wait in a buffer meanwhile, or a log would show the configuration last.
    """
    if isinstance(sys.__stdout__, io.TextIOWrapper):
        sys.__stdout__.reconfigure(line_buffering=True)
    out = sys.stdout
    if sys.__stdout__:
        out = os.fdopen(os.dup(sys.__stdout__.fileno()), "w", encoding="utf-8")
        config.add_cleanup(partial(_close, out))
    return Console(out=out, live=out.isatty(), width=shutil.get_terminal_size().columns)


def _close(out: TextIO) -> None:
    # The reader of a pipe may have gone; that must not change the exit code of the run.
    with contextlib.suppress(OSError):
        out.close()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect reproductions of known bugs never, only one kind of experiments with `--only`, and pipelines each night."""
    only = config.option.only
    scripted = _within(collection_path, PROTOCOL)
    apart = (
        _within(collection_path, REGRESSIONS)
        or any(
            _within(collection_path, suite) and not any(_within(path, suite) for path in _asked(config))
            for suite in (UPGRADES, WATCH, *(() if config.option.profile == Profile.NIGHTLY else (PIPELINES,)))
        )
        or (only == Only.SCENARIOS and scripted)
        or (only == Only.PROTOCOL and _within(collection_path, SUITES) and collection_path.is_file() and not scripted)
    )
    return True if apart else None


def _asked(config: pytest.Config) -> list[Path]:
    return [Path(argument.split("::")[0]).resolve() for argument in config.args]


def _within(path: Path, directory: Path) -> bool:
    return path == directory or directory in path.parents
