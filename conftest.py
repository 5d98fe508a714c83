"""Composition root: pytest's options become one frozen configuration, and the plugins are named.

`pytest tests` runs the tests of the tool; `pytest suites` is a conformance run. Both load this file, so it imports
nothing heavy before it knows which of the two was asked for.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

# Read by testcontainers when it is first imported: we sweep containers by label ourselves, and inside a container
# published ports are reached at the Docker host's address, not at a bridge's.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
os.environ.setdefault("TESTCONTAINERS_CONNECTION_MODE", "docker_host")

from fixtures.clients.registry import CLIENTS
from fixtures.errors import OnceproofError
from suites.config import add_options, from_options
from suites.console import Console
from suites.waivers import acceptances

pytest_plugins = ["fixtures.spark", "suites.fixtures"]
ROOT = Path(__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of a conformance run."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Set up a conformance run when scenarios were asked for."""
    if not _conformance(config):
        return
    from suites.plugin import SESSION, ConformancePlugin
    from suites.session import ConformanceSession

    try:
        run = from_options(config, clients=tuple(CLIENTS))
        accepted = acceptances(run.accepted, run.waivers)
    except OnceproofError as error:
        raise pytest.UsageError(str(error)) from None
    # A shell that starts us in the background lets SIGINT be ignored, and SIGTERM would end us without healing anything.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    # pytest redirects file descriptors while a test runs; the console writes to a copy made before that.
    out = os.fdopen(os.dup(sys.__stdout__.fileno()), "w", encoding="utf-8") if sys.__stdout__ else sys.stdout
    console = Console(out=out, live=out.isatty(), width=shutil.get_terminal_size().columns)
    session = ConformanceSession(run, console, accepted)
    session.listing = config.option.list_scenarios
    config.stash[SESSION] = session
    config.pluginmanager.register(ConformancePlugin(session), "onceproof")


def _conformance(config: pytest.Config) -> bool:
    asked = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    return any(path == ROOT / "suites" or ROOT / "suites" in path.parents for path in asked)
