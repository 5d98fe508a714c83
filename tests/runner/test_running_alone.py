"""A case that is sensitive to time runs while no lane of the run performs anything else, and after all others."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.config import PROTOCOL, SUITES
from runner.lanes import Lanes, Performer, Queue
from runner.protocol.case_runner import CaseResult, ProtocolCase
from runner.protocol.experiments import ProtocolExperiments
from runner.protocol.toolkit.case import THREE, Needs
from runner.run_plugin import RunPlugin
from tests.support.protocol_testbed import plugin_of

WITHIN_S = 20.0
#: Long enough for other lanes to begin something, if they may.
TAKES_S = 0.05


@dataclass
class Watch:
    """What is performed now in all lanes, and what each task saw next to it while it ran."""

    running: set[str] = field(default_factory=set)
    others_of: dict[str, set[str]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    changing: threading.Lock = field(default_factory=threading.Lock)
    met: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))

    def enter(self, key: str) -> None:
        """A task begins."""
        with self.changing:
            self.order.append(key)
            self.running.add(key)
            for each in self.running:
                self.others_of.setdefault(each, set()).update(self.running - {each})

    def leave(self, key: str) -> None:
        """A task ends."""
        with self.changing:
            self.running.remove(key)


@dataclass
class Watched(Performer[ProtocolCase, CaseResult]):
    """Performs tasks by taking some time; those whose key contains `meets` wait for each other."""

    watch: Watch

    def perform_together(self, tasks: Sequence[ProtocolCase]) -> list[CaseResult]:
        """Take time."""
        (task,) = tasks
        self.watch.enter(task.key)
        if "meets" in task.key:
            self.watch.met.wait(WITHIN_S)
        time.sleep(TAKES_S)
        self.watch.leave(task.key)
        return [CaseResult(seconds=TAKES_S)]

    def interrupt(self) -> None:
        """Nothing waits for long."""

    def discard(self, task: ProtocolCase) -> None:
        """There are no files."""

    def close(self) -> None:
        """There is no cluster."""


class Item:
    """A collected test, as the plugin asks for it."""

    def __init__(self, path: Path, key: str, *, alone: bool = False, needs: Needs | None = None) -> None:
        self.path, self.key, self.is_alone, self.needs = path, key, alone, needs or Needs()

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        """The only marker is `alone`."""
        return pytest.mark.alone.mark if name == "alone" and self.is_alone else None

    @property
    def case(self) -> ProtocolCase:
        """The case that the lanes get."""
        return ProtocolCase(
            key=self.key,
            claim=self.key,
            requirements=(),
            transaction_version=None,
            needs=self.needs,
            play=lambda _: None,
            replay="",
        )


def case(key: str, **more: Any) -> Item:
    """A protocol case."""
    return Item(PROTOCOL / "test_it.py", key, **more)


def scenarios(watch: Watch) -> Any:
    """Two lanes of scenarios, none of which runs alone."""

    def begin(items: Sequence[Item], _: Any, ended: Callable[[Item], None]) -> None:
        lanes = Lanes([Queue(deque([item.case] for item in items))], lambda _: Watched(watch), lanes=2, helped_from=1)
        for item in items:
            lanes.outcomes[item.key].add_done_callback(lambda _, item=item: ended(item))
        lanes.start()

    return SimpleNamespace(alone=lambda _: False, begin=begin, end_early=lambda: False)


@pytest.fixture
def watch() -> Watch:
    """What the lanes of a run do."""
    return Watch()


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: Watch) -> RunPlugin:
    """The plugin of a run whose lanes are real and whose clusters are not."""
    monkeypatch.setattr(ProtocolExperiments, "_case", lambda _, item: item.case)
    monkeypatch.setattr(ProtocolExperiments, "_case_runner", lambda *_: Watched(watch))
    plugin = plugin_of(tmp_path)
    monkeypatch.setattr(plugin.record, "environment", SimpleNamespace())
    monkeypatch.setattr(plugin, "_scenarios", scenarios(watch))
    monkeypatch.setattr(plugin, "_report", lambda item: watch.order.append(f"verdict of {item.key}"))
    return plugin


def test_nothing_runs_next_to_a_case_that_runs_alone(plugin: RunPlugin, watch: Watch) -> None:
    """Others run side by side; those that run alone follow one after the other, when every other verdict is known."""
    scenario = partial(Item, SUITES / "smoke" / "test_it.py")
    items = [
        scenario("scenario that meets"),
        *(scenario(f"scenario {number}") for number in range(4)),
        case("alone 1", alone=True),
        case("case that meets"),
        case("alone 2", alone=True, needs=THREE),
        *(case(f"case {number}", needs=THREE if number % 2 else None) for number in range(6)),
        case("alone 3", alone=True),
    ]
    plugin._perform(items)  # type: ignore[arg-type]
    alone = {item.key for item in items if item.is_alone}
    assert {key for key, others in watch.others_of.items() if not others} >= alone
    assert "case that meets" in watch.others_of["scenario that meets"]
    assert len(watch.others_of) == len(items)
    first = min(watch.order.index(key) for key in alone)
    others = {item.key for item in items} - alone
    assert {*others, *(f"verdict of {key}" for key in others)} == set(watch.order[:first])
    plugin._cases.close(interrupted=False)


def test_they_are_last_in_the_report(plugin: RunPlugin) -> None:
    """The order of the report is that in which cases begin."""
    items = [case("a", alone=True), case("b"), case("c", alone=True, needs=THREE), case("d", needs=THREE)]
    assert [each.key for each in plugin._cases.chosen(items)] == ["d", "b", "c", "a"]  # type: ignore[arg-type]
