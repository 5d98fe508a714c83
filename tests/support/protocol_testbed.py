"""Case runners and their plugin without a cluster: the test supplies plans, clusters and cases."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from fixtures.clusters.locks.releases import parse_release
from runner.config import Only, Profile, RunConfig, Runtime
from runner.console import Console
from runner.protocol.case_runner import CaseRunner, ProtocolCase
from runner.protocol.experiments import ProtocolExperiments, planned_of
from runner.protocol.open_clients import OpenClients
from runner.protocol.toolkit.case import Needs
from runner.run_plugin import RunPlugin
from runner.run_record_writer import RunRecordWriter
from runner.scenarios.experiments import ScenarioExperiments
from runner.settings.own_settings import OwnSettings
from runner.signals import StopRequests
from verification.requirements.catalogue import load
from verification.scripts.script import Script


def plugin_of(directory: Path, *planned: Script, keyword: str = "") -> RunPlugin:
    """A plugin that has planned these cases and performed none."""
    config = RunConfig(
        release=parse_release("4.3.1"),
        runtime=Runtime.LOCAL,
        client="confluent",
        profile=Profile.QUICK,
        seed=1,
        directory=directory,
        started="20261121T090000Z",
        keep=False,
        accepted=(),
        waivers=None,
        retain=10,
        keyword=keyword,
        options=(),
        only=Only.PROTOCOL,
    )
    record = RunRecordWriter(config, Console(out=io.StringIO(), live=False), ())
    scenarios, cases = ScenarioExperiments(config, record), ProtocolExperiments(config, record)
    plugin = RunPlugin(record, StopRequests(), scenarios=scenarios, cases=cases)
    plugin.record.machine = {"processors": "2"}  # the real machine is no part of these tests
    plugin.record.narrowed_by = keyword
    plugin.record.plan(planned_of(case_of(each)) for each in planned)
    return plugin


def case_of(script: Script) -> ProtocolCase:
    """The planned case that such a script would be of; performing it does nothing."""
    return ProtocolCase(
        key=script.case,
        claim=script.claim,
        requirements=script.requirements,
        transaction_version=None,
        needs=Needs(),
        play=lambda _: None,
        replay=script.replay,
    )


def bare_runner(directory: Path, *, release: str = "4.3.1", runtime: str = "local") -> CaseRunner:
    """A case runner without clusters, for decisions before one starts."""
    runner = object.__new__(CaseRunner)
    runner._prefix, runner._own_settings = "", OwnSettings()
    runner.directory, runner.release, runner._runtime, runner._catalogue = directory, release, runtime, load()
    runner._clients = OpenClients()
    runner._java = SimpleNamespace()  # type: ignore[assignment]
    return runner


def served_runner(directory: Path, monkeypatch: pytest.MonkeyPatch) -> CaseRunner:
    """A case runner with a cluster that answers nothing."""
    runner, client = bare_runner(directory), MagicMock()
    client.__enter__.return_value = client
    client.connection.return_value = SimpleNamespace(features={})
    cluster = SimpleNamespace(witness_bootstrap="", directory=directory)
    runner._pool = SimpleNamespace(lease=lambda _: cluster)  # type: ignore[assignment]
    runner._definitions = runner._defined = SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setattr("runner.protocol.open_clients.Client", lambda *_, **__: client)
    return runner
