"""The configuration of a conformance run: one frozen value, made of its options (`options.py`), which the report repeats."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from fixtures.clusters.given.runtime import GIVEN
from fixtures.clusters.locks.releases import (
    Release,
    ReleaseFiles,
)
from fixtures.pipelines.manifest import Pipeline
from runner.given.options import GivenOptions
from runner.own_build import described, selecting
from runner.settings.own_settings import OwnSettings
from runner.upgrades.options import (
    Controllers,
    UpgradeOptions,
)
from runner.upgrades.path import UpgradePath
from verification.known_bugs.settings import remarks

ROOT = Path(__file__).resolve().parent.parent
SUITES = ROOT / "suites"
PROTOCOL = SUITES / "protocol"
UPGRADES = SUITES / "upgrades"
PIPELINES = SUITES / "pipelines"
WATCH = SUITES / "watch"
OUT = ROOT / "reports" / "out"
DEFAULT_CLIENT = "confluent"

#: A seed is printed, typed and put into directory names: seven digits are enough for that and for variety.
SEED_LIMIT = 10_000_000
#: Three clusters of protocol cases, most of which wait, keep two cores busy. A fourth makes short timeouts unreliable.
CASE_LANES = 3
#: Nightly repeats every scenario with three seeds: a race that shows once in three nights shows on the first.
NIGHTLY_SEEDS = 3


class Profile(StrEnum):
    """The scenarios that run: one and one control, all once, or all × 3 seeds × both clients and each pipeline once."""

    SMOKE = "smoke"
    QUICK = "quick"
    NIGHTLY = "nightly"


class Runtime(StrEnum):
    """How brokers run. A cluster of the user is `--bootstrap`, and no `--runtime`."""

    AUTO = "auto"
    DOCKER = "docker"
    LOCAL = "local"
    GIVEN = GIVEN


class Only(StrEnum):
    """The kind of experiments to which a run is restricted."""

    SCENARIOS = "scenarios"
    PROTOCOL = "protocol"
    UPGRADE = "upgrade"
    PIPELINES = "pipelines"
    WATCH = "watch"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One conformance run as asked for. `keyword` and `markers` narrow it: such a run is PARTIAL and never GO.

    `only` restricts it to one kind of experiments, and None is both. So many scenarios run at a time as there are `lanes`.
    A violation that no known bug explains is repeated at most `repeats` times.
    With `strict` every violation decides. Of pipelines only those are tried that `pipelines_asked` names, as `NAME` or
    `NAME@VERSION`. `build` has the jars of `release` if it is a build of your own. Brokers run in
    `image` if the user named one. `client_driver` is the command line of a
    driver of the user's own, and `own_name` its name as a client. `release_ground` says why this release was chosen, if the
    user named none for a cluster of their own.
    """

    release: Release
    runtime: Runtime
    client: str
    profile: Profile
    seed: int
    directory: Path
    started: str
    keep: bool
    accepted: tuple[str, ...]
    waivers: Path | None
    retain: int
    keyword: str
    options: tuple[str, ...]
    baseline: Path | None = None
    only: Only | None = None
    lanes: int = 1
    repeats: int = 0
    strict: bool = False
    markers: str = ""
    pipeline: Pipeline | None = None
    pipelines_asked: str = ""
    build: ReleaseFiles | None = None
    image: str = ""
    class_archive: bool = True
    upgrade: UpgradePath | None = None
    upgrade_options: UpgradeOptions = field(default_factory=UpgradeOptions)
    own_settings: OwnSettings = field(default_factory=OwnSettings)
    given: GivenOptions | None = None
    release_ground: str = ""
    client_driver: str = ""
    own_name: str = ""

    @property
    def prefix(self) -> str:
        """The beginning of the names of topics, groups and transactional ids; empty on clusters of our own."""
        return self.given.prefix if self.given else ""

    @property
    def stays_up(self) -> bool:
        """Whether the cluster goes on running when the run has ended."""
        return self.keep and bool(self.upgrade_options.stop_after)

    @property
    def layouts(self) -> tuple[Controllers, ...]:
        """The clusters that an upgrade is performed on: the one that was asked for, else both in the nightly profile."""
        if self.upgrade_options.controllers is not None:
            return (self.upgrade_options.controllers,)
        return tuple(Controllers) if self.profile is Profile.NIGHTLY else (Controllers.COMBINED,)

    def varied(self, *, client: str, seed: int, dedicated: bool) -> RunConfig:
        """The configuration with the client, the seed and the cluster of one variant."""
        asked = replace(self.upgrade_options, controllers=Controllers.DEDICATED) if dedicated else self.upgrade_options
        return replace(self, client=client, seed=seed, upgrade_options=asked)

    @property
    def case_lanes(self) -> int:
        """So many clusters perform protocol cases at a time."""
        return CASE_LANES if self.only is Only.PROTOCOL else (self.lanes + 1) // 2

    @property
    def case_lanes_at_last(self) -> int:
        """The same once the scenarios have ended, and their lanes are empty."""
        return max(self.case_lanes, min(CASE_LANES, self.case_lanes + self.lanes))

    @property
    def only_requests(self) -> bool:
        """Whether requests are all that reaches the brokers: it needs neither links nor, but for some cases, Java."""
        return self.given is not None and self.only is Only.PROTOCOL

    @property
    def without_cases(self) -> bool:
        """Whether the run has no protocol cases."""
        return self.profile is Profile.SMOKE if self.only is None else self.only is not Only.PROTOCOL

    @property
    def directories(self) -> tuple[Path, ...]:
        """The arguments of pytest that select the whole run."""
        if self.only is Only.UPGRADE:
            return (UPGRADES,)
        if self.only in (Only.PIPELINES, Only.WATCH):
            return (PIPELINES if self.only is Only.PIPELINES else WATCH,)
        return (SUITES, PROTOCOL) if self.only is Only.PROTOCOL else (SUITES,)

    @property
    def header(self) -> list[str]:
        """The configuration in words."""
        if self.upgrade is not None:
            subject = f"upgrade of Kafka {self.upgrade}, runtime {self.runtime}, client {self.client}, seed {self.seed}"
        elif self.only is Only.PROTOCOL:
            subject = f"protocol of Kafka {self.release.version}, runtime {self.runtime}"
        else:
            where = f"at {self.given.connection.bootstrap}" if self.given else f"runtime {self.runtime}"
            subject = (
                f"Kafka {self.release.version}, {where}, client {self.client}, "
                f"profile {self.recorded_profile}, seed {self.seed}"
            )
        releases = () if self.upgrade is None else (self.upgrade.source, self.upgrade.target)
        unlocked = [
            f"Kafka {each} has no lock file here: a run resolves it"
            for each in releases
            if not (each.supported or each.own)
        ]
        own = [] if self.build is None else [described(self.build, self.image)]
        ground = [self.release_ground] if self.release_ground else []
        settings = self.own_settings.configuration
        said = [f"your settings: {name}={value}" for name, value in settings.items()]
        run_by = {each.version for each in (*releases, self.release)}
        said += [f"warning: {each}" for each in remarks(settings, run_by)]
        return [
            f"onceproof: {subject}",
            *ground,
            *own,
            *dict.fromkeys(unlocked),
            *said,
            f"evidence and report: {self.directory}",
        ]

    @property
    def recorded_profile(self) -> str:
        """The profile in words; it says when one kind of experiments was left out by name."""
        if self.only is Only.PROTOCOL:
            return str(Only.PROTOCOL)
        if self.upgrade is not None:
            return f"{self.profile}, {'migration' if self.upgrade.migrates else 'upgrade'} from {self.upgrade.source}"
        if self.only is Only.WATCH:
            return str(Only.WATCH)
        only = self.only in (Only.SCENARIOS, Only.PIPELINES)
        return f"{self.profile}, only {self.only}" if only else str(self.profile)

    @property
    def recorded_seed(self) -> int | None:
        """The seed; None where nothing is random."""
        return None if self.only is Only.PROTOCOL else self.seed

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the run; the first is the one that was printed."""
        count = NIGHTLY_SEEDS if self.profile is Profile.NIGHTLY else 1
        if self.given is not None and self.given.windows:
            count = self.given.windows
        return tuple((self.seed + step) % SEED_LIMIT for step in range(count))

    @property
    def replay(self) -> str:
        """The command that repeats this run, without the selection (`-k`, `-m`)."""
        if self.only is Only.PROTOCOL:
            return f"tox -e protocol -- {self.selecting} {self._where}"
        if self.upgrade is not None:
            return (
                f"tox -e upgrade -- --from {self.upgrade.source} "
                f"{f'--to {self.release}' if self.build is None else self.selecting} {self._where} "
                f"--client {self.client} --profile {self.profile} --seed {self.seed}"
                + (" --migrate" if self.upgrade.migrates else "")
                + (f" --controllers {self.upgrade_options.controllers}" if self.upgrade_options.controllers else "")
            )
        job = str(self.only) if self.only in (Only.PIPELINES, Only.WATCH) else "conformance"
        own = f" --manifest {self.pipeline.manifest}" if self.pipeline else ""
        own += f" --pipeline {self.pipelines_asked}" if self.pipelines_asked else ""
        return f"tox -e {job} -- {self.replay_options}{own}"

    @property
    def selecting(self) -> str:
        """The option that selects the release or the build under test."""
        return selecting(self.release, self.build, self.image)

    @property
    def command(self) -> str:
        """The command that repeats this run, with its selection and with everything that its decision depends on."""
        only = " --only scenarios" if self.only is Only.SCENARIOS else ""
        rule = " --strict" if self.strict else ""
        accepted = "".join(f" --accept {each}" for each in self.accepted)
        waivers = f" --waivers {self.waivers}" if self.waivers else ""
        selected = "".join(f' {name} "{each}"' for name, each in (("-k", self.keyword), ("-m", self.markers)) if each)
        return self.replay + self.upgrade_options.written + only + rule + accepted + waivers + selected

    @property
    def replay_options(self) -> str:
        """The options that repeat this run."""
        return f"{self.selecting} {self._where} {self._client_options} --profile {self.profile} --seed {self.seed}"

    @property
    def _where(self) -> str:
        """The options that say where brokers run, and with which settings of the user."""
        return self.given.written if self.given else f"--runtime {self.runtime}{self.own_settings.written}"

    @property
    def _client_options(self) -> str:
        """A client is that of the run, of a scenario of another client, or a driver of the user's own."""
        if self.client_driver and self.client == self.own_name:
            return f"--client-driver {shlex.quote(self.client_driver)} --client-name {self.client}"
        return f"--client {self.client}"


def unreported(release: Release, directory: Path, *, runtime: Runtime) -> RunConfig:
    """The configuration of a run without a report, which prepares the environment like any other."""
    return RunConfig(
        release=release,
        runtime=runtime,
        client=DEFAULT_CLIENT,
        profile=Profile.QUICK,
        seed=1,
        directory=directory,
        started=f"{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}",
        keep=False,
        accepted=(),
        waivers=None,
        retain=1,
        keyword="",
        options=(),
    )
