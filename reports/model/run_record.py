"""`run.json`: the plan, options and end of a whole run, next to the evidence of its scenarios.

The harness writes it at the start with every planned scenario and state `running`, and whenever a scenario ends. The
last write has the state `finished` or `interrupted`. So a file that still says `running` belongs to a run that was
killed, and a planned scenario without evidence is reported by name. Each write is atomic: a kill leaves the record
before or after, never half of one.

The decision uses the plan, the selection, the interruption, the problems, the acceptances and the rule in it. The writer
must not put secrets in: options and machine facts appear in the report unchanged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from reports.model.errors import UnfitRunRecordError
from reports.model.wording import counted
from verification.evidence.atomic_write import atomic_write
from verification.evidence.run_rule import FORMAT, KIND
from verification.vocabulary import strict_json
from verification.vocabulary.strict_json import Float64, Int64
from verification.vocabulary.verdict import Verdict


class RunState(StrEnum):
    """The state of a whole run; `interrupted` is Ctrl-C or a termination signal."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"

    @property
    def cut_short(self) -> str:
        """What cut the run short, to be read after "the run was"; empty for a finished one."""
        return {RunState.RUNNING: "killed, or it is still running", RunState.INTERRUPTED: "interrupted"}.get(self, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One scenario, control or protocol case in the plan of the run.

    `case` is True for a protocol case, whose evidence is a script. `key` is the name of its directory under `runs/` and
    its anchor in the report. It is unique within the run: a scenario that runs with two clients or three seeds has
    several. `scenario` is the permanent id of the scenario. What is `alone` runs last, while nothing else does.
    """

    key: str
    scenario: str
    claim: str
    requirements: tuple[str, ...] = ()
    expected_s: Float64 = 0.0
    control: bool = False
    case: bool = False
    alone: bool = False
    client: str = ""
    replay: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A planned scenario that ended: its duration in seconds, and a sentence when the environment failed.

    `inapplicable` says why it cannot run on this kind of cluster. `repeats` are the verdicts of its repetitions, each alone
    on a cluster of its own, whose evidence is in `repeats/1/runs/KEY`, `repeats/2/runs/KEY` and so on.
    """

    key: str
    seconds: Float64
    error: str = ""
    inapplicable: str = ""
    repeats: tuple[str, ...] = ()

    @property
    def rate(self) -> str:
        """How often a violation was seen, the first time included, of all times that decided; empty without repetitions."""
        if not self.repeats:
            return ""
        seen, passed = self.repeats.count(Verdict.FAIL.name), self.repeats.count(Verdict.PASS.name)
        rest = len(self.repeats) - seen - passed
        undecided = f"; {counted(rest, 'repetition')} decided nothing" if rest else ""
        return f"repeated alone: seen in {1 + seen} of {1 + seen + passed} runs{undecided}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A file that was downloaded for this run: size in bytes, digest such as `sha256:…`."""

    name: str
    size_bytes: Int64
    seconds: Float64
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A violation that the user accepts: the id of a known bug or of a requirement.

    `until` is the last day (ISO date, compared with the day the run started) on which it holds; empty means no end.
    """

    id: str
    reason: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Everything in `run.json`.

    `started` is ISO 8601 UTC. `command` repeats the whole run. `narrowed_by` is the selection (`-k`) that left scenarios
    out of the plan, empty for a complete profile. `problems` are sentences about failures outside any scenario; each of
    them makes the run an ERROR. `versions` names libraries and tools, `digests` jars and images, `machine` the host.
    `seed` is None for a protocol run, in which nothing is random. With `strict` every violation decides.
    """

    started: str
    seed: Int64 | None
    profile: str
    command: str
    release: str
    runtime: str
    clients: tuple[str, ...]
    planned: tuple[Planned, ...]
    state: RunState = RunState.RUNNING
    suite: str = ""
    narrowed_by: str = ""
    options: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    downloads: tuple[Download, ...] = ()
    accepted: tuple[Acceptance, ...] = ()
    ended: tuple[Ended, ...] = ()
    problems: tuple[str, ...] = ()
    expected_s: Float64 = 0.0
    duration_s: Float64 = 0.0
    strict: bool = False

    def write(self, path: Path) -> None:
        """Write `run.json` atomically; the directory must exist."""
        # A protocol run writes it after each of 300 cases. Only the last write is indented, which takes ten times as long.
        text = json.dumps(
            {"format": FORMAT, "kind": KIND, **_fields(self)},
            default=_fields,
            indent=None if self.state is RunState.RUNNING else 1,
        )
        atomic_write(path, text + "\n")


def _fields(record: Any) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}


def is_ours(path: Path) -> bool:
    """Whether `path` is a run.json that this suite wrote, of any format and state."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(body, dict) and body.get("kind") == KIND


def read(path: Path) -> RunRecord:
    """Read `run.json`; raises UnfitRunRecordError when it is missing, truncated, foreign or of another format."""

    def ours(body: dict[str, Any]) -> dict[str, Any]:
        if body.pop("kind", None) != KIND:
            raise UnfitRunRecordError(f"{path} was not written by Onceproof")
        return body

    return strict_json.read(
        path,
        RunRecord,
        of="run record",
        format_=FORMAT,
        error=UnfitRunRecordError,
        missing="the plan of this run is unknown",
        required=("downloads", "accepted", "ended", "problems"),
        prepare=ours,
    )
