"""`tox -e pipeline-matrix`: the pipelines on several releases and seeds, and the table of their verdicts.

Each cell is one `tox -e pipelines` in a process of its own, with its own run directory. Results are kept as one JSON line
per cell, so a matrix that was stopped goes on where it stopped. After every cell `docs/generated/pipelines.md` is rendered
from those lines.

A cell is as expected when every right way passed, or failed by known bugs of its release alone, and every known mistake was
detected. Such a result stays valid at any commit, others only at their own. A mistake needs to be detected once on a
release, so that only the first seed has the mistakes: a right way must pass with each seed.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from statistics import median
from typing import Any

from fixtures.errors import UsageError
from fixtures.pipelines.promises import PROMISES
from runner import checkout, matrix_run
from runner.config import ROOT
from runner.matrix_run import row_of
from runner.resumable_matrix import CellStore, add_resuming_options, markdown_table, stored_lines
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.verdict import ExitCode, Verdict, allowance

#: Both are kept in the repository, so that a matrix goes on on another machine.
LINES = ROOT / "docs" / "generated" / "pipelines.jsonl"
TABLE = ROOT / "docs" / "generated" / "pipelines.md"
SUITE = ROOT / "suites" / "pipelines"
#: The half that the quick profile has took 11 minutes on two slow cores, and 19 at a load of 30; three times the whole at
#: that load is a run that hangs.
RUN_WITHIN_S = 6_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun:
    """One run of the matrix: the release of its brokers and its seed."""

    release: str
    seed: int

    @property
    def name(self) -> str:
        """Its name in `--only` and in names of directories."""
        return f"pipelines-{self.release}-{self.seed}"


#: The lines of results, one for each run that was made.
Stored = CellStore[PipelineRun, dict[str, Any]]
FIRST_SEED = 1
MATRIX: tuple[PipelineRun, ...] = (
    *(PipelineRun(release=release, seed=seed) for release in ("4.3.1", "4.4.0") for seed in (FIRST_SEED, 2, 3)),
    PipelineRun(release="3.9.2", seed=FIRST_SEED),
)


def perform(run: PipelineRun, words: str = "") -> dict[str, Any]:
    """Perform one run, or only the pipelines that `words` select as `-k` does, and return its line.

    Raises the errors of `matrix_run.perform`.
    """
    # Only the nightly profile has every pipeline.
    options = [f"--kafka={run.release}", f"--seed={run.seed}", "--runtime=local", "--profile=nightly"]
    options += ["-k", words] if words else []
    options += [] if run.seed == FIRST_SEED else ["-m", "not convict"]
    line, results = matrix_run.perform(run.name, ["suites/pipelines", *options], within_s=RUN_WITHIN_S)
    return {**asdict(run), **line, "rows": [_row(each) for each in (*results["scenarios"], *results["controls"])]}


def scenarios() -> set[str]:
    """The names of all scenarios of pipelines, which are those of their functions."""
    texts = (path.read_text(encoding="utf-8") for path in SUITE.glob("test_*.py"))
    return {name.replace("_", "-") for text in texts for name in re.findall(r"^def test_(\w+)", text, re.MULTILINE)}


def added(before: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    """A line with the rows of a later run of the same release and seed, which replace its own.

    A row whose scenario was renamed or removed goes; it would never be replaced.
    """
    tried, existing = {row["key"] for row in line["rows"]}, scenarios()
    kept = [row for row in before["rows"] if row["key"] not in tried and row["scenario"] in existing]
    return before | {
        "commit": ", ".join(dict.fromkeys((before["commit"], line["commit"]))),
        "seconds": before["seconds"] + line["seconds"],
        "rows": [*kept, *line["rows"]],
    }


def _row(result: dict[str, Any]) -> dict[str, Any]:
    """A scenario: its pipeline, claim and faults, its committed records, and the number of violations of each anomaly."""
    return {
        **row_of(result),
        "scenario": result["scenario"].partition("/")[2],
        "pipeline": result["workload"].removeprefix("pipeline ").partition(":")[0],
        "claim": result["claim"],
        "inputs": result["counts"].get("committed inputs"),
        "outputs": result["counts"].get("committed outputs"),
        "faults": [each["fault"] for each in result["faults"]],
        "allowed": result.get("allowed", {}),
        "found": {finding["anomaly"]: finding["count"] for finding in result["findings"]},
        "gap_s": max((each["longest_gap_s"] for each in result["availability"]), default=None),
    }


def objections(line: dict[str, Any]) -> list[str]:
    """The reasons why a run is not as expected; empty when it is."""
    found = [f"{each['key']} was not detected" for each in line["rows"] if each["convicted"] is False]
    wrong = [each for each in line["rows"] if each["convicted"] is None and not _as_known(each)]
    return found + [f"{each['key']} is {each['verdict']}" for each in wrong]


def _as_known(row: dict[str, Any]) -> bool:
    """Whether a right way passed, or failed by known bugs of the release alone."""
    known = row["known_bugs"]
    return row["verdict"] == Verdict.PASS.name or (row["verdict"] == Verdict.FAIL.name and bool(known) and all(known))


def render(lines: Sequence[dict[str, Any]]) -> str:
    """The page: a row for each pipeline under an attack, with a column for each run."""
    runs = {_run_of(line): line for line in lines}
    made = [run for run in MATRIX if run in runs]
    # A scenario may have got more faults since a run was made: its row is the run with the most.
    rows = sorted((row for line in lines for row in line["rows"]), key=lambda row: len(row["faults"]))
    in_order = sorted(
        {row["scenario"]: row for row in rows}.values(), key=lambda row: (row["pipeline"], row["scenario"])
    )
    heads = [f"{run.release}, seed {run.seed}" for run in made]
    return "\n".join(
        [
            "# Pipelines",
            "",
            "Pipelines under faults, written by `tox -e pipeline-matrix`: one run of `tox -e pipelines` for each column.",
            "A right way must be PASS, or FAIL by a known bug of the release alone, which its cell names. A known mistake",
            "must be detected; its cell counts the violations that were found.",
            "Then come the committed inputs and outputs: records of topics, rows of a database or calls. An input behind",
            "the last offset that a pipeline committed needs no output. The seconds in a cell are the longest time around a",
            "fault in which some partition of an output got nothing committed. A cell says *without* a fault that its",
            "scenario got after that run. A pipeline *takes* the median of its runs, while others run in further lanes.",
            "",
            f"{len(made)} of {len(MATRIX)} runs were made. Mistakes are tried with the first seed of a release.",
            "",
            *markdown_table(
                ["pipeline", "claim", "faults", "takes", *heads],
                (
                    [
                        *(row["pipeline"], row["claim"], _faults(row), _takes(lines, row["scenario"])),
                        *(_cell(runs[run], row) for run in made),
                    ]
                    for row in in_order
                ),
            ),
            "",
            *markdown_table(
                ["run", "ended", "scenarios", "minutes", "commit"],
                ([head, _ended(runs[run], in_order), *_cost(runs[run])] for head, run in zip(heads, made, strict=True)),
            ),
            "",
            "## Promises",
            "",
            "The promise of each framework, by its own documentation. Programs of this suite alone are left out.",
            "",
            *markdown_table(["pipelines", "promise", "source"], ([f"{name}…", *rest] for name, *rest in PROMISES)),
            "",
        ]
    )


def _faults(row: dict[str, Any]) -> str:
    """The faults in the order of their first strikes, and how often each struck."""
    return ", ".join(f"{count} {name}" for name, count in Counter(row["faults"]).items()) or "none"


def _takes(lines: Sequence[dict[str, Any]], scenario: str) -> str:
    seconds = [row["seconds"] for line in lines for row in line["rows"] if row["scenario"] == scenario]
    return f"{median(seconds):.0f} s"


def _cell(line: dict[str, Any], fullest: dict[str, Any]) -> str:
    """The result of a run; `fullest` is the row of the same scenario with the most faults."""
    row = next((each for each in line["rows"] if each["scenario"] == fullest["scenario"]), None)
    if row is None:
        return "not run"
    counted = zip(row["found"].items(), row["known_bugs"], strict=True)
    found = ", ".join(f"{count} {anomaly}{f' ({bug})' if bug else ''}" for (anomaly, count), bug in counted)
    word = {True: "detected", False: "**MISSED**", None: row["verdict"]}[row["convicted"]]
    if allowed := row.get("allowed"):
        word = f"{word}; {allowance(allowed.items())}"
    copied = "" if row["inputs"] is None else f"; {row['inputs']} in, {row['outputs']} out"
    stood = "" if row["gap_s"] is None else f"; {row['gap_s']:.1f} s"
    lacks = Counter(fullest["faults"]) - Counter(row["faults"])
    without = "".join(f"; without {count} {name}" for name, count in lacks.items())
    return (f"{word}: {found}" if found else word) + copied + stood + without


def _ended(line: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    # The decision of a run that leaves mistakes out is never GO.
    ended = f"**not as expected**: {'; '.join(found)}" if (found := objections(line)) else "as expected"
    tried = {row["scenario"] for row in line["rows"]}
    wanted = [row for row in rows if row["convicted"] is None or line["seed"] == FIRST_SEED]
    lacks = sum(row["scenario"] not in tried for row in wanted)
    return f"{ended}; {lacks} not run" if lacks else ended


def _cost(line: dict[str, Any]) -> list[str]:
    return [str(len(line["rows"])), f"{line['seconds'] / 60:.1f}", line["commit"]]


def _run_of(line: dict[str, Any]) -> PipelineRun:
    return PipelineRun(**{each.name: line[each.name] for each in fields(PipelineRun)})


def exit_of(lines: Sequence[dict[str, Any]]) -> ExitCode:
    """The exit code of the whole matrix: any objection is a violation, a run that is missing is inconclusive."""
    if any(map(objections, lines)):
        return ExitCode.VIOLATION
    return ExitCode.CONFORMANT if set(MATRIX) <= set(map(_run_of, lines)) else ExitCode.INCONCLUSIVE


def read() -> Stored:
    """The stored results; each one that is put rewrites them and the page."""
    return stored_lines(LINES, key=_run_of, show=lambda lines: atomic_write(TABLE, render(lines)))


def main(arguments: list[str] | None = None) -> int:
    """Make the runs without a valid result; exit code 1 for any objection, 2 for a missing run, 5 for a broken one."""
    parser = Parser(prog="python -m runner.pipeline_matrix", description=(__doc__ or "").splitlines()[0])
    add_resuming_options(parser)
    parser.add_argument("--only", default="", metavar="TEXT", help="only runs whose name contains this text")
    parser.add_argument(
        "-k", dest="words", default="", metavar="TEXT", help="try only these pipelines, and add them to stored runs"
    )
    options = parser.parse_args(arguments)
    stored, commit = read(), checkout.commit()

    def due() -> list[PipelineRun]:
        return stored.outstanding(
            matrix_run.chosen(MATRIX, [options.only]),
            valid=lambda line: line["commit"] == commit or not objections(line),
            rerun=options.rerun or bool(options.words),
        )

    def performed(run: PipelineRun) -> dict[str, Any]:
        if not options.words:
            return perform(run)
        before = {_run_of(each): each for each in stored.cells}.get(run)
        if before is None:
            # Alone, the few would stand for the whole run.
            raise UsageError(f"{run.name} has no stored run to which -k could add pipelines.")
        return added(before, perform(run, options.words))

    if (ended := matrix_run.fill(stored, due, performed, render_only=options.render_only)) is not None:
        return ended
    for line in stored.cells:
        for each in objections(line):
            print(f"{_run_of(line).name}: {each}", file=sys.stderr)  # noqa: T201 - the voice of a command
    return int(exit_of(stored.cells))


if __name__ == "__main__":
    end_with(
        main, program="python -m runner.pipeline_matrix", kept=f"the results so far are in {LINES.relative_to(ROOT)}"
    )
