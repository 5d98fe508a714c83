"""Evidence → verdicts: many runs are checked in one job, each is decided on its own, and the verdict is written.

Checks find, requirements forbid, and here it is decided, in this order: evidence that cannot be judged is ERROR; an
anomaly of a subject is FAIL, even when something else broke or too little was tried, because what was proven stays proven;
a check that crashed is ERROR; coverage below a floor is INCONCLUSIVE; the rest is PASS. A control is PASS when exactly the
anomalies that it names were found, otherwise ERROR: it says nothing about the subject, only about this judge.

No exception speaks about a subject. Only a session that broke altogether is raised.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from verification.checks import transaction_log
from verification.evidence import transaction_log_rows, verdict_file
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
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.verdict import ScenarioVerdict, Verdict
from verification.vocabulary.violations import Attributed, RawViolation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from verification.checks.facts import Facts
    from verification.evidence.capture_reader import CaptureReader
    from verification.fingerprints.suspect_facts import Suspects
    from verification.spark.dataframes import Dataframes

LOG = logging.getLogger(__name__)
#: Rows of the captures of all runs that are judged in one job. A whole night, 119 runs with 4.3 million of them, is more
#: than a JVM of 1 GB, which is Spark's default, can group: it broke after six minutes.
ROWS_TOGETHER = 500_000
#: The places that findings are shown among, given the findings by run.
Places = Callable[[Mapping[str, Attributed]], "DataFrame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the checks found, by run, and which of them crashed (name and reason).

    `loaded` says whether there was anything to check; `places` is None without facts; `rows` is that of `Facts`.
    """

    violations: dict[str, list[RawViolation]]
    loaded: bool = True
    crashed: tuple[str, ...] = ()
    places: Places | None = field(default=None, compare=False)
    rows: int | None = field(default=None, compare=False)


def _suspects(
    spark: SparkSession, runs: Sequence[RunEvidence], frames: Dataframes, prepared: Callable[[], None]
) -> Suspects | None:
    """What fingerprints leave in doubt; None when that is too much, and when they break: then everything is looked at."""
    from verification.fingerprints.inputs import fingerprint_inputs
    from verification.fingerprints.suspect_facts import derive

    try:
        suspects = derive(fingerprint_inputs(spark, runs, frames), prepared=prepared)
    except Exception:
        LOG.exception("the fingerprints crashed; looking at every record")
        return None
    if suspects is not None:
        LOG.debug("looked at %d of %d rows of the log", suspects.read, suspects.held)
    return suspects


def _looked_at(spark: SparkSession, runs: Sequence[RunEvidence], fingerprints: bool) -> tuple[Facts, Places]:
    """What checks are given of some runs: of what fingerprints leave in doubt, or of every record."""
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
    """Run every check that the runs' experiments can show, in one job; when that crashes, one by one."""
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
    """All violations of a run, those of its transaction log included, and what crashed."""
    steps, broke = tried(
        "check illegal-transition crashed",
        lambda: list(transaction_log.illegal_transitions(transaction_log_rows.rows(run))),
    )
    return [*checked.violations.get(run.run, ()), *(steps or ())], (*checked.crashed, *broke)


def _unfit(directory: RunDirectory, error: UnfitEvidenceError) -> ScenarioVerdict:
    return ScenarioVerdict(
        scenario=directory.root.name,
        run="",
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
        # One file that cannot be read says nothing about the other runs: halves find out whose it is.
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
    """The verdict on a run in which nothing was found."""
    nothing = attribute(())
    finding_files.write(run, nothing, {})
    return run.run, conclude(run, nothing, {}, ())


def _batches(runs: Iterable[RunEvidence]) -> Iterator[list[RunEvidence]]:
    """Runs that one job can hold, in their order; one that is larger by itself is alone."""
    some: list[RunEvidence] = []
    rows = 0
    for run in runs:
        held = sum(run.captured.count(name) for name in CAPTURES if run.captured.present(name))
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
    """The runs of each job, and their verdicts: what is in order, then the others, then what goes by fingerprints first."""
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
    """The captures of a run that lies elsewhere."""
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
    """Judge the evidence of some scenarios and write `verdicts.json` and `findings/` into each.

    Those in which everything agrees are acquitted together (`acquitting`). The others are judged in one job, or in several
    where there is more than `ROWS_TOGETHER` of it. Large runs are judged in jobs of their own, by fingerprints first
    (`verification.fingerprints`); `strategy` says so of all or of none, for comparison.
    `ahead` is the evidence of those that were read already, by their roots. `tell` is given every verdict once it is
    written.

    Returns one verdict per directory, in their order. A directory that cannot be judged has the verdict ERROR with the
    reason; it does not keep the others from being judged.
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
        # The runs were judged together: each is charged its share.
        now = time.monotonic()
        for run, verdict in judged.items():
            ended(fit[run][0], replace(verdict, judged_s=(now - began) / len(runs)))
        began = now
    return [verdicts[number] for number in range(len(order))]
