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
from typing import TYPE_CHECKING, TextIO

import pytest

# Read by testcontainers when it is first imported. We remove containers by label ourselves; and inside a container
# published ports are reached at the Docker host's address, not at a bridge's.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
os.environ.setdefault("TESTCONTAINERS_CONNECTION_MODE", "docker_host")

from fixtures.clients.registry import CLIENTS
from fixtures.clusters.locks.releases import OLDEST, OLDEST_SCRIPTED
from fixtures.errors import OnceproofError
from runner.config import SUITES, add_options, from_options
from runner.console import Console
from runner.signals import StopRequests
from runner.waivers import acceptances

if TYPE_CHECKING:
    from runner.run_plugin import RunPlugin

pytest_plugins = ["runner.scenarios.fixture"]
PROTOCOL = SUITES / "protocol"
REGRESSIONS = SUITES / "regressions"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of a conformance run."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Set up a conformance run when scenarios are selected, a protocol run when only protocol cases are."""
    asked = _asked(config)
    if not any(_within(path, SUITES) for path in asked):
        return
    if any(_within(path, REGRESSIONS) for path in asked):
        raise pytest.UsageError(
            "suites/regressions is performed by `tox -e track-record -- --bugs KB-05`, not by pytest."
        )
    scripted = all(_within(path, PROTOCOL) for path in asked)
    try:
        oldest, label = (OLDEST_SCRIPTED, PROTOCOL.name) if scripted else (OLDEST, "")
        run = from_options(config, clients=tuple(CLIENTS), oldest=oldest, label=label)
        accepted = acceptances(run.accepted, run.waivers)
    except OnceproofError as error:
        raise pytest.UsageError(str(error)) from None
    # A shell ignores SIGINT for background jobs, and SIGTERM would end the run without healing anything.
    requests = StopRequests()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, requests)
    console = _console(config)
    if scripted:
        from runner.protocol.plugin import ProtocolPlugin

        plugin: RunPlugin = ProtocolPlugin(run, console, requests, accepted)
    else:
        from runner.scenarios.plugin import SESSION, ConformancePlugin
        from runner.scenarios.session import ConformanceSession

        session = config.stash[SESSION] = ConformanceSession(run, console, accepted)
        plugin = ConformancePlugin(session, requests)
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
    """Collect protocol cases only when they are selected, and reproductions of known bugs never."""
    asked_for = any(_within(path, PROTOCOL) for path in _asked(config))
    apart = _within(collection_path, REGRESSIONS) or (_within(collection_path, PROTOCOL) and not asked_for)
    return True if apart else None


def _asked(config: pytest.Config) -> list[Path]:
    return [Path(argument.split("::")[0]).resolve() for argument in config.args]


def _within(path: Path, directory: Path) -> bool:
    return path == directory or directory in path.parents
