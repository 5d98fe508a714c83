"""`tox -e acceptance`: whole conformance runs over releases, runtimes, clients and seeds, and the table of them.

Five seeds of two releases show that a decision does not depend on the seed.

Each cell of the matrix is one `tox -e conformance` in a process of its own, with its own run directory. Results are
kept as one JSON line per cell, so a matrix that was stopped goes on where it stopped. After every cell
`docs/generated/acceptance.md` is rendered from those lines.

A run is acceptable when every control was detected and nothing was inconclusive or an error. Every violation must have
the name of a known bug of that release, and the run's exit code and decision must agree with that. A result that is not
acceptable stays valid at the same commit only. An acceptable one stays valid at any commit; the table names those of
earlier commits. A line is replaced only after its run has been repeated.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

from runner import checkout, matrix_run
from runner.config import ROOT
from runner.matrix_run import row_of
from runner.resumable_matrix import CellStore, add_resuming_options, markdown_table, stored_lines
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.known_bugs.catalogue import KnownBug, affects
from verification.known_bugs.catalogue import load as load_known_bugs
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

#: Both are kept in the repository, so that a matrix goes on on another machine.
LINES = ROOT / "docs" / "generated" / "acceptance.jsonl"
TABLE = ROOT / "docs" / "generated" / "acceptance.md"
#: A run takes about 12 minutes on two cores; four times that is a run that hangs.
RUN_WITHIN_S = 3_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRun:
    """One run of the matrix: its options."""

    release: str
    runtime: str
    client: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its directory."""
        return f"acceptance-{self.release}-{self.runtime}-{self.client}-{self.seed}"


#: The lines of results, one for each run that was made.
Stored = CellStore[AcceptanceRun, dict[str, Any]]
MATRIX: tuple[AcceptanceRun, ...] = (
    AcceptanceRun(release="4.3.1", runtime="local", client="confluent", seed=1),
    *(
        AcceptanceRun(release=release, runtime="local", client="confluent", seed=seed)
        for release in ("4.4.0", "4.2.1")
        for seed in range(1, 6)
    ),
    AcceptanceRun(release="4.3.1", runtime="docker", client="confluent", seed=1),
    AcceptanceRun(release="4.3.1", runtime="local", client="java", seed=1),
    AcceptanceRun(release="3.9.2", runtime="local", client="confluent", seed=1),
)


#: Cases that are only counted; a line keeps each of the others.
UNREMARKABLE = (Verdict.PASS.name, Verdict.NOT_APPLICABLE.name)

#: How an acceptable run ends: without a known bug that decides, or with one. Any other end leaves something undecided.
ENDS = {int(ExitCode.CONFORMANT): str(Decision.GO), int(ExitCode.VIOLATION): str(Decision.NO_GO)}


def perform(run: AcceptanceRun) -> dict[str, Any]:
    """Perform one run and return its line. Raises the errors of `matrix_run.perform`."""
    options = [f"--kafka={run.release}", f"--runtime={run.runtime}", f"--client={run.client}", f"--seed={run.seed}"]
    line, results = matrix_run.perform(run.name, ["suites", *options], within_s=RUN_WITHIN_S)
    return {**asdict(run), **line, **summed(results, UNREMARKABLE)}


def summed(results: dict[str, Any], unremarkable: Sequence[str]) -> dict[str, Any]:
    """What a line keeps of the results of a run; cases with `unremarkable` verdicts are only counted."""
    return {
        "scenarios": [row_of(each) for each in results["scenarios"]],
        "controls": [row_of(each) for each in results["controls"]],
        "case_verdicts": dict(Counter(each["verdict"] for each in results["cases"]).most_common()),
        "cases": [_case_row(each) for each in results["cases"] if each["verdict"] not in unremarkable],
    }


def objections(line: dict[str, Any]) -> list[str]:
    """The reasons why a run is not acceptable; empty when it is."""
    bugs = load_known_bugs()
    found = [f"control {each['key']} was not detected" for each in line["controls"] if not each["convicted"]]
    for each in [*line["scenarios"], *line["cases"]]:
        found += [f"{each['key']} is named {bug}, which no known bug is called" for bug in _unknown(each, bugs)]
        unnamed = [bug for bug in each["known_bugs"] if not _explains(bugs.get(bug), line["release"])]
        if each["verdict"] in ("INCONCLUSIVE", "ERROR"):
            found.append(f"{each['key']} is {each['verdict']}")
        elif each["verdict"] == "FAIL" and (unnamed or not each["known_bugs"]):
            found.append(f"{each['key']} fails without a known bug of {line['release']}")
    code, decision = line["exit_code"], line["decision"]
    if ENDS.get(code) != decision:
        found.append(f"the run ended with exit code {code} and {decision}")
    return found


def _unknown(row: dict[str, Any], bugs: Mapping[str, KnownBug]) -> list[str]:
    """Names of known bugs in a line that have left the list since."""
    return [bug for bug in dict.fromkeys(row["known_bugs"]) if bug and bug not in bugs]


def _explains(bug: KnownBug | None, release: str) -> bool:
    return bug is not None and affects(bug, release)


def render(lines: Sequence[dict[str, Any]]) -> str:
    """The page: a table of scenarios and controls for each run, and its protocol cases in numbers."""
    text = [
        "# Acceptance",
        "",
        "Whole runs of the quick profile, written by `tox -e acceptance`. Violations are named by the known bug whose",
        "signature is in the evidence.",
        *_other_commits_and_missing(lines),
    ]
    for line in lines:
        text += [
            "",
            f"## {_titled(line)}",
            "",
            f"commit {line['commit']}, {line['date']}: **{line['decision']}**, exit code {line['exit_code']}, "
            f"{line['seconds']} s. {'; '.join(objections(line)) or 'Acceptable'}.",
            "",
            *markdown_table(
                ["scenario or control", "verdict", "known bugs", "s"],
                map(_table_row, [*line["scenarios"], *line["controls"]]),
            ),
            "",
            _cases_of(line),
        ]
    return "\n".join(text) + "\n"


def _cases_of(line: dict[str, Any]) -> str:
    """How many protocol cases ended with which verdict, and the known bugs of those that failed."""
    bugs = sorted({bug for each in line["cases"] if each["verdict"] == "FAIL" for bug in each["known_bugs"]})
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in line["case_verdicts"].items())
    return f"Protocol cases: {verdicts or 'none'}.{' Known bugs: ' + ', '.join(bugs) + '.' if bugs else ''}"


def _table_row(row: dict[str, Any]) -> list[str]:
    word = {True: "detected", False: "MISSED", None: row["verdict"]}[row["convicted"]]
    # The violation of a control is planted; it has no known bug.
    bugs = "" if row["convicted"] else ", ".join(bug or "unnamed" for bug in dict.fromkeys(row["known_bugs"]))
    return [row["key"], word, bugs, f"{row['seconds']:.0f}"]


def _other_commits_and_missing(lines: Sequence[dict[str, Any]]) -> list[str]:
    """The runs that are of another commit than the newest one, and those that are missing."""
    notes = []
    # Lines stand in the order in which the runs were made.
    newest = lines[-1]["commit"] if lines else ""
    if older := [f"{_titled(line)} ({line['commit']})" for line in lines if line["commit"] != newest]:
        notes += ["", f"The newest row is of commit {newest}. Of other commits: {'; '.join(older)}."]
    if missing := never_run(lines):
        notes += ["", f"Not run yet: {'; '.join(_titled(asdict(run)) for run in missing)}."]
    return notes


def _titled(run: dict[str, Any]) -> str:
    return f"Kafka {run['release']}, {run['runtime']}, {run['client']}, seed {run['seed']}"


def never_run(lines: Sequence[dict[str, Any]]) -> list[AcceptanceRun]:
    """The runs of the matrix that have no line."""
    done = set(map(_run_of, lines))
    return [run for run in MATRIX if run not in done]


def outstanding(stored: Stored, commit: str, *, rerun: bool = False, only: str = "") -> list[AcceptanceRun]:
    """The runs to make now, whose names contain `only`; valid are acceptable results, and all of the same commit.

    Raises UsageError when no name does.
    """
    return stored.outstanding(
        matrix_run.chosen(MATRIX, [only]),
        valid=lambda line: line["commit"] == commit or not objections(line),
        rerun=rerun,
    )


def exit_of(lines: Sequence[dict[str, Any]]) -> ExitCode:
    """The exit code of the whole matrix: any objection is a violation, a run that is missing is inconclusive."""
    if any(map(objections, lines)):
        return ExitCode.VIOLATION
    return ExitCode.INCONCLUSIVE if never_run(lines) else ExitCode.CONFORMANT


def _run_of(line: dict[str, Any]) -> AcceptanceRun:
    return AcceptanceRun(**{each.name: line[each.name] for each in fields(AcceptanceRun)})


def _case_row(result: dict[str, Any]) -> dict[str, Any]:
    return {
        "key": result["id"],
        "verdict": result["verdict"],
        "known_bugs": [known["id"] for known in result["known"] if known["named"]],
    }


def read() -> Stored:
    """The stored results; each one that is put rewrites them and the page."""
    return stored_lines(LINES, key=_run_of, show=lambda lines: atomic_write(TABLE, render(lines)))


def main(arguments: list[str] | None = None) -> int:
    """Make the runs without a valid result; exit code 1 for any objection, 2 for a missing run, 5 for a broken one."""
    parser = Parser(prog="python -m runner.acceptance", description=(__doc__ or "").splitlines()[0])
    add_resuming_options(parser)
    parser.add_argument("--only", default="", metavar="TEXT", help="only cells whose name contains this text")
    options = parser.parse_args(arguments)
    stored = read()
    due = partial(outstanding, stored, checkout.commit(), rerun=options.rerun, only=options.only)
    if (ended := matrix_run.fill(stored, due, perform, render_only=options.render_only)) is not None:
        return ended
    for run in never_run(stored.cells):
        print(f"{run.name} was never run", file=sys.stderr)  # noqa: T201 - the voice of a command
    return int(exit_of(stored.cells))


if __name__ == "__main__":
    end_with(main, program="python -m runner.acceptance", kept=f"the results so far are in {LINES.relative_to(ROOT)}")
