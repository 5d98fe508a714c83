"""`tox -e upgrade-matrix`: the upgrade gate on many paths, each with the decision that it must end with.

The paths and their decisions are data (`runner/upgrades/paths.toml`). Each is one `tox -e upgrade` in a process of its own,
with its own run directory. Results are kept as one JSON line per path, so a matrix that was stopped goes on where it
stopped. After every path `docs/generated/upgrades.md` and the pairs in `docs/generated/track-record.md` are rendered from
those lines.

A path is as expected when its decision and its known bugs are, it has none of those that it must not have, every control
was detected, and nothing is inconclusive, an error, or a violation that neither a known bug nor a setting explains. Such
a result stays valid at any commit, others only at their own.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from runner import checkout, matrix_run
from runner.config import DEFAULT_CLIENT, ROOT
from runner.matrix_run import row_of
from runner.resumable_matrix import (
    CellStore,
    add_resuming_options,
    markdown_table,
    replace_between_markers,
    stored_lines,
)
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.known_bugs.catalogue import load as load_known_bugs
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

PATHS = Path(__file__).parent / "upgrades" / "paths.toml"
#: Both are kept in the repository, so that a matrix goes on on another machine.
LINES = ROOT / "docs" / "generated" / "upgrades.jsonl"
TABLE = ROOT / "docs" / "generated" / "upgrades.md"
RECORD = ROOT / "docs" / "generated" / "track-record.md"
BEGIN, END = "<!-- pairs: begin -->", "<!-- pairs: end -->"
#: A path takes 5 minutes on two cores; on a machine that is busy with other work four times that.
PATH_WITHIN_S = 1_800.0
_UNDECIDED = (Verdict.INCONCLUSIVE.name, Verdict.ERROR.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPath:
    """One path of the matrix: its run, and how it must end."""

    source: str
    target: str
    client: str = DEFAULT_CLIENT
    seed: int = 1
    options: tuple[str, ...] = ()
    decision: str = str(Decision.GO)
    bugs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    why: str = ""

    @property
    def name(self) -> str:
        """Its name in the table, in `--paths` and in names of directories."""
        words = [f"{self.source}-to-{self.target}", self.client, str(self.seed)]
        return "-".join([*words, *(re.sub(r"[=/]", "-", each.strip("-")) for each in self.options)])

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options of its run."""
        fixed = (f"--from={self.source}", f"--to={self.target}", "--runtime=local", f"--client={self.client}")
        return (*fixed, f"--seed={self.seed}", *self.options)


#: The lines of results, one for each path that was run.
StoredPaths = CellStore[str, dict[str, Any]]


def matrix() -> tuple[MatrixPath, ...]:
    """The paths in their order."""
    return tuple(map(_path_of, tomllib.loads(PATHS.read_text(encoding="utf-8"))["path"]))


def _path_of(entry: dict[str, Any]) -> MatrixPath:
    named = {"from": "source", "to": "target"}
    values: dict[str, Any] = {
        named.get(name, name): tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return MatrixPath(**values)


def perform(path: MatrixPath) -> dict[str, Any]:
    """Run one path and return its line. Raises the errors of `matrix_run.perform`."""
    line, results = matrix_run.perform(
        f"upgrade-{path.name}", ["suites/upgrades", *path.arguments], within_s=PATH_WITHIN_S
    )
    rows = {kind: [row_of(each) for each in results[kind]] for kind in ("scenarios", "controls")}
    return {"name": path.name, **line, **rows}


def objections(path: MatrixPath, line: dict[str, Any]) -> list[str]:
    """The reasons why a result is not as expected; empty when it is."""
    found = [f"control {each['key']} was not detected" for each in line["controls"] if not each["convicted"]]
    if line["decision"] != path.decision:
        found.append(f"it ended {line['decision']} and not {path.decision}")
    seen = {bug for each in line["scenarios"] for bug in each["known_bugs"]}
    found += [f"{bug} was not found" for bug in path.bugs if bug not in seen]
    found += [f"{bug} was found" for bug in path.without if bug in seen]
    for each in line["scenarios"]:
        if each["verdict"] in _UNDECIDED:
            found.append(f"{each['key']} is {each['verdict']}")
        elif each["verdict"] == Verdict.FAIL.name and ("" in each["known_bugs"] or not each["known_bugs"]):
            found.append(f"{each['key']} fails without a known bug")
    return found


def render(lines: Iterable[dict[str, Any]]) -> str:
    """The page: a table of all paths, with the result of each that was run."""
    results = {line["name"]: line for line in lines}
    paths = matrix()
    return "\n".join(
        [
            "# Upgrades",
            "",
            "Paths of the [upgrade gate](../upgrades.md), written by `tox -e upgrade-matrix`: one run each, in the quick",
            "profile with combined nodes unless the options say otherwise.",
            "",
            f"{sum(1 for path in paths if path.name in results)} of {len(paths)} paths were run.",
            "",
            *markdown_table(
                ["path", "client, seed", "for", "expected", "decision", "known bugs", "minutes", "commit"],
                (_row(path, results.get(path.name)) for path in paths),
            ),
            "",
        ]
    )


def pairs(lines: Iterable[dict[str, Any]]) -> str:
    """The table for the track record: known bugs and settings, the paths that must show each, and those that must not."""
    results = {line["name"]: line for line in lines}
    paths = matrix()
    rows = [
        [
            bug.id,
            bug.title,
            *_sides(bug.id, paths, results),
        ]
        for bug in load_known_bugs().values()
        if any(bug.id in path.bugs for path in paths)
    ]
    explained = {name: path for path in paths for name in path.bugs if name not in load_known_bugs()}
    rows += [[name, first.why, *_sides(name, paths, results)] for name, first in explained.items()]
    return "\n".join(["", *markdown_table(["bug", "what", "path with it", "path without it"], rows), "", ""])


def _sides(name: str, paths: Sequence[MatrixPath], results: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """The outcomes of the paths that must show a bug or the effect of a setting, and of those that must not."""
    for pair in (attrgetter("bugs"), attrgetter("without")):
        outcomes = (_outcome(path, results.get(path.name)) for path in paths if name in pair(path))
        yield "<br>".join(outcomes) or "none known"


def _outcome(path: MatrixPath, line: dict[str, Any] | None) -> str:
    words = [f"{path.source} → {path.target}", path.client, *(f"`{each}`" for each in path.options)]
    if line is None:
        return f"{', '.join(words)}: not run yet"
    return f"{', '.join(words)}: {'; '.join(objections(path, line)) or 'as expected, ' + line['decision']}"


def _row(path: MatrixPath, line: dict[str, Any] | None) -> list[str]:
    options = f" `{' '.join(path.options)}`" if path.options else ""
    expected = " ".join([path.decision, *path.bugs])
    fixed = [f"{path.source} → {path.target}", f"{path.client}, {path.seed}{options}", path.why, expected]
    if line is None:
        return [*fixed, "not run yet", "", "", ""]
    bugs = sorted({bug or "unnamed" for each in line["scenarios"] for bug in each["known_bugs"]})
    complaint = "; ".join(objections(path, line))
    decision = f"**{line['decision']}**: {complaint}" if complaint else line["decision"]
    return [*fixed, decision, ", ".join(bugs), f"{line['seconds'] / 60:.1f}", line["commit"]]


def outstanding(stored: StoredPaths, paths: Sequence[MatrixPath], commit: str, *, rerun: bool) -> list[MatrixPath]:
    """The paths to run now."""
    named = {path.name: path for path in paths}
    valid = stored.outstanding(
        named, valid=lambda line: line["commit"] == commit or not objections(named[line["name"]], line), rerun=rerun
    )
    return [named[name] for name in valid]


def exit_of(paths: Sequence[MatrixPath], stored: StoredPaths) -> ExitCode:
    """1 when a path did not end as expected, 2 when one was never run."""
    lines = {line["name"]: line for line in stored.cells}
    if any(path.name in lines and objections(path, lines[path.name]) for path in paths):
        return ExitCode.VIOLATION
    return ExitCode.CONFORMANT if all(path.name in lines for path in paths) else ExitCode.INCONCLUSIVE


def read() -> StoredPaths:
    """The stored results; each one that is put rewrites them and the page."""
    return stored_lines(LINES, key=lambda line: str(line["name"]), show=_show)


def _show(lines: Sequence[dict[str, Any]]) -> None:
    atomic_write(TABLE, render(lines))
    page = RECORD.read_text(encoding="utf-8")
    atomic_write(RECORD, replace_between_markers(page, BEGIN, END, new=pairs(lines), name=str(RECORD)))


def main(arguments: list[str] | None = None) -> int:
    """Run the paths without a valid result; exit code 1 for any objection, 2 for a missing run, 5 for a broken one."""
    parser = Parser(prog="python -m runner.upgrade_matrix", description=(__doc__ or "").splitlines()[0])
    add_resuming_options(parser)
    parser.add_argument("--paths", nargs="+", default=[], metavar="TEXT", help="only paths whose name contains a text")
    options = parser.parse_args(arguments)
    stored = read()

    def due() -> list[MatrixPath]:
        paths = matrix_run.chosen(matrix(), options.paths)
        return outstanding(stored, paths, checkout.commit(), rerun=options.rerun)

    if (ended := matrix_run.fill(stored, due, perform, render_only=options.render_only)) is not None:
        return ended
    paths = matrix_run.chosen(matrix(), options.paths)
    for path in paths:
        for line in stored.cells:
            if line["name"] == path.name and (complaint := "; ".join(objections(path, line))):
                print(f"{path.name}: {complaint}", file=sys.stderr)  # noqa: T201 - the voice of a command
    return int(exit_of(paths, stored))


if __name__ == "__main__":
    end_with(
        main, program="python -m runner.upgrade_matrix", kept=f"the results so far are in {LINES.relative_to(ROOT)}"
    )
