"""Read a `results.json` as comparable cases, from any run, host or version of this suite.

A case is a scenario, a protocol case, a control or a requirement, with one word for its result. The id of a scenario
contains the seed (`…-<client>-<seed>`), but another seed is not another scenario: `stem` is the id without the seed, and
without the name of the run in a merged report. An unreadable baseline is refused before a run starts, because a
comparison with nothing would find no regression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from reports.model.change import CaseKind, Side
from reports.model.errors import UnfitBaselineError
from reports.model.report import FORMAT
from reports.model.upgrade import StageFigures

RESULTS = "results.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """One case with the result of one run; `found` are its known bugs, and its anomalies without a known bug.

    `part` is its run in a merged report. Seed and part distinguish cases with the same stem.
    """

    kind: CaseKind
    id: str
    stem: str
    seed: str
    word: str
    reason: str
    accepted: bool = False
    applies: bool = True
    found: frozenset[str] = frozenset()
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineClient:
    """The figures of a client in one stage."""

    client: str
    figures: StageFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineStage:
    """A stage of an upgrade with its figures."""

    name: str
    clients: tuple[BaselineClient, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineUpgrade:
    """The upgrade of one scenario; `id` is that of the scenario."""

    id: str
    source: str
    target: str
    stages: tuple[BaselineStage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """One run to compare: its description, all of its cases, and its upgrades."""

    side: Side
    cases: tuple[ComparedCase, ...]
    upgrades: tuple[BaselineUpgrade, ...] = ()


def read(path: Path) -> Outcomes:
    """Read a results.json, or the one in a directory.

    Raises UnfitBaselineError with one sentence when it is missing, truncated, foreign or of another format.
    """
    file = path / RESULTS if path.is_dir() else path
    body = body_of(file, missing=f"give the {RESULTS} of an earlier run as the baseline")
    try:
        return of_results(body)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnfitBaselineError(f"{file} does not fit format {FORMAT}: {error!r}") from error


def body_of(file: Path, *, missing: str) -> Mapping[str, Any]:
    """The object in a results.json of this format; `missing` says what to do when there is no such file.

    Raises UnfitBaselineError with one sentence when it is missing, truncated, foreign or of another format.
    """
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnfitBaselineError(f"{file} does not exist; {missing}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UnfitBaselineError(
            f"{file} is not readable JSON ({error}); it is truncated, or not a {RESULTS}"
        ) from error
    if not isinstance(body, dict) or not {"format", "scenarios", "requirements"} <= set(body):
        raise UnfitBaselineError(f"{file} is not a {RESULTS} of Onceproof")
    if body["format"] != FORMAT:
        raise UnfitBaselineError(f"{file} has format {body['format']!r}; this version reads format {FORMAT}")
    return body


def of_results(body: Mapping[str, Any]) -> Outcomes:
    """The cases of the object that `results.json` holds."""
    run, subject = body["run"], body["subject"]
    upgraded_from = str(subject.get("upgraded_from", ""))
    return Outcomes(
        side=Side(
            release=(f"{upgraded_from} → " if upgraded_from else "") + str(subject["release"]),
            runtime=str(subject["runtime"]),
            started=str(run["started"]),
            profile=str(run["profile"]),
            decision=str(body["decision"]),
            partial=str(body["partial"]),
        ),
        cases=tuple(_cases(body)),
        upgrades=tuple(
            msgspec.convert({**each["upgrade"], "id": each["id"]}, BaselineUpgrade)
            for each in body["scenarios"]
            if "upgrade" in each
        ),
    )


def _cases(body: Mapping[str, Any]) -> Iterator[ComparedCase]:
    for each in body["scenarios"]:
        yield _scenario(each, CaseKind.SCENARIO, str(each["verdict"]))
    for each in body.get("cases", ()):
        yield _script(each)
    for each in body["controls"]:
        # Older results do not say whether a control that was not detected ran at all.
        word = str(each.get("result", "MISSED"))
        yield _scenario(each, CaseKind.CONTROL, "DETECTED" if each["convicted"] else word)
    for each in body["requirements"]:
        yield _requirement(each)


def _requirement(body: Mapping[str, Any]) -> ComparedCase:
    decided = [str(one["reason"]) for one in body["decided_by"] if one["verdict"] == body["verdict"]]
    return ComparedCase(
        kind=CaseKind.REQUIREMENT,
        id=str(body["id"]),
        stem=str(body["id"]),
        seed="",
        word=str(body["verdict"]),
        reason=decided[0] if decided else str(body["untested"]),
        accepted=bool(body["accepted"]),
        applies=bool(body.get("applies", True)),
    )


def _script(body: Mapping[str, Any]) -> ComparedCase:
    part = str(body.get("part", ""))
    named = [str(each["id"]) for each in body["known"] if each["named"]]
    violated = (str(each["id"]) for each in body["requirements"] if each["verdict"] == "FAIL")
    return ComparedCase(
        kind=CaseKind.CASE,
        id=str(body["id"]),
        stem=str(body["id"]).removesuffix(f"@{part}" if part else ""),
        seed="",
        word=str(body["verdict"]),
        reason=str(body["reason"]),
        accepted=bool(body["accepted"]),
        found=frozenset(named or violated),
        part=part,
    )


def _scenario(body: Mapping[str, Any], kind: CaseKind, word: str) -> ComparedCase:
    part = str(body.get("part", ""))
    key = str(body["id"]).removesuffix(f"@{part}" if part else "")
    stem, seed = stem_and_seed(key, body.get("seed"), str(body.get("client", "")))
    # One known bug can show as different anomalies; that is not a second defect.
    found = (str(each["known_bug"] or each["anomaly"]) for each in body["findings"])
    return ComparedCase(
        kind=kind,
        id=str(body["id"]),
        stem=stem,
        seed=seed,
        word=word,
        reason=str(body["reason"]),
        accepted=bool(body["accepted"]),
        found=frozenset(found),
        part=part,
    )


def stem_and_seed(key: str, seed: object, client: str) -> tuple[str, str]:
    """Split an id into stem and seed; an id without a seed is its own stem."""
    if seed is not None and key.endswith(f"-{seed}"):
        return key.removesuffix(f"-{seed}"), str(seed)
    # A planned scenario without evidence has a client, but no seed.
    match = re.fullmatch(rf"(.*-{re.escape(client)})-(\d+)", key) if client else None
    return (match[1], match[2]) if match else (key, "")
