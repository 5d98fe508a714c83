"""Turns the options of a conformance run into its configuration, and refuses wrong ones in a sentence."""

from __future__ import annotations

import argparse
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixtures.clients.own_driver import own_client
from fixtures.clients.registry import CLIENTS, client_kind
from fixtures.clusters.given.connection import agreed_bootstrap
from fixtures.clusters.locks.releases import OLDEST, OLDEST_SCRIPTED, Release, default_release, parse_release
from fixtures.errors import OnceproofError
from fixtures.machine import available_memory_bytes, processors
from fixtures.pipelines.manifest import load
from reports.comparing import baseline
from reports.model.errors import UnfitBaselineError
from runner.config import DEFAULT_CLIENT, OUT, SEED_LIMIT, Only, Profile, RunConfig, Runtime
from runner.given.options import GivenOptions, add_given_options, given_options
from runner.given.release import chosen_release
from runner.own_build import add_build_options, own_build, own_image
from runner.settings.own_settings import add_settings_options, own_settings
from runner.upgrades.options import (
    UpgradeOptions,
    add_upgrade_options,
    refuse_upgrade_options,
    upgrade_options,
    upgrade_path,
)

#: A scenario alone uses about one core: two lanes and one of protocol cases use 94 % of two cores. More lanes than cores
#: would only wait for each other.
CORES_OF_LANE = 1
#: Three brokers, their clients, and a share of Spark and of the cluster for protocol cases.
MEMORY_OF_LANE_BYTES = 4_000_000_000
LANES_MAX = 16
#: Six runs show a race of one in two with 98 % as one.
REPEATS = 5
#: While one window is captured and judged, the next one is under load.
WATCH_LANES = 2


def add_options(parser: pytest.Parser) -> None:
    """Declare the options that `tox -e conformance -- …` passes on.

    `--strict` is not among them because pytest declares it: it also demands known markers, which `pyproject.toml` does
    anyway, and distinct ids of parametrized tests.
    """
    group = parser.getgroup("onceproof", "Onceproof: exactly-once conformance of Kafka")
    group.addoption(
        "--kafka",
        metavar="VERSION",
        help="Kafka release under test (default: the newest supported; with --bootstrap: of the line that its brokers show)",
    )
    add_build_options(group)
    group.addoption("--runtime", choices=["auto", "docker", "local"], default="auto", help="how brokers run")
    group.addoption(
        "--client",
        default=DEFAULT_CLIENT,
        metavar="NAME[@VERSION]",
        help=f"client library under test: {', '.join(CLIENTS)}; each also with a version: java@3.9.2; "
        "in an upgrade, where confluent and java write, that of the readers",
    )
    group.addoption(
        "--client-driver",
        default="",
        metavar="COMMAND",
        help="a driver of your own, which speaks docs/writing/client.md, is the client of every scenario",
    )
    group.addoption("--client-name", default="", metavar="NAME", help="its name (default: the name of its program)")
    group.addoption("--profile", choices=[each.value for each in Profile], default="quick", help="how much is run")
    group.addoption(
        "--only", choices=[str(Only.SCENARIOS), str(Only.PROTOCOL)], help="run only scenarios, or only protocol cases"
    )
    group.addoption(
        "--lanes", default="auto", metavar="N", help="scenarios that run at a time (default auto: by cores and memory)"
    )
    group.addoption(
        "--repeat",
        type=int,
        default=REPEATS,
        metavar="N",
        help="a violation that no known bug explains is repeated at the end, alone, at most N times within a quarter of"
        f" the run's time; 0 for never (default {REPEATS})",
    )
    group.addoption("--seed", type=int, help="seed of schedule and workload (default: drawn and printed)")
    group.addoption("--run-dir", metavar="PATH", help="where evidence and report go (default: reports/out/…)")
    group.addoption("--keep", action="store_true", help="keep the brokers' data directories")
    group.addoption(
        "--accept",
        action="append",
        default=[],
        metavar="ID",
        help="known bug or requirement whose violation does not fail the run",
    )
    group.addoption("--waivers", metavar="FILE", help="TOML file of accepted ids with reason and end date")
    group.addoption(
        "--baseline", metavar="FILE", help="results.json of an earlier run; exit code 3 when a result got worse"
    )
    group.addoption("--retain", type=int, default=10, metavar="N", help="keep the last N runs (default 10)")
    group.addoption("--manifest", metavar="FILE", help="tox -e pipelines: the pipeline.toml of a pipeline of your own")
    group.addoption(
        "--pipeline",
        default="",
        metavar="NAME[@VERSION]",
        help="tox -e pipelines: only pipelines whose names begin so, on this version of their library: kafka-streams@4.2.1",
    )
    group.addoption("--list", action="store_true", dest="list_scenarios", help="list what would run and start nothing")
    add_settings_options(group)
    add_upgrade_options(group)
    add_given_options(group)


def from_options(config: pytest.Config, *, only: Only | None) -> RunConfig:
    """Build the configuration; raises pytest.UsageError with one sentence for a wrong option."""
    options = config.option
    oldest, label = (OLDEST_SCRIPTED, str(only)) if only is Only.PROTOCOL else (OLDEST, "")
    try:
        if not options.broker_command:
            file = Path(options.client_properties) if options.client_properties else None
            options.bootstrap = agreed_bootstrap(options.bootstrap, file)
        upgrade, changes = None, UpgradeOptions()
        image = own_image(options, oldest=oldest)
        build = own_build(options, oldest=oldest) if image is None else image.build
        if only is Only.UPGRADE:
            upgrade, changes = upgrade_path(options, build), upgrade_options(options)
        else:
            refuse_upgrade_options(options)
        watches = only is Only.WATCH
        other_job = str(only) if only in (Only.UPGRADE, Only.PIPELINES) else ""
        settings = own_settings(options)
        given = given_options(options, watches=watches, scripted=only is Only.PROTOCOL, other_job=other_job)
        pipeline = load(Path(options.manifest)) if options.manifest else None
        release, ground = _release(options.kafka, given, oldest)
        own = image or build
        release = release if own is None else own.release
        release = release if upgrade is None else upgrade.target
        client = _client(options, only)
    except OnceproofError as error:
        raise pytest.UsageError(str(error)) from None
    _refuse_contradictions(options, only, client=client, given=given)
    seed = _seed(options.seed)
    started = datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%SZ")
    return RunConfig(
        release=release,
        release_ground=ground,
        runtime=_runtime(options, local=(upgrade or build) is not None, given=given is not None),
        client=client,
        client_driver=options.client_driver,
        own_name=client if options.client_driver else "",
        profile=Profile(options.profile),
        seed=seed,
        directory=_directory(options.run_dir, OUT / f"{started}-{label or seed}"),
        started=started,
        keep=options.keep,
        accepted=tuple(options.accept),
        waivers=Path(options.waivers) if options.waivers else None,
        baseline=_baseline(options.baseline),
        retain=options.retain,
        # A window shares its cluster with others, and each step of an upgrade depends on those before it.
        repeats=0 if only in (Only.WATCH, Only.UPGRADE) else options.repeat,
        strict=bool(options.strict),
        keyword=options.keyword,
        options=tuple(config.invocation_params.args),
        only=only,
        # A shared cluster should not carry the load of several scenarios at a time, unless its user says so.
        lanes=WATCH_LANES if watches else _lanes(options.lanes, alone=upgrade is not None or given is not None),
        markers=options.markexpr,
        pipeline=pipeline,
        pipelines_asked=options.pipeline,
        build=build,
        image=options.image,
        class_archive=options.class_archive,
        upgrade=upgrade,
        upgrade_options=changes,
        own_settings=settings,
        given=given,
    )


def _refuse_contradictions(
    options: argparse.Namespace, only: Only | None, *, client: str, given: GivenOptions | None
) -> None:
    """Raise pytest.UsageError for options that do not go together."""
    locked = given is not None and "ssl.key.password" in given.connection.properties
    if locked and client.startswith(("franz-go", "sarama")):
        # The standard library of Go does not decrypt such a key.
        raise pytest.UsageError(f"{client} takes a key without a password only: ssl.key.password is for other clients")
    if (options.manifest or options.pipeline) and only is not Only.PIPELINES:
        raise pytest.UsageError("--manifest and --pipeline are options of `tox -e pipelines`")
    if options.repeat < 0:
        raise pytest.UsageError("--repeat needs a number of repetitions, 0 for none")
    if options.retain < 1:
        raise pytest.UsageError("--retain needs a number of runs to keep, at least 1")


def _release(asked: str | None, given: GivenOptions | None, oldest: Release) -> tuple[Release, str]:
    """The release under test, and why it was chosen if the user named none for a cluster of their own."""
    if asked:
        return parse_release(asked, oldest=oldest), ""
    return (default_release(), "") if given is None else chosen_release(given)


def _seed(option: int | None) -> int:
    """The seed, drawn if none is given."""
    seed = random.SystemRandom().randrange(SEED_LIMIT) if option is None else option
    if not 0 <= seed < SEED_LIMIT:
        raise pytest.UsageError(f"--seed {seed} is outside 0 … {SEED_LIMIT - 1}")
    return seed


def _directory(option: str | None, usual: Path) -> Path:
    """The run directory: recorded evidence is never overwritten."""
    directory = Path(option).resolve() if option else usual
    if directory.exists() and any(directory.iterdir()):
        raise pytest.UsageError(f"{directory} already holds files; --run-dir needs a new or empty directory")
    return directory


def _runtime(options: argparse.Namespace, *, local: bool, given: bool) -> Runtime:
    """How the brokers of a run are run."""
    if given:
        return Runtime.GIVEN
    if options.image:
        return Runtime.DOCKER
    option = options.runtime
    # Figures of an upgrade and of its control compare only within one runtime, so no engine that happens to answer decides.
    # A directory of jars has no image.
    return Runtime.LOCAL if local and option == Runtime.AUTO else Runtime(option)


def _client(options: argparse.Namespace, only: Only | None) -> str:
    """The name of the client of the run; a driver of the user's own is in the registry from now on."""
    if not options.client_driver:
        if options.client_name:
            raise pytest.UsageError("--client-name names the client of --client-driver")
        return client_kind(options.client).name
    if options.client != DEFAULT_CLIENT:
        raise pytest.UsageError("--client and --client-driver both name the client; give one of them")
    if only in (Only.PROTOCOL, Only.UPGRADE):
        raise pytest.UsageError(f"--client-driver is an option of scenarios, and {only} has none for one client")
    lists = options.list_scenarios or options.collectonly
    own = own_client(options.client_driver, options.client_name, started=not lists)
    CLIENTS[own.name] = own
    return own.name


def _lanes(option: str, *, alone: bool) -> int:
    """`alone`: one at a time. A node that starts next to another upgrade takes twice as long, and all figures with it."""
    if option == "auto":
        return 1 if alone else lanes_of(processors(), available_memory_bytes())
    if not option.isdecimal() or not 1 <= int(option) <= LANES_MAX:
        raise pytest.UsageError(f"--lanes {option} is neither auto nor a number from 1 to {LANES_MAX}")
    return int(option)


def lanes_of(cores: int, memory_bytes: int) -> int:
    """The scenarios that run at a time on a machine with so many cores and so much free memory."""
    return max(1, min(cores // CORES_OF_LANE, memory_bytes // MEMORY_OF_LANE_BYTES, LANES_MAX))


def _baseline(option: str | None) -> Path | None:
    """The file to compare with. It is read now, so that a wrong file is refused before the run and not after it."""
    if option is None:
        return None
    path = Path(option).resolve()
    try:
        baseline.read(path)
    except UnfitBaselineError as error:
        raise pytest.UsageError(f"--baseline: {error}") from None
    return path / baseline.RESULTS if path.is_dir() else path
