"""Judge saved evidence again, without a cluster: `python -m verification RUN_DIR…`.

Each RUN_DIR is the directory of a run, of a protocol run, of one scenario or of one protocol case. For scenarios
`verdicts.json` and `findings/` are written anew. With `--reference` the plain-Python reference judge runs instead. It
needs neither Spark nor Java, writes nothing and prints its findings. Scripts of protocol cases are judged without Spark
too. No verdict of theirs is written, because a report judges a script again when it shows it.

A RUN_DIR may be a URI of any file system that Spark reads (`hdfs://…` and `s3a://…` were tried). Then `--output DIR` is
the directory for verdicts and findings, and for copies of the small files, so that `python -m reports DIR/NAME` shows
them. The captures stay where they are (`verification.spark.remote_evidence`).

`python -m verification segments DIR…` compares the replicas in the data directories of stopped brokers
(`verification.replicas.command`).

Exit codes are those of `verification.vocabulary.verdict`, for the evidence that is there. A violation counts if it decides
by the default rule, with --strict always (docs/decision.md). A run that was made with --strict needs no option, and makes
the others strict. Controls do not count, except that a control that is MISSED is an ERROR. Without a decided subject the
code is 2. Planned scenarios that were never tried, waivers and the baseline do not count here: `python -m reports`
decides the run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from verification.command_line import Parser, end_with, interruptions_held
from verification.evidence.run_directory import RunDirectory, case_directories, scenario_directories
from verification.evidence.run_rule import is_strict
from verification.known_bugs.catalogue import load as load_known_bugs
from verification.known_bugs.exit_codes import code_of_script, codes_of_scenarios
from verification.replicas import command as segments
from verification.scripts.judging import judge_scripts
from verification.spark.remote_evidence import CopiedRun, copy_small_files, is_uri, local_path
from verification.vocabulary.errors import SessionError, UnfitEvidenceError, UnknownFloorError
from verification.vocabulary.verdict import ExitCode, Finding, ScenarioVerdict, Verdict, allowance, exit_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.evidence.run_evidence import RunEvidence


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="python -m verification",
        description="Judge saved evidence again.",
        epilog=f"`{segments.COMMAND} DIR…` compares the replicas in the data directories of stopped brokers.",
    )
    parser.add_argument(
        "run_dir", nargs="+", metavar="RUN_DIR", help="directory of a run, a scenario or a protocol case; path or URI"
    )
    parser.add_argument(
        "--output",
        "--into",
        type=Path,
        metavar="DIR",
        help="directory for verdicts and findings (default: next to the evidence)",
    )
    parser.add_argument("--strict", action="store_true", help="every violation decides the exit code")
    parser.add_argument("--reference", action="store_true", help="judge in plain Python, without Spark; writes nothing")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--spark-master", metavar="URL", help="Spark master to judge on: spark://host:7077, yarn, k8s://…"
    )
    where.add_argument("--spark-remote", metavar="URL", help="Spark Connect server to judge on: sc://host:15002")
    parser.add_argument(
        "--spark",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other Spark setting, for instance spark.executor.memory=8g; overrides every default",
    )
    return parser.parse_args(arguments)


def _paths(parsed: argparse.Namespace) -> list[Path]:
    """The directories of this machine; raises UnfitEvidenceError for others."""
    paths = [local_path(text) for text in parsed.run_dir]
    for text, path in zip(parsed.run_dir, paths, strict=True):
        if path is None:
            raise UnfitEvidenceError(
                f"{text} is read through Spark: name a local directory for its verdicts with --output DIR"
                + (", and leave out --reference" if parsed.reference else "")
            )
    return [path for path in paths if path is not None]


def _uris(parsed: argparse.Namespace) -> list[str]:
    """The URIs of the evidence to copy; raises UnfitEvidenceError if two copies would have the same directory."""
    uris = [text if is_uri(text) else Path(text).resolve().as_uri() for text in parsed.run_dir]
    names = Counter(PurePosixPath(uri).name for uri in uris)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise UnfitEvidenceError(f"two of these are called {twice[0]}; judge them with two calls and two --output DIR")
    if parsed.reference:
        raise UnfitEvidenceError("--reference writes nothing and reads directories of this machine; leave out --output")
    return uris


def _directories(
    paths: Sequence[Path], copies: Mapping[Path, CopiedRun] | None = None
) -> tuple[list[RunDirectory], list[Path]]:
    """The directories of scenarios, and those of protocol cases."""
    scenarios: list[RunDirectory] = []
    cases: list[Path] = []
    for path in paths:
        here, scripted = scenario_directories(path), case_directories(path)
        if not here and not scripted:
            raise UnfitEvidenceError(
                f"{path} is neither a run's directory nor a scenario's or a case's: "
                "it holds no scenario.json and no script.json"
            )
        copy = (copies or {}).get(path)
        scenarios += [replace(each, source=copy.source_of(each.root)) for each in here] if copy else here
        cases += scripted
    return scenarios, cases


def _options(parsed: argparse.Namespace) -> dict[str, str]:
    """The user's Spark settings."""
    options = {}
    for text in parsed.spark:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise UnfitEvidenceError(f"--spark {text} is not of the form spark.key=value")
        options[key] = value
    named = {"spark.master": parsed.spark_master, "spark.remote": parsed.spark_remote}
    return options | {key: url for key, url in named.items() if url is not None}


def _line(verdict: ScenarioVerdict) -> str:
    kind = "control " if verdict.control else ""
    return f"{verdict.verdict.name:14} {kind}{verdict.scenario}: {verdict.reason}"


def _session(options: dict[str, str], meanwhile: Callable[[], None] = lambda: None) -> SparkSession:
    from verification.spark.session import start

    # A launcher that is interrupted half-way leaves a JVM that never ends. In another thread it is not interrupted, and
    # this code waits for it. The JVM then ends with this process.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="spark-start") as starter:
        starting = starter.submit(start, options=options)
        meanwhile()
        return starting.result()


def _read(directories: Sequence[RunDirectory]) -> dict[Path, RunEvidence]:
    """The evidence on this machine that can be judged; unfit evidence is reported when its turn comes."""
    found = {}
    for directory in directories:
        if not directory.source:
            # Reading imports modules, and so does the thread that starts Spark.
            with interruptions_held(), suppress(UnfitEvidenceError):
                from verification.evidence.run_evidence import read_run

                found[directory.root] = read_run(directory)
    return found


def _with_spark(
    options: dict[str, str], session: SparkSession | None, directories: Sequence[RunDirectory]
) -> Sequence[ScenarioVerdict]:
    ahead: dict[Path, RunEvidence] = {}
    # Reading a history takes as long as the start of Spark.
    session = session or _session(options, lambda: ahead.update(_read(directories)))

    from verification.judge.judge import judge

    return judge(session, directories, ahead=ahead, tell=lambda verdict: print(_line(verdict), flush=True))


def _with_reference(directories: Sequence[RunDirectory]) -> list[ExitCode]:
    from verification.coverage.coverage import coverage
    from verification.evidence.rows import all_rows
    from verification.evidence.run_evidence import read_run
    from verification.judge.decision import VerdictInputs, decide
    from verification.judge.primary_findings import attribute
    from verification.reference import judge_rows, summary

    codes = []
    for directory in directories:
        try:
            evidence = read_run(directory)
            covered = coverage(evidence)
        except (UnfitEvidenceError, UnknownFloorError) as error:
            print(f"{Verdict.ERROR.name:14} {directory.root.name}: {error}")
            codes.append(ExitCode.ENVIRONMENT)
            continue
        attributed = attribute(judge_rows(all_rows(evidence)))
        primary = [violation for violations in attributed.primary.values() for violation in violations]
        found = tuple(
            Finding(anomaly=str(anomaly), count=len(violations), examples=())
            for anomaly, violations in attributed.primary.items()
        )
        judged = decide(
            VerdictInputs(experiment=evidence.experiment, findings=found, coverage=covered, allowed=attributed.allowed)
        )
        said = "; ".join(filter(None, (summary(primary), allowance(judged.allowed))))
        print(f"{'REFERENCE':14} {evidence.experiment.scenario}: {said}")
        # The reference names no known bug, so each of its violations decides.
        codes += codes_of_scenarios([judged], {}, strict=True)
    return codes


def _scripts(directories: Sequence[Path], *, strict: bool) -> list[ExitCode]:
    bugs, codes = load_known_bugs(), []
    for judged in judge_scripts(directories):
        print(judged)
        code = code_of_script(judged, bugs, strict=strict)
        if code is not None:
            codes.append(code)
    return codes


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print one line per scenario and case, and return the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] == segments.COMMAND:
        return segments.main(words[1:])
    parsed = _arguments(words)
    session = None
    try:
        options = _options(parsed)
        if parsed.output is None:
            paths = _paths(parsed)
            scenarios, cases = _directories(paths)
        else:
            uris = _uris(parsed)
            session = _session(options)
            copies = {copy.root: copy for copy in (copy_small_files(session, uri, parsed.output) for uri in uris)}
            paths = list(copies)
            scenarios, cases = _directories(paths, copies)
    except UnfitEvidenceError as error:
        print(error, file=sys.stderr)
        return ExitCode.USAGE
    except SessionError as error:
        print(error, file=sys.stderr)
        return ExitCode.ENVIRONMENT
    strict = parsed.strict or any(is_strict(path.resolve()) for path in paths)
    codes = _scripts(cases, strict=strict)
    try:
        if scenarios and parsed.reference:
            codes += _with_reference(scenarios)
        elif scenarios:
            judged = _with_spark(options, session, scenarios)
            codes += codes_of_scenarios(judged, load_known_bugs(), strict=strict)
    except SessionError as error:
        print(error, file=sys.stderr)
        codes.append(ExitCode.ENVIRONMENT)
    return exit_code(codes)


if __name__ == "__main__":
    end_with(main, program="python -m verification", kept="verdicts that were already written are kept")
