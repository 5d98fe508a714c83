"""The scenarios that a run has, and their order."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.clients import SyncPoint
from chaos.faults.clients import KillClient
from chaos.schedule import Step
from fixtures.clients.abilities import Abilities
from fixtures.clients.driver_program.main_loop import ROLES, SYNC_POINTS
from fixtures.clients.registry import CLIENTS, ClientKind
from fixtures.clusters.locks.releases import Release
from fixtures.workloads import CopyWorkload
from runner.config import Only, Profile, RunConfig, Runtime, unreported
from runner.console import Console
from runner.run_record_writer import RunRecordWriter
from runner.scenarios import experiments
from runner.scenarios.experiments import ScenarioExperiments
from runner.scenarios.planning import (
    CONTROLS,
    FAMILIES,
    LOCAL_ONLY,
    at_points_of_client,
    in_order,
    in_profile,
    inapplicable_to,
    variants,
)
from runner.scenarios.scenario import THREE_BROKERS, Scenario
from runner.upgrades.options import Controllers, UpgradeOptions
from runner.upgrades.path import UpgradePath
from suites.idempotence.test_late_duplicate import test_late_duplicate as late_duplicate
from verification.vocabulary.verdict import Verdict


def test_a_family_without_a_place_runs_before_the_controls() -> None:
    """Controls say nothing about the subject, so they come last whatever families are added."""
    places = [CONTROLS, "brand-new", *reversed(FAMILIES)]
    items = [SimpleNamespace(path=Path(place) / "test_it.py") for place in places]
    ordered = [item.path.parent.name for item in in_order(items)]  # type: ignore[arg-type]
    assert ordered == [*FAMILIES, "brand-new", CONTROLS]


def test_each_profile_runs_its_own() -> None:
    """Smoke runs scenarios marked smoke, nightly all, and quick all that are not marked nightly."""
    marks = {"plain": set[str](), "smoke": {"smoke"}, "nightly": {"nightly"}}
    configs = {profile: SimpleNamespace(profile=profile, upgrade=None, pipeline=None) for profile in Profile}
    run = {
        profile: [name for name, each in marks.items() if in_profile(config, each)]  # type: ignore[arg-type]
        for profile, config in configs.items()
    }
    assert run == {
        Profile.SMOKE: ["smoke"],
        Profile.QUICK: ["plain", "smoke"],
        Profile.NIGHTLY: ["plain", "smoke", "nightly"],
    }


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("profile", Profile)
def test_what_is_about_librdkafka_is_run_with_it(client: str, profile: Profile) -> None:
    """Its mock cluster knows no other client, and no other client has its mistakes."""
    release = SimpleNamespace(has_tv2=True)
    config = SimpleNamespace(client=client, profile=profile, seeds=(1,), release=release, upgrade=None)
    for marks in ({"librdkafka", "convict"}, {"librdkafka", "nightly"}, {"librdkafka", "both_clients"}):
        assert [each.client for each in variants(config, marks)] == ["confluent"]  # type: ignore[arg-type]
    assert client in {each.client for each in variants(config, {"convict"})}  # type: ignore[arg-type]


def test_pipelines_and_controls_have_one_seed() -> None:
    """The other scenarios have three in the nightly profile, with both clients."""
    config = replace(unreported(Release.parse("4.3.1"), Path("unused"), runtime=Runtime.LOCAL), profile=Profile.NIGHTLY)
    assert [str(each) for each in variants(config, {"nightly"}, pipeline=True)] == ["confluent-1"]
    assert [str(each) for each in variants(config, {"convict"})] == ["confluent-1"]
    assert len(variants(config, {"nightly"})) == 6


def upgrading(
    profile: Profile,
    *,
    source: str = "3.9.2",
    to: str = "4.3.1",
    controllers: Controllers | None = None,
    keyword: str = "",
) -> RunConfig:
    """The configuration of an upgrade."""
    target = Release.parse(to)
    path = UpgradePath(source=Release.parse(source), target=target)
    plain = unreported(target, Path("unused"), runtime=Runtime.LOCAL)
    options = UpgradeOptions(controllers=controllers)
    return replace(plain, profile=profile, only=Only.UPGRADE, upgrade=path, upgrade_options=options, keyword=keyword)


def test_an_upgrade_runs_on_the_cluster_that_was_asked_for_or_nightly_on_both() -> None:
    """The layout is part of the name, so that both are reported."""
    layouts = {
        (profile, asked): [str(each) for each in variants(upgrading(profile, controllers=asked), set())]
        for profile in (Profile.QUICK, Profile.NIGHTLY)
        for asked in (None, Controllers.DEDICATED)
    }
    assert layouts[Profile.QUICK, None] == ["confluent-1"]
    assert layouts[Profile.QUICK, Controllers.DEDICATED] == ["confluent-1-dedicated"]
    nightly, dedicated = layouts[Profile.NIGHTLY, None], layouts[Profile.NIGHTLY, Controllers.DEDICATED]
    assert nightly == [*(each.removesuffix("-dedicated") for each in dedicated), *dedicated]
    assert dedicated == [f"confluent-{seed}-dedicated" for seed in (1, 2, 3)]
    assert "--controllers dedicated" in upgrading(Profile.QUICK, controllers=Controllers.DEDICATED).replay
    assert "--controllers" not in upgrading(Profile.QUICK).replay


def test_a_scenario_of_the_second_protocol_is_run_with_a_client_and_a_release_that_speak_it() -> None:
    """It is run once for each seed, nightly or when it is asked for by name; never on 3.9."""
    marks = {"tv2", "nightly"}
    assert [str(each) for each in variants(upgrading(Profile.NIGHTLY), marks)] == ["java-1", "java-2", "java-3"]
    assert in_profile(upgrading(Profile.NIGHTLY), marks)
    assert in_profile(upgrading(Profile.QUICK, keyword="lower"), marks)
    assert not in_profile(upgrading(Profile.QUICK), marks)
    assert not in_profile(upgrading(Profile.NIGHTLY, to="3.9.2"), marks)


def test_a_scenario_of_share_groups_is_run_where_a_new_cluster_has_them() -> None:
    """They begin with 4.2; before that they are a preview."""
    marks = {"share_groups", "nightly"}
    assert in_profile(upgrading(Profile.NIGHTLY, to="4.2.1"), marks)
    assert not in_profile(upgrading(Profile.NIGHTLY, to="4.1.2"), marks)


@pytest.mark.parametrize(
    ("source", "to", "brings"), [("3.9.2", "4.3.1", True), ("4.1.2", "4.3.1", False), ("3.8.1", "3.9.2", False)]
)
def test_a_scenario_of_the_first_level_is_run_where_the_path_brings_it(source: str, to: str, brings: bool) -> None:
    """The old release must not know transaction.version, and the new one must."""
    assert in_profile(upgrading(Profile.NIGHTLY, source=source, to=to), {"first_tv2", "nightly"}) is brings


@pytest.mark.parametrize(
    ("runtime", "marker", "roles", "reason"),
    [
        ("docker", LOCAL_ONLY, ROLES, "not run on docker: it needs brokers that are processes"),
        ("local", LOCAL_ONLY, ROLES, ""),
        ("docker", "nightly", ROLES, ""),
        ("local", "nightly", ROLES[:1], "not run with mine: mine 1 has no role copier"),
    ],
)
def test_a_scenario_that_cannot_be_tried_is_passed_over_by_name(
    runtime: str, marker: str, roles: Sequence[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fault could never be confirmed there, or its client lacks a role; the reason is printed and recorded."""
    passed_over = bool(reason)
    monkeypatch.setitem(CLIENTS, "mine", client(roles=roles))
    console = Console(out=io.StringIO(), live=False)
    config: Any = SimpleNamespace(directory=tmp_path, lanes=1)
    record = RunRecordWriter(config, console, ())
    record.end = lambda ended: record.ended.update({ended.key: ended})  # type: ignore[method-assign]
    scenarios = ScenarioExperiments(config, record)
    planned: Any = SimpleNamespace(key="late-duplicate-confluent-1")
    monkeypatch.setattr(experiments, "planned_of", lambda *_: planned)
    item: Any = SimpleNamespace(get_closest_marker=lambda name: True if name == marker else None)
    environment: Any = SimpleNamespace(runtime=runtime)
    ended: list[Any] = []
    scenarios._scenarios[planned.key] = copying()
    assert scenarios._skips(item, environment, ended.append) is passed_over
    assert ended == [item] * passed_over
    assert [each.inapplicable != "" for each in record.ended.values()] == [True] * passed_over
    if passed_over:
        assert scenarios.conclude(item) is Verdict.NOT_APPLICABLE
        said = console.out.getvalue()  # type: ignore[attr-defined]
        assert said.startswith(f"NOT APPLICABLE late-duplicate-confluent-1: {reason}")


def client(*, roles: Sequence[str] = ROLES, points: Sequence[str] = SYNC_POINTS["copier"]) -> ClientKind:
    """A client with some roles, all of which have the same sync points."""
    abilities = Abilities(
        roles=frozenset(roles), sync_points={role: frozenset(points) for role in roles}, library="mine 1"
    )
    return ClientKind(name="mine", command=lambda _: (), versions=dict, abilities=abilities)


def copying() -> Scenario:
    """A scenario with producers, copiers and observers, in which a copier is killed before its commit."""
    return Scenario(
        name="offsets/killed",
        test_name="test_killed",
        claim="c",
        requirements=(),
        cluster=THREE_BROKERS,
        workload=CopyWorkload(partitions=1),
        schedule=(Step(fault=KillClient("copier", SyncPoint.BEFORE_COMMIT)),),
        client="mine",
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (client(), ""),
        (client(roles=("producer", "copier")), ""),
        (client(roles=("producer", "observer")), "mine 1 has no role copier"),
        (client(points=("before-produce",)), "mine 1 has no sync point before-commit in the role copier"),
    ],
)
def test_a_scenario_needs_roles_and_sync_points(kind: ClientKind, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Observers are not needed: another library reads."""
    monkeypatch.setitem(CLIENTS, "mine", kind)
    assert inapplicable_to(copying()) == (f"not run with mine: {reason}" if reason else "")


@pytest.mark.parametrize(
    ("points", "struck"),
    [
        (SYNC_POINTS["copier"], SyncPoint.BEFORE_COMMIT),
        (("after-produce", "before-offsets"), SyncPoint.BEFORE_OFFSETS),
        (("after-produce",), SyncPoint.BEFORE_COMMIT),
    ],
)
def test_a_copier_is_killed_where_its_library_can_be_held(
    points: Sequence[str], struck: SyncPoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its offsets, where offsets and commit are one call; a library without either point cannot be tried."""
    monkeypatch.setitem(CLIENTS, "mine", client(points=points))
    (step,) = at_points_of_client(copying()).schedule
    assert step.fault == KillClient("copier", struck)


@pytest.mark.parametrize(
    ("client", "mark", "runs"),
    [
        ("confluent@2.10.0", "librdkafka", "confluent@2.10.0"),
        ("java@4.0.0", "librdkafka", "confluent"),
        ("java@4.0.0", "tv2", "java@4.0.0"),
        ("java@3.9.2", "tv2", "java"),
        ("confluent@2.10.0", "tv2", "java"),
    ],
)
def test_a_version_takes_the_place_of_its_client(client: str, mark: str, runs: str) -> None:
    """Where the scenario is about that client, and the version can do it."""
    release = SimpleNamespace(has_tv2=True)
    config = SimpleNamespace(client=client, profile=Profile.NIGHTLY, seeds=(1,), release=release, upgrade=None)
    assert [each.client for each in variants(config, {mark, "nightly"})] == [runs]  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", Profile)
def test_a_client_that_is_asked_for_by_name_is_the_only_one(profile: Profile) -> None:
    """The two clients of the nightly profile are compared with each other; a third is not."""
    release = SimpleNamespace(has_tv2=True)
    config = SimpleNamespace(client="mine", profile=profile, seeds=(1,), release=release, upgrade=None)
    assert {each.client for each in variants(config, {"both_clients"})} == {"mine"}  # type: ignore[arg-type]


def test_frames_are_redirected_in_the_local_runtime_only() -> None:
    """The scenario whose fault redirects a link to this process has the marker."""
    assert LOCAL_ONLY in {mark.name for mark in late_duplicate.pytestmark}  # type: ignore[attr-defined]
