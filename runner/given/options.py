"""The options of a run on a cluster of the user: `--bootstrap`, and those that go with it."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.clusters.given.broker_commands import BrokerCommands, read_commands
from fixtures.clusters.given.connection import ClusterConnection, read_connection
from fixtures.clusters.given.program import HOST, PORT, BrokerProgram
from fixtures.workloads.write_budget import WriteBudget
from runner.given.cluster_watcher import ClusterMemory
from runner.given.window_relay import WINDOW_MIN_S, WindowRelay

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_PREFIX = "onceproof-"
#: The workloads of scenarios stay below this by themselves.
DEFAULT_RECORDS_PER_S = 2_000
#: With fewer a scenario cannot write the records that its verdict needs.
RECORDS_PER_S_MIN = 300
#: A whole run writes about a tenth of it.
DEFAULT_MB = 1_000
#: A cluster on the other side of the world answers in a second. A firewall that drops everything never does.
ANSWERS_WITHIN_S = 10.0
#: Each window is a test of pytest, which has to know all of them before the first one begins.
UNTIL_STOPPED = "24h"
#: The characters of a topic's name. Names of runs follow, at most 60 characters of the 249 that a name may have.
_PREFIX = re.compile(r"[a-zA-Z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOptions:
    """The cluster of the user, and the beginning of all names on it.

    `file` is that of `--client-properties`, `faults` that of `--faults`. `program` has
    the broker instead, if the run starts it. `windows` of `window_s` seconds each are watched, in the order of `relay`, and
    `memory` is for the next one; without `--for` the user ends them.
    """

    connection: ClusterConnection
    prefix: str
    file: Path | None = None
    commands: BrokerCommands = field(default_factory=BrokerCommands)
    program: BrokerProgram | None = None
    faults: Path | None = None
    dry_run: bool = False
    windows: int = 0
    window_s: float = 0.0
    until_stopped: bool = False
    relay: WindowRelay = field(default_factory=lambda: WindowRelay(0, 0.0), compare=False)
    memory: ClusterMemory = field(default_factory=ClusterMemory, compare=False)
    budget: WriteBudget = field(
        default_factory=lambda: WriteBudget(records_per_s=DEFAULT_RECORDS_PER_S, megabytes=DEFAULT_MB), compare=False
    )

    @property
    def written(self) -> str:
        """The options that repeat this, without secrets: these are in the file."""
        file = f" --client-properties {self.file}" if self.file else ""
        prefix = f" --prefix {self.prefix}" if self.prefix != DEFAULT_PREFIX else ""
        faults = f" --faults {self.faults}" if self.faults else ""
        time = "" if self.until_stopped else f" --for {self.windows * self.window_s:g}s"
        watched = f"{time} --window {self.window_s:g}s" if self.windows else ""
        rate, megabytes = self.budget.records_per_s, self.budget.megabytes
        budget = "" if rate == DEFAULT_RECORDS_PER_S else f" --max-records-per-s {rate:g}"
        budget += "" if megabytes == DEFAULT_MB else f" --max-mb {megabytes:g}"
        where = f"--bootstrap {self.connection.bootstrap}"
        if self.program:
            where = f"--broker-command {shlex.quote(self.program.command)}"
        return f"{where}{file}{faults}{prefix}{watched}{budget}"


def add_given_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption("--bootstrap", metavar="HOST:PORT,…", help="run on your own cluster, which is not ended or changed")
    group.addoption(
        "--client-properties", metavar="FILE", help="--bootstrap: TLS and SASL, as for kafka-topics.sh --command-config"
    )
    group.addoption(
        "--broker-command",
        metavar="CMD",
        help="tox -e protocol: start your broker, and start it again if it no longer answers: './broker {port}'",
    )
    group.addoption("--faults", metavar="FILE", help="--bootstrap: your commands that crash, cut off … a broker (TOML)")
    group.addoption(
        "--prefix",
        metavar="TEXT",
        help=f"--bootstrap: the beginning of the names of topics, groups and ids ({DEFAULT_PREFIX})",
    )
    group.addoption(
        "--max-mb",
        type=int,
        metavar="MB",
        help=f"--bootstrap: the most megabytes that the run may write ({DEFAULT_MB})",
    )
    group.addoption(
        "--max-records-per-s",
        type=int,
        metavar="N",
        help=f"--bootstrap: the most records per second that the run may write ({DEFAULT_RECORDS_PER_S})",
    )
    group.addoption(
        "--for",
        dest="watch_for",
        metavar="TIME",
        help=f"tox -e watch: how long it watches (90s, 30m, 2h); without this option until Ctrl-C, at most {UNTIL_STOPPED}",
    )
    group.addoption(
        "--window", default="60s", metavar="TIME", help="tox -e watch: the time from one verdict to the next (60s)"
    )
    group.addoption(
        "--dry-run", action="store_true", help="--bootstrap: look at the cluster, list what can be run, change nothing"
    )


def given_options(options: Any, *, watches: bool, scripted: bool, other_job: str) -> GivenOptions | None:
    """The cluster of the user, None without `--bootstrap` and `--broker-command`.

    `watches` is for `tox -e watch`, `scripted` for `tox -e protocol`; `other_job` names the job where it is neither
    of these nor the main one. Raises pytest.UsageError and ClientPropertiesError.
    """
    program = _program(options, scripted=scripted)
    if watches and not options.bootstrap:
        raise pytest.UsageError("`tox -e watch` needs --bootstrap, the cluster on which others act")
    if not options.bootstrap and program is None:
        for name in ("client_properties", "faults", "prefix", "dry_run", "max_mb", "max_records_per_s"):
            # 0 is a value, which is refused elsewhere.
            if getattr(options, name) is not None and getattr(options, name) is not False:
                raise pytest.UsageError(f"--{name.replace('_', '-')} needs --bootstrap, the cluster that it is about")
        return None
    if objection := next(_objections(options, other_job), ""):
        raise pytest.UsageError(f"--{'broker-command' if program else 'bootstrap'} {objection}")
    prefix = DEFAULT_PREFIX if options.prefix is None else options.prefix
    if not _PREFIX.fullmatch(prefix):
        raise pytest.UsageError(f"--prefix {prefix!r} must be 1 to 100 letters, digits, dots, underscores and hyphens")
    file = Path(options.client_properties).resolve() if options.client_properties else None
    faults = Path(options.faults).resolve() if options.faults else None
    connection = read_connection(f"{HOST}:1" if program else options.bootstrap, file)
    return GivenOptions(
        connection=replace(connection, bootstrap=f"{HOST}:{PORT}") if program else connection,
        program=program,
        prefix=prefix,
        file=file,
        commands=read_commands(faults),
        faults=faults,
        dry_run=options.dry_run,
        budget=_budget(options),
        **(_windows(options) if watches else {}),
    )


def _program(options: Any, *, scripted: bool) -> BrokerProgram | None:
    """The program of `--broker-command`. Raises pytest.UsageError."""
    if options.broker_command is None:
        return None
    if not scripted:
        raise pytest.UsageError("--broker-command is for `tox -e protocol`: scenarios need a cluster of three brokers")
    if options.bootstrap:
        raise pytest.UsageError("--broker-command starts the broker, so --bootstrap has no meaning")
    if PORT not in options.broker_command:
        raise pytest.UsageError(f"--broker-command must contain {PORT}, the port at which your broker has to listen")
    return BrokerProgram(options.broker_command)


def _budget(options: Any) -> WriteBudget:
    """The writes that are allowed. Raises pytest.UsageError."""
    megabytes = DEFAULT_MB if options.max_mb is None else options.max_mb
    rate = DEFAULT_RECORDS_PER_S if options.max_records_per_s is None else options.max_records_per_s
    if megabytes < 1:
        raise pytest.UsageError("--max-mb must be 1 or more")
    if rate < RECORDS_PER_S_MIN:
        raise pytest.UsageError(
            f"--max-records-per-s must be {RECORDS_PER_S_MIN} or more: fewer records give no verdict"
        )
    return WriteBudget(records_per_s=rate, megabytes=megabytes)


def _windows(options: Any) -> dict[str, Any]:
    """The number of windows, their seconds and their order. Raises pytest.UsageError."""
    asked = {"--for": options.watch_for or UNTIL_STOPPED, "--window": options.window}
    found = {name: _seconds(text) for name, text in asked.items()}
    for name, seconds in found.items():
        if seconds is None:
            raise pytest.UsageError(f"{name} needs a time such as 90s, 30m or 2h")
    whole_s, window_s = (float(each or 0.0) for each in found.values())
    if not WINDOW_MIN_S <= window_s <= whole_s:
        raise pytest.UsageError(f"--window must be {WINDOW_MIN_S:g} s or more, and not longer than --for")
    windows = math.ceil(whole_s / window_s)
    return {
        "windows": windows,
        "window_s": window_s,
        "until_stopped": options.watch_for is None,
        "relay": WindowRelay(windows, window_s),
    }


def _seconds(text: str) -> float | None:
    found = re.fullmatch(r"(\d+)([smh])", text)
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]] if found else None


def _objections(options: Any, other_job: str) -> Iterator[str]:
    """Reasons why the other options do not fit a cluster of the user."""
    if other_job:
        yield f"is an option of `tox -e conformance`; `tox -e {other_job}` starts clusters of its own"
    if options.kafka_libs:
        yield "runs on your cluster, so --kafka-libs has no meaning"
    if options.runtime != "auto":
        yield f"runs on your cluster, so --runtime {options.runtime} has no meaning"
    for name in ("server_properties", "topic_properties"):
        if getattr(options, name):
            yield f"runs on your cluster, whose settings stay, so --{name.replace('_', '-')} has no meaning"
    if options.keep:
        yield "removes its topics at the end, so --keep has no meaning"
