"""A narrowed run names the arguments that narrowed it; a listing ends with a code of the one table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.clusters.locks.releases import default_release
from runner.checkout import tool
from runner.config import SUITES, Profile, Runtime, unreported
from runner.options import lanes_of
from runner.run_plugin import RunPlugin
from runner.scenarios.planning import in_profile
from runner.selection import code_of_listing, narrowed_by
from runner.signals import StopRequests
from tests.support.paths import ROOT


def asked(*arguments: str, keyword: str = "", **options: Any) -> Any:
    """Pytest's configuration of a command line."""
    chosen = {"keyword": keyword, "markexpr": "", "ignore": None, "ignore_glob": None, **options}
    return SimpleNamespace(args=[str(ROOT / each) for each in arguments], option=SimpleNamespace(**chosen))


@pytest.mark.parametrize(
    ("config", "deselected", "said"),
    [
        (asked("suites/protocol"), 0, ""),
        (asked("suites/protocol", keyword="gap"), 90, "gap"),
        (asked("suites/protocol"), 3, "3 deselected"),
        (asked("suites/protocol", markexpr="nightly"), 3, "-m nightly"),
        (asked("suites/protocol", keyword="gap", markexpr="smoke"), 3, "gap, -m smoke"),
        (asked("suites/protocol/test_idempotence.py"), 0, "suites/protocol/test_idempotence.py"),
        (
            asked("suites/protocol/test_fencing.py::test_a", keyword="tv1"),
            1,
            "suites/protocol/test_fencing.py::test_a, tv1",
        ),
        (asked("suites/protocol", ignore=["suites/protocol/a.py"]), 0, "--ignore suites/protocol/a.py"),
        (asked("suites/protocol", ignore_glob=["*fenc*"]), 0, "--ignore-glob *fenc*"),
    ],
)
def test_the_arguments_that_narrow_a_run_are_named(config: Any, deselected: int, said: str) -> None:
    """Only the whole directory without any selection is a whole protocol run."""
    assert narrowed_by(config, (SUITES / "protocol",), deselected) == said
    stopped = narrowed_by(config, (SUITES / "protocol",), deselected, stop_after="back")
    assert stopped == (f"{said}, --stop-after back" if said else "--stop-after back")


class ItemStandIn(SimpleNamespace):
    """An item of pytest, which can be a member of a set."""

    def __init__(self, path: Path, marks: tuple[str, ...]) -> None:
        super().__init__(path=path, iter_markers=lambda: [SimpleNamespace(name=each) for each in marks])

    __hash__ = object.__hash__  # type: ignore[assignment]


def item(*marks: str) -> Any:
    """A collected scenario."""
    path = SUITES / "smoke" / "test_it.py"
    return ItemStandIn(path, marks)


@pytest.mark.parametrize(
    ("arguments", "deselected", "said"),
    [
        (("suites",), 0, ""),
        (("suites",), 1, "1 deselected"),
        (("suites/smoke",), 0, "suites/smoke"),
    ],
    ids=["whole", "-m or --deselect", "a part of the suite"],
)
def test_a_run_knows_what_was_left_out_of_its_profile(arguments: tuple[str, ...], deselected: int, said: str) -> None:
    """The profile does not narrow a run; an option or a path does, also without `-k`."""
    run = replace(unreported(default_release(), Path("run"), runtime=Runtime.LOCAL), profile=Profile.SMOKE)
    record: Any = SimpleNamespace(narrowed_by="?", config=run, plan=list)

    def chosen(items: list[Any]) -> list[Any]:
        return [each for each in items if in_profile(run, {mark.name for mark in each.iter_markers()})]

    scenarios: Any = SimpleNamespace(chosen=chosen, planned=lambda _: None, check=lambda _: None)
    plugin = RunPlugin(record, StopRequests(), scenarios=scenarios, cases=SimpleNamespace(chosen=list))  # type: ignore[arg-type]
    config = asked(*arguments)
    config.hook = SimpleNamespace(pytest_deselected=plugin.pytest_deselected)
    items = [item("smoke"), item("smoke"), item(), item("nightly")]
    plugin.pytest_collection_modifyitems(items, config)
    plugin.pytest_deselected(items[:deselected])
    plugin.pytest_collection_finish(SimpleNamespace(config=config, items=items))  # type: ignore[arg-type]
    assert len(items) == 2
    assert record.narrowed_by == said


@pytest.mark.parametrize(
    ("exitstatus", "code"),
    [
        (pytest.ExitCode.OK, 0),
        (pytest.ExitCode.NO_TESTS_COLLECTED, 2),
        (pytest.ExitCode.USAGE_ERROR, 4),
        (pytest.ExitCode.TESTS_FAILED, 5),
        (pytest.ExitCode.INTERRUPTED, 5),
        (pytest.ExitCode.INTERNAL_ERROR, 5),
    ],
)
def test_a_listing_ends_by_the_one_table(exitstatus: pytest.ExitCode, code: int) -> None:
    """Pytest's own code 1 would mean a violation, and its 2 inconclusive; only an empty listing is inconclusive."""
    assert code_of_listing(exitstatus) == code


def test_the_scenarios_are_in_suites() -> None:
    """A wrong constant would make every run partial."""
    assert ROOT / "suites" == SUITES


@pytest.mark.parametrize(
    ("cores", "memory_gb", "lanes"), [(1, 8, 1), (2, 24, 2), (4, 15, 3), (8, 8, 2), (64, 512, 16), (4, 1, 1)]
)
def test_the_lanes_of_a_machine(cores: int, memory_gb: int, lanes: int) -> None:
    """Every lane has a core and 4 GB of memory; there is always one."""
    assert lanes_of(cores, memory_gb * 10**9) == lanes


def test_the_command_of_a_run_has_everything_that_its_decision_depends_on() -> None:
    """The selection, the rule, the acceptances and the waivers, so that a copied line repeats the run."""
    config = unreported(default_release(), Path("run"), runtime=Runtime.LOCAL)
    plain = config.command
    assert plain.endswith("--runtime local --client confluent --profile quick --seed 1")
    chosen = replace(config, keyword="fencing", strict=True, accepted=("KB-16",), waivers=Path("accepted.toml"))
    assert chosen.command == f'{plain} --strict --accept KB-16 --waivers accepted.toml -k "fencing"'


def test_a_machine_without_git_names_the_version_and_no_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run needs no git."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert re.fullmatch(r"Onceproof [0-9.]+, commit unknown", tool())
