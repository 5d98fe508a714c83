"""Read a `results.json` as one run of a trend: only the fields that a trend shows, fast and with checked types.

A thousand files of a nightly run have a gigabyte of JSON. A typed decoder skips the other fields without making
objects of them. A file that it refuses is read again by the reader of baselines, whose sentence names the fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from reports.comparing import baseline
from reports.model.errors import UnfitBaselineError
from reports.model.report import FORMAT
from verification.vocabulary.strict_json import Float64, Int64
from verification.vocabulary.verdict import Decision

VerdictName = Literal["NOT_APPLICABLE", "PASS", "INCONCLUSIVE", "ERROR", "FAIL"]
RowName = Literal["NOT_APPLICABLE", "PASS", "INCONCLUSIVE", "ERROR", "FAIL", "UNTESTED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsClient:
    """A client under test."""

    name: str
    library: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsSubject:
    """Release, runtime and clients."""

    release: str
    runtime: str
    clients: tuple[ResultsClient, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsRun:
    """Start, duration, seed and profile."""

    started: str
    duration_s: Float64
    seed: Int64 | None
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsFinding:
    """A finding of a scenario."""

    anomaly: str
    known_bug: str | None
    accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsScenario:
    """A scenario or control. `run` names its evidence, empty without evidence.

    `convicted` is None for a scenario; `result` is the word for a control in newer results.
    """

    id: str
    verdict: VerdictName
    seed: Int64 | None
    client: str
    findings: tuple[ResultsFinding, ...]
    convicted: bool | None = None
    result: Literal["DETECTED", "MISSED", "INCONCLUSIVE", "ERROR", "NOT_APPLICABLE"] = "MISSED"
    run: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsVerdict:
    """The verdict of a case on one requirement."""

    id: str
    verdict: VerdictName


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsKnownBug:
    """A known bug of a case; `named` is True when its entry names this very case."""

    id: str
    named: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsCase:
    """A protocol case."""

    id: str
    verdict: VerdictName
    accepted: bool
    requirements: tuple[ResultsVerdict, ...]
    known: tuple[ResultsKnownBug, ...]
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsRequirement:
    """A requirement of the catalogue with the verdict of the run."""

    id: str
    verdict: RowName


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsPart:
    """A run in a merged report."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcomes:
    """The fields of a `results.json` that a trend shows; None for known bugs that older results do not have."""

    format: int
    decision: Decision
    partial: str
    subject: ResultsSubject
    run: ResultsRun
    scenarios: tuple[ResultsScenario, ...]
    controls: tuple[ResultsScenario, ...]
    requirements: tuple[ResultsRequirement, ...]
    cases: tuple[ResultsCase, ...] = ()
    parts: tuple[ResultsPart, ...] = ()
    standing_risks: tuple[str, ...] | None = None
    deviations: tuple[str, ...] | None = None

    @property
    def evidence(self) -> frozenset[str]:
        """The names of the evidence of its scenarios: another report of the same evidence has the same names."""
        return frozenset(each.run for each in self.scenarios if each.run)


_DECODER = msgspec.json.Decoder(RunOutcomes)


def read(file: Path) -> tuple[RunOutcomes, bytes]:
    """The run in a `results.json`, and the bytes of the file.

    Raises UnfitBaselineError with one sentence when it is missing, truncated, foreign or of another format.
    """
    content = b""
    try:
        content = file.read_bytes()
        outcomes = _DECODER.decode(content)
        if outcomes.format == FORMAT:
            return outcomes, content
    except (OSError, ValueError, RecursionError):
        # The reader of baselines says it in a sentence. It also reads files that only Python's parser accepts, such as
        # one with half of a surrogate pair in the name of a topic.
        pass
    return _slowly(file), content


def _slowly(file: Path) -> RunOutcomes:
    body = baseline.body_of(file, missing="give run directories or files that `python -m reports` wrote")
    try:
        return msgspec.convert(body, RunOutcomes)
    except (ValueError, RecursionError) as error:
        raise UnfitBaselineError(f"{file} does not fit format {FORMAT}: {error}") from error
