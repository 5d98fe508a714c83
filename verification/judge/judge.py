"""Judges evidence: checks many runs in one job, decides each run on its own, and writes its verdict.

The checks find anomalies; the requirements forbid them; this module decides, in this order. Evidence that cannot be
judged is ERROR. An anomaly of a subject is FAIL, even if something else failed or coverage is too low: proof stays
proof. A check that crashed is ERROR. Coverage below a floor is INCONCLUSIVE. Everything else is PASS. A control is PASS
if exactly the anomalies that it names were found, else ERROR: a control tests the judge, not the subject.

An exception is never a statement about a subject. Only a Spark session that broke altogether is raised.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from verification.checks.walks import WALKS
from verification.evidence import verdict_file
from verification.evidence.rows import walked_rows
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import RunEvidence, check_distinct, read_run
from verification.fingerprints.strategy import Strategy, fits
from verification.judge import finding_files
from verification.judge.assemble import CAPTURES, Around, conclude, tried
from verification.judge.primary_findings import attribute
from verification.judge.quick_pass import in_order
from verification.judge.run_checks import collect
from verification.spark.codegen import interpreted
from verification.spark.errors import in_a_line
from verification.vocabulary import experiment
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.experiment import UnfitExperimentError
from verification.vocabulary.verdict import ScenarioVerdict, Verdict
from verification.vocabulary.violations import Attributed, RawViolation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from verification.checks.facts import EvidenceFacts
    from verification.evidence.capture_reader import CaptureReader
    from verification.fingerprints.suspect_facts import Suspects
    from verification.spark.dataframes import Dataframes

LOG = logging.getLogger(__name__)
#: The most rows of captures that are judged in one job. A whole night (119 runs, 4.3 million rows) is more than a JVM
#: of 1 GB, Spark's default, can group: it failed after six minutes.
ROWS_TOGETHER = 500_000
#: The places around the examples of findings, given the findings by run.
Places = Callable[[Mapping[str, Attributed]], "DataFrame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The violations that the checks found, by run, and the checks that crashed, with reasons.

    `loaded` says whether the evidence could be loaded. `places` is None without facts. `rows` is that of `EvidenceFacts`.
    """

    violations: dict[str, list[RawViolation]]
    loaded: bool = True
    crashed: tuple[str, ...] = ()
    places: Places | None = field(default=None, compare=False)
    rows: int | None = field(default=None, compare=False)


def _suspects(
    spark: SparkSession, runs: Sequence[RunEvidence], frames: Dataframes, prepared: Callable[[], None]
) -> Suspects | None:
    """The suspects of the fingerprints; None when there are too many, or when the fingerprints fail.

    Then every record is checked.
    """
    from verification.fingerprints.inputs import fingerprint_inputs
    from verification.fingerprints.suspect_facts import derive

    try:
        suspects = derive(fingerprint_inputs(spark, runs, frames), prepared=prepared)
    except Exception:
        LOG.exception("the fingerprints crashed; checking every record")
        return None
    if suspects is not None:
        LOG.debug("checked %d of %d rows of the log", suspects.read, suspects.held)
    return suspects


def _looked_at(spark: SparkSession, runs: Sequence[RunEvidence], fingerprints: bool) -> tuple[EvidenceFacts, Places]:
    """The facts for the checks: about the suspects of the fingerprints, or about every record."""
    from verification.checks.facts import derive
    from verification.fingerprints.warm_up import prepare
    from verification.spark.dataframes import BULK, acks, load

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="workers") as pool:
        preparing = pool.submit(prepare, spark) if fingerprints else None
        frames = load(spark, runs, bulk=BULK - {"acks"} if fingerprints else BULK)
        suspects = _suspects(spark, runs, frames, preparing.result) if preparing is not None else None
    if suspects is not None:
        return suspects.facts, partial(suspects.around, spark)
    facts = derive(replace(frames, acks=acks(spark, runs)) if fingerprints else frames)
    return facts, lambda _: facts.places


def check(spark: SparkSession, runs: Sequence[RunEvidence], *, fingerprints: bool = False) -> Checked:
    """Run every check that the runs' experiments allow, in one job; if that crashes, one by one."""
    from verification.checks import CHECKS

    checks = [each for each in CHECKS if any(each.applies(run.experiment) for run in runs)]
    try:
        facts, places = _looked_at(spark, runs, fingerprints)
    except Exception as error:  # noqa: BLE001 - whatever broke, it is not the subject
        reason = f"the evidence could not be loaded: {in_a_line(error)}"
        return Checked(violations={}, loaded=False, crashed=(reason,))
    try:
        return Checked(violations=collect(facts, checks), places=places, rows=facts.rows)
    except Exception:
        LOG.exception("the checks crashed together; running them one by one")
    found: dict[str, list[RawViolation]] = {}
    crashed: list[str] = []
    for each in checks:
        try:
            for run, violations in collect(facts, [each]).items():
                found.setdefault(run, []).extend(violations)
        except Exception as error:  # noqa: BLE001 - a crashed check is an ERROR of ours, never a verdict on the subject
            crashed.append(f"check {each.name} crashed: {in_a_line(error)}")
    return Checked(violations=found, crashed=tuple(crashed), places=places, rows=facts.rows)


def _walk(run: RunEvidence, checked: Checked) -> tuple[list[RawViolation], tuple[str, ...]]:
    """All violations of a run, including those that need no dataframes, and what crashed."""
    found = list(checked.violations.get(run.run, ()))
    crashed = list(checked.crashed)
    for name, walk in WALKS.items():
        walked, broke = tried(f"check {name} crashed", lambda walk=walk: walk.over(walked_rows(run)))  # type: ignore[misc]
        found += walked or ()
        crashed += broke
    return found, tuple(crashed)


def _unfit(directory: RunDirectory, error: UnfitEvidenceError) -> ScenarioVerdict:
    run = ""
    # A run that was killed leaves its description, but no whole evidence.
    with suppress(UnfitExperimentError):
        run = experiment.read(directory.experiment).run
    return ScenarioVerdict(
        scenario=directory.root.name,
        run=run,
        verdict=Verdict.ERROR,
        reason=str(error),
        findings=(),
        coverage=(),
        requirements=(),
    )


def _written(directory: RunDirectory, verdict: ScenarioVerdict) -> ScenarioVerdict:
    if directory.root.is_dir():
        verdict_file.write(directory.verdicts, verdict)
    return verdict


def _around(spark: SparkSession, checked: Checked, found: Mapping[str, Attributed]) -> Around:
    if checked.places is None or not any(each.primary for each in found.values()):
        return {}
    places = checked.places(found)
    with interpreted(spark, checked.rows):
        return finding_files.surroundings(spark, places, found)


def _judge_together(
    spark: SparkSession, runs: Sequence[RunEvidence], *, fingerprints: bool
) -> Iterable[tuple[str, ScenarioVerdict]]:
    checked = check(spark, runs, fingerprints=fingerprints)
    if not checked.loaded and len(runs) > 1:
        # One unreadable file must not affect the other runs: judging each half separately isolates it.
        middle = len(runs) // 2
        yield from _judge_together(spark, runs[:middle], fingerprints=fingerprints)
        yield from _judge_together(spark, runs[middle:], fingerprints=fingerprints)
        return
    walked = {run.run: _walk(run, checked) for run in runs}
    found = {run: attribute(violations) for run, (violations, _) in walked.items()}
    around, unseen = tried("no records could be shown", lambda: _around(spark, checked, found))
    for run in runs:
        finding_files.write(run, found[run.run], around or {})
        lacking = unseen if found[run.run].primary else ()
        yield run.run, conclude(run, found[run.run], around or {}, (*walked[run.run][1], *lacking))


def _passed(run: RunEvidence) -> tuple[str, ScenarioVerdict]:
    """The verdict on a run without findings."""
    nothing = attribute(())
    finding_files.write(run, nothing, {})
    return run.run, conclude(run, nothing, {}, ())


def _batches(runs: Iterable[RunEvidence]) -> Iterator[list[RunEvidence]]:
    """Groups of runs that one job can hold, in order. A run that is too large for a group is alone."""
    some: list[RunEvidence] = []
    rows = 0
    for run in runs:
        held = sum(run.capture_reader.count(name) for name in CAPTURES if run.capture_reader.present(name))
        if some and rows + held > ROWS_TOGETHER:
            yield some
            some, rows = [], 0
        some.append(run)
        rows += held
    if some:
        yield some


def _judgements(
    spark: SparkSession, runs: Sequence[RunEvidence], strategy: Strategy
) -> Iterator[tuple[list[RunEvidence], Iterable[tuple[str, ScenarioVerdict]]]]:
    """The runs of each job, and their verdicts: quick passes first, then the other small runs, then the large ones."""
    large = [run for run in runs if fits(run, strategy)]
    names = {run.run for run in large}
    small = [run for run in runs if run.run not in names]
    quiet = in_order(spark, small) if strategy is Strategy.BY_SIZE else frozenset[str]()
    if quiet:
        yield [run for run in small if run.run in quiet], map(_passed, (run for run in small if run.run in quiet))
    for some in _batches(run for run in small if run.run not in quiet):
        yield some, _judge_together(spark, some, fingerprints=False)
    for some in _batches(large):
        yield some, _judge_together(spark, some, fingerprints=True)


def _captured(spark: SparkSession, directory: RunDirectory) -> CaptureReader | None:
    """The captures of remote evidence."""
    if not directory.source:
        return None
    from verification.spark.remote_evidence import RemoteCaptures

    return RemoteCaptures(spark, directory.source)


def judge(
    spark: SparkSession,
    directories: Iterable[RunDirectory],
    *,
    strategy: Strategy = Strategy.BY_SIZE,
    ahead: Mapping[Path, RunEvidence] | None = None,
    tell: Callable[[ScenarioVerdict], None] = lambda _: None,
) -> list[ScenarioVerdict]:
    """Judge the evidence of some scenarios, and write `verdicts.json` and `findings/` into each.

    Small runs in which everything agrees pass together (`quick_pass`). The others are judged in one job, or in several
    if they have more than `ROWS_TOGETHER` rows. Large runs are judged in jobs of their own, by fingerprints first
    (`verification.fingerprints`). `strategy` changes that for all runs, to compare. `ahead` is evidence that was
    already read, by directory. `tell` receives every verdict once it is written.

    Returns one verdict per directory, in order. A directory that cannot be judged gets the verdict ERROR with the
    reason; the others are judged anyway.
    """
    order = list(directories)
    read = ahead or {}
    fit: dict[str, tuple[int, RunEvidence]] = {}
    verdicts: dict[int, ScenarioVerdict] = {}

    def ended(number: int, verdict: ScenarioVerdict) -> None:
        verdicts[number] = _written(order[number], verdict)
        tell(verdict)

    began = time.monotonic()
    for number, directory in enumerate(order):
        try:
            evidence = read.get(directory.root) or read_run(directory, _captured(spark, directory))
            check_distinct([*(each for _, each in fit.values()), evidence])
            fit[evidence.run] = number, evidence
        except UnfitEvidenceError as error:
            ended(number, _unfit(directory, error))
    for runs, judging in _judgements(spark, [evidence for _, evidence in fit.values()], strategy):
        judged = dict(judging)
        # The runs were judged together, so each gets an equal share of the time.
        now = time.monotonic()
        for run, verdict in judged.items():
            ended(fit[run][0], replace(verdict, judged_s=(now - began) / len(runs)))
        began = now
    return [verdicts[number] for number in range(len(order))]
