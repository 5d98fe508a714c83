"""Plans a run: which scenarios it has, with which clients and seeds, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chaos.clients import COPIER, SyncPoint
from chaos.faults.clients import KillClient
from fixtures.clients.registry import client_kind
from fixtures.clusters.locks.releases import Release
from fixtures.workloads.plans import slots
from reports.model.run_record import Planned
from runner.config import PIPELINES, Profile, RunConfig, Runtime
from runner.scenarios.night import measured_s
from runner.scenarios.pipeline_choice import on_version, selected
from runner.scenarios.scenario import Scenario
from runner.upgrades.options import Controllers, UpgradeOptions
from runner.upgrades.outline import outlined
from runner.upgrades.path import UpgradePath
from runner.upgrades.plan import UpgradePlan
from runner.upgrades.rolls import CONTROLLERS
from runner.upgrades.step_facts import whole_s
from runner.upgrades.tailoring import has_stages, named, only_leaves_out, tailored

#: The seconds of one scenario in one of two lanes on two cores, with its share of starting and judging: measured on
#: whole runs of the quick profile. Controls need fewer phases.
ESTIMATED_S = {"confluent": 36.0, "java": 49.0}
CONTROL_S = 16.0
#: The mean of 24 scenarios and controls of pipelines, in the same way: programs start, and are missed by their group; and of
#: 48 of the nightly profile, which have more faults one after the other.
PIPELINE_S, NIGHTLY_PIPELINE_S = 38.0, 69.0
#: The order of families: first those that the others depend on. Other families follow, and then the controls, which say
#: nothing about the subject.
FAMILIES = (
    "smoke",
    "idempotence",
    "atomicity",
    "isolation",
    "fencing",
    "offsets",
    "coordinator",
    "recovery",
)
CONTROLS = "controls"
#: The marker of scenarios whose faults need brokers that are processes of this machine.
LOCAL_ONLY = "local_only"
#: The clients of the nightly profile, and of scenarios that are run with both. Any other client is asked for by name, and
#: then it is the only one.
COMPARED = ("confluent", "java")
#: The client of scenarios about librdkafka itself, whatever `--client` says.
LIBRDKAFKA = "confluent"
#: The client that speaks TV2, for scenarios about it.
SECOND_PROTOCOL = "java"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One client and one seed with which a scenario is run, and for an upgrade also the layout of the cluster."""

    client: str
    seed: int
    layout: Controllers = Controllers.COMBINED

    def __str__(self) -> str:
        return f"{self.client}-{self.seed}" + (f"-{self.layout}" if self.dedicated else "")

    @property
    def dedicated(self) -> bool:
        """Whether controllers are nodes of their own."""
        return self.layout is Controllers.DEDICATED


def variants(config: RunConfig, marks: set[str], *, pipeline: bool = False) -> list[Variant]:
    """The clients and seeds of a scenario with these marks.

    Both clients write in one upgrade, so it needs no other one; of a pipeline the client only writes the inputs. Controls
    and pipelines have one seed: with three, pipelines alone would take two hours of a night.
    """
    clients, (library, _, version) = [config.client], config.client.partition("@")
    others = [client for client in COMPARED if client != config.client] if config.client in COMPARED else []
    both = config.profile is Profile.NIGHTLY or (
        "both_clients" in marks and config.profile is Profile.QUICK and config.release.has_tv2
    )
    if both and "convict" not in marks and config.upgrade is None and not pipeline:
        clients += others
    if "librdkafka" in marks:
        clients = [config.client if library == LIBRDKAFKA else LIBRDKAFKA]
    seeds = config.seeds[:1] if pipeline or "convict" in marks else config.seeds
    layouts = (Controllers.COMBINED,) if config.upgrade is None else config.layouts
    if "tv2" in marks:
        speaks = library == SECOND_PROTOCOL and (not version or Release.parse(version).has_tv2)
        clients, layouts = [config.client if speaks else SECOND_PROTOCOL], layouts[:1]
    if "zookeeper" in marks:
        layouts = (Controllers.COMBINED,)
    return [
        Variant(client=client, seed=seed, layout=layout) for layout in layouts for client in clients for seed in seeds
    ]


def in_profile(config: RunConfig, marks: set[str]) -> bool:
    """Whether the profile runs a scenario with these marks."""
    needs_tv2, needs_share_groups = bool({"tv2", "first_tv2"} & marks), "share_groups" in marks
    if (needs_tv2 and not config.release.has_tv2) or (needs_share_groups and not config.release.has_share_groups):
        return False
    if "first_tv2" in marks and (config.upgrade is None or config.upgrade.source.has_tv2):
        return False
    if ("zookeeper" in marks) != (config.upgrade is not None and config.upgrade.migrates):
        return False
    if ("own_pipeline" in marks) != (config.pipeline is not None):
        return False
    if "nightly" in marks:
        # What an upgrade leaves out to be quick can be asked for by name.
        return config.profile is Profile.NIGHTLY or (config.upgrade is not None and bool(config.keyword))
    return config.profile is not Profile.SMOKE or "smoke" in marks


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Sort scenarios by family, controls last."""
    others = sorted({item.path.parent.name for item in items} - set(FAMILIES) - {CONTROLS})
    families = [*FAMILIES, *others, CONTROLS]
    return sorted(items, key=lambda item: families.index(item.path.parent.name))


def planned_of(item: pytest.Item, config: RunConfig) -> Planned:
    """The entry of a collected test in `run.json`."""
    assert isinstance(item, pytest.Function)
    variant = item.callspec.params["variant"]
    assert isinstance(variant, Variant)
    family = item.path.parent.name
    name = f"{family}/{item.originalname.removeprefix('test_').replace('_', '-')}"
    name += "-of-dedicated-controllers" if variant.dedicated else ""
    asked = config.varied(client=variant.client, seed=variant.seed, dedicated=variant.dedicated)
    marker = item.get_closest_marker("requirement")
    control = item.get_closest_marker("convict") is not None
    return Planned(
        key=f"{name.replace('/', '-')}-{variant.client}-{variant.seed}",
        scenario=name,
        claim=" ".join((item.function.__doc__ or "").split()),
        requirements=() if marker is None else marker.args,
        expected_s=measured_s(name, variant.client)
        or _usual_s(family, variant.client, control=control, nightly=item.get_closest_marker("nightly") is not None),
        control=control,
        client=variant.client,
        replay=f'{asked.replay} -k "{item.originalname}"',
    )


def _usual_s(family: str, client: str, *, control: bool, nightly: bool) -> float:
    if family == PIPELINES.name:
        return NIGHTLY_PIPELINE_S if nightly else PIPELINE_S
    return CONTROL_S if control else ESTIMATED_S.get(client.partition("@")[0], ESTIMATED_S[LIBRDKAFKA])


def scenario_of(item: pytest.Item, config: RunConfig) -> Scenario:
    """The scenario that a collected test describes; nothing is started.

    Raises pytest.UsageError when the test describes none, or one that cannot be.
    """
    assert isinstance(item, pytest.Function)
    planned, variant = planned_of(item, config), item.callspec.params["variant"]
    assert isinstance(variant, Variant)
    control = item.get_closest_marker("convict")
    described: list[Scenario] = []
    given: dict[str, Any] = {}
    if config.upgrade is not None:
        given["upgrade"] = plan_of(config, config.upgrade, variant)
    if config.pipeline is not None:
        given["pipeline"] = config.pipeline
    if config.given is not None and config.given.windows:
        given["window_s"] = config.given.window_s

    def describe(**values: Any) -> None:
        values["topic_settings"] = {**config.own_settings.topics, **values.get("topic_settings", {})}
        scenario = Scenario(
            name=planned.scenario,
            test_name=item.originalname,
            claim=planned.claim,
            requirements=planned.requirements,
            client=variant.client,
            seed=variant.seed,
            expects=() if control is None else control.args,
            **tailored(on_version(values, config.pipelines_asked), config.upgrade_options, config.keyword, item),
        )
        described.append(at_points_of_client(scenario))

    try:
        item.function(run=describe, **given)
    except pytest.UsageError:
        raise
    # The error is in the scenario's own lines, or in a plan or a fault that refused its arguments.
    except Exception as error:
        reason = str(error).replace(f"{Scenario.__name__}.__init__()", "run()")
        raise pytest.UsageError(f"{item.nodeid} does not describe a scenario: {reason}") from error
    if len(described) != 1:
        raise pytest.UsageError(f"{item.nodeid} calls run {len(described)} times; a scenario calls it once.")
    return described[0]


def at_points_of_client(scenario: Scenario) -> Scenario:
    """The scenario with copiers killed before their offsets, where a library sends these and commits in one call."""
    usual, earlier = (KillClient(COPIER, at) for at in (SyncPoint.BEFORE_COMMIT, SyncPoint.BEFORE_OFFSETS))
    if client_kind(scenario.client).abilities.first_held(COPIER, (usual.at, earlier.at)) != earlier.at:
        return scenario
    schedule = tuple(replace(each, fault=earlier) if each.fault == usual else each for each in scenario.schedule)
    return replace(scenario, schedule=schedule)


def inapplicable_to(scenario: Scenario) -> str:
    """Why the client of a scenario cannot perform it: an absent role or sync point; empty if it can."""
    kind = client_kind(scenario.client)
    own = [
        slot for slot in slots(scenario.workload, "run") if not slot.program and slot.client in ("", scenario.client)
    ]
    absent = kind.abilities.absent(
        {slot.role for slot in own}, {hold for step in scenario.schedule for hold in step.holds}
    )
    return f"not run with {kind.name}: {kind.abilities.library or kind.name} {absent}" if absent else ""


def plan_of(config: RunConfig, path: UpgradePath, variant: Variant) -> UpgradePlan:
    """The upgrade that a variant performs."""
    return UpgradePlan(
        path=path,
        seed=variant.seed,
        controllers=CONTROLLERS if variant.dedicated else 0,
        thorough=config.profile is Profile.NIGHTLY,
        containers=config.runtime is Runtime.DOCKER,
    )


def estimated(planned: Planned, scenario: Scenario, config: RunConfig) -> Planned:
    """The plan of a scenario with its estimate: of an upgrade by its schedule, of other scenarios the same for all.

    Windows follow each other, so each lane waits for the windows of the other lanes.
    """
    if config.given is not None and config.given.windows:
        return replace(planned, expected_s=config.lanes * config.given.window_s)
    if config.upgrade is None:
        return planned
    return replace(planned, expected_s=whole_s(scenario.schedule))


def asked_for(items: Sequence[pytest.Item], config: RunConfig) -> list[pytest.Item]:
    """The tests of an upgrade that `-k` and `--stop-after` select: by their stages where they have some, else by names.

    Those of pipelines that `--pipeline` selects. Raises pytest.UsageError for a stage or a pipeline that no test has.
    """
    if config.pipelines_asked:
        as_written = replace(config, pipelines_asked="")
        return selected({item: scenario_of(item, as_written).workload for item in items}, config.pipelines_asked)
    stop = config.upgrade_options.stop_after
    if not config.keyword and not stop:
        return list(items)
    # `not back` is no wish for what only the nightly profile runs.
    usual = config.profile is not Profile.NIGHTLY and (bool(stop) or only_leaves_out(config.keyword))
    found = [
        item
        for item in items
        if not (usual and item.get_closest_marker("nightly"))
        if has_stages(scenario_of(item, config).schedule) or (not stop and named(config.keyword, item))
    ]
    if stop and not found and not config.keyword:
        whole = replace(config, upgrade_options=UpgradeOptions())
        names = dict.fromkeys(
            f'"{step.stage}"' for item in items for step in scenario_of(item, whole).schedule if step.stage
        )
        raise pytest.UsageError(f'The upgrade has no stage "{stop}" to stop after; it has {", ".join(names)}.')
    return found


def listed(
    planned: Collection[Planned], outlines: Mapping[str, Scenario], hindrances: Mapping[str, str]
) -> Iterator[str]:
    """Ids, requirements, claims and estimates, a line each; with the plan of those scenarios that are in `outlines`.

    `hindrances` are the reasons why a scenario cannot be run.
    """
    for each in planned:
        kind = "control " if each.control else ""
        yield f"{each.key}  {kind}({', '.join(each.requirements)})  ≈ {each.expected_s:.0f} s"
        yield f"    {each.claim}"
        if why := hindrances.get(each.key):
            yield f"    NOT APPLICABLE: {why}"
        if each.key in outlines:
            scenario = outlines[each.key]
            yield from (f"    {line}" for line in outlined(scenario.schedule, scenario.floors))
