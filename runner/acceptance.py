"""`tox -e acceptance`: whole conformance runs over releases, runtimes, clients and seeds, and the table of them.

Each cell of the matrix is one `tox -e conformance` in a process of its own with its own run directory. What has been
run is kept as one JSON line per cell, so that a matrix that was stopped goes on where it stopped;
`docs/generated/acceptance.md` is rendered from those lines after every cell. A cell is acceptable when every control
was convicted, nothing was inconclusive or an error, every violation carries the name of a known bug of that release,
and the run's own exit code and decision say the same. One that was not is run again only when the product has changed:
at the same commit its answer stands. An acceptable one stands at whatever commit it was run; the table names those of
earlier commits. A line goes when its cell has been run again, never before.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from fixtures.errors import OnceproofError
from runner import checkout
from runner.config import ROOT
from runner.pytest_process import OverdueRunError, run_pytest
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.known_bugs.catalogue import KnownBug, affects
from verification.known_bugs.catalogue import load as load_known_bugs
from verification.vocabulary.verdict import Decision, ExitCode

LINES = ROOT / "reports" / "out" / "acceptance.jsonl"
TABLE = ROOT / "docs" / "generated" / "acceptance.md"
#: A run takes about 12 minutes on two cores; four times that is a run that hangs.
RUN_WITHIN_S = 3_000.0


class CellError(OnceproofError):
    """A run of the matrix did not come about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run of the matrix."""

    release: str
    runtime: str
    client: str
    seed: int

    @property
    def name(self) -> str:
        """The directory's name."""
        return f"acceptance-{self.release}-{self.runtime}-{self.client}-{self.seed}"


MATRIX: tuple[Cell, ...] = (
    Cell(release="4.3.1", runtime="local", client="confluent", seed=1),
    Cell(release="4.3.1", runtime="local", client="confluent", seed=2),
    Cell(release="4.3.1", runtime="local", client="confluent", seed=3),
    Cell(release="4.3.1", runtime="docker", client="confluent", seed=1),
    Cell(release="4.3.1", runtime="local", client="java", seed=1),
    Cell(release="4.4.0", runtime="local", client="confluent", seed=1),
    Cell(release="4.2.1", runtime="local", client="confluent", seed=1),
    Cell(release="3.9.2", runtime="local", client="confluent", seed=1),
)


#: How an acceptable run ends: nothing was found, or known bugs were. Whatever else means that something was not decided.
ENDS = {int(ExitCode.CONFORMANT): str(Decision.GO), int(ExitCode.VIOLATION): str(Decision.NO_GO)}


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run one cell and return its line; raises CellError when the run left no results."""
    directory = LINES.parent / f"{cell.name}-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}"
    options = [f"--{name}={value}" for name, value in (("kafka", cell.release), ("runtime", cell.runtime))]
    options += [f"--client={cell.client}", f"--seed={cell.seed}", f"--run-dir={directory}"]
    began = time.monotonic()
    try:
        code = run_pytest(["suites", *options], within_s=RUN_WITHIN_S)
    except OverdueRunError as error:
        raise CellError(
            f"{cell.name} did not end within {RUN_WITHIN_S:.0f} s; its evidence is in {directory}."
        ) from error
    written = directory / "results.json"
    if not written.is_file():
        raise CellError(f"{cell.name} ended with exit code {code} and left no results; what it printed says why.")
    results = json.loads(written.read_text(encoding="utf-8"))
    if results["interrupted"]:
        raise KeyboardInterrupt
    return {
        **asdict(cell),
        "commit": checkout.commit(),
        "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
        "exit_code": code,
        "seconds": round(time.monotonic() - began),
        "decision": results["decision"],
        "scenarios": [_row(each) for each in results["scenarios"]],
        "controls": [_row(each) for each in results["controls"]],
    }


def objections(line: dict[str, Any]) -> list[str]:
    """Why a cell is not acceptable; empty when it is."""
    bugs = load_known_bugs()
    found = [f"control {each['key']} was not convicted" for each in line["controls"] if not each["convicted"]]
    for each in line["scenarios"]:
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
    """Names that were given when a line was written and that nothing has any more."""
    return [bug for bug in dict.fromkeys(row["known_bugs"]) if bug and bug not in bugs]


def _explains(bug: KnownBug | None, release: str) -> bool:
    return bug is not None and affects(bug, release)


def render(lines: list[dict[str, Any]]) -> str:
    """The table of everything that was run."""
    text = [
        "# Acceptance",
        "",
        "Whole runs of the quick profile, written by `tox -e acceptance`. Violations are named by the known bug whose",
        "signature is in the evidence.",
        *_of_what(lines),
    ]
    for line in lines:
        text += [
            "",
            f"## {_titled(line)}",
            "",
            f"commit {line['commit']}, {line['date']}: **{line['decision']}**, exit code {line['exit_code']}, "
            f"{line['seconds']} s. {'; '.join(objections(line)) or 'Acceptable'}.",
            "",
            "| scenario or control | verdict | known bugs | s |",
            "|---|---|---|---|",
        ]
        for each in [*line["scenarios"], *line["controls"]]:
            word = {True: "detected", False: "MISSED", None: each["verdict"]}[each["convicted"]]
            # What a control is convicted of is planted, and no bug of anybody's.
            bugs = "" if each["convicted"] else ", ".join(bug or "unnamed" for bug in dict.fromkeys(each["known_bugs"]))
            text.append(f"| {each['key']} | {word} | {bugs} | {each['seconds']:.0f} |")
    return "\n".join(text) + "\n"


def _of_what(lines: list[dict[str, Any]]) -> list[str]:
    """Which rows are of another commit than the newest one, and which cells were never run."""
    told = []
    # Lines stand in the order in which they were run.
    newest = lines[-1]["commit"] if lines else ""
    if older := [f"{_titled(line)} ({line['commit']})" for line in lines if line["commit"] != newest]:
        told += ["", f"The newest row is of commit {newest}. Of other commits: {'; '.join(older)}."]
    if missing := never_run(lines):
        told += ["", f"Not run yet: {'; '.join(_titled(asdict(cell)) for cell in missing)}."]
    return told


def _titled(cell: dict[str, Any]) -> str:
    return f"Kafka {cell['release']}, {cell['runtime']}, {cell['client']}, seed {cell['seed']}"


def never_run(lines: list[dict[str, Any]]) -> list[Cell]:
    """The cells of the matrix that have no line at all."""
    return [cell for cell in MATRIX if not any(_is_of(line, cell) for line in lines)]


def wanted(lines: list[dict[str, Any]], commit: str, *, again: bool, only: str) -> list[Cell]:
    """The cells to run now: those without an answer, or with `again` all of them, whose name contains a text."""
    cells = list(MATRIX) if again else outstanding(lines, commit)
    return [cell for cell in cells if only in cell.name]


def exit_of(lines: list[dict[str, Any]]) -> ExitCode:
    """The exit code of the whole matrix: any objection is a violation, a cell that was never run is inconclusive."""
    if any(map(objections, lines)):
        return ExitCode.VIOLATION
    return ExitCode.INCONCLUSIVE if never_run(lines) else ExitCode.CONFORMANT


def outstanding(lines: list[dict[str, Any]], commit: str) -> list[Cell]:
    """The cells without an answer: never run, or not acceptable and the product has changed since."""
    settled = [line for line in lines if line["commit"] == commit or not objections(line)]
    return [cell for cell in MATRIX if not any(_is_of(line, cell) for line in settled)]


def _is_of(line: dict[str, Any], cell: Cell) -> bool:
    return {**line, **asdict(cell)} == line


def _row(result: dict[str, Any]) -> dict[str, Any]:
    return {
        "key": result["id"],
        "verdict": result["verdict"],
        "convicted": result.get("convicted"),
        "known_bugs": [finding.get("known_bug") or "" for finding in result.get("findings", [])],
        "seconds": result["seconds"]["actual"] or 0.0,
    }


def _done() -> list[dict[str, Any]]:
    if not LINES.is_file():
        return []
    return [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()]


def main(arguments: list[str] | None = None) -> int:
    """Run what has no answer yet; exit code 1 when any cell has objections, 2 when one is missing, 5 when one broke."""
    parser = Parser(prog="python -m runner.acceptance", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--rerun", "--again", action="store_true", help="run all cells again, also those with a stored result"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only cells whose name contains this text")
    options = parser.parse_args(arguments)
    lines = _done()
    for cell in wanted(lines, checkout.commit(), again=options.rerun, only=options.only):
        try:
            ran = run_cell(cell)
        except CellError as error:
            print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
            return int(ExitCode.ENVIRONMENT)
        lines = [line for line in lines if not _is_of(line, cell)] + [ran]
        LINES.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(LINES, "".join(json.dumps(line) + "\n" for line in lines))
        atomic_write(TABLE, render(lines))
    for cell in never_run(lines):
        print(f"{cell.name} was never run", file=sys.stderr)  # noqa: T201 - the voice of a command
    return int(exit_of(lines))


if __name__ == "__main__":
    end_with(main, program="python -m runner.acceptance", kept=f"what has been run is in {LINES.relative_to(ROOT)}")
