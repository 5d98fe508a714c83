"""The ledger of a bisection: every run on every build, as JSON and Markdown, written after each run.

A run is kept with the commit of this checkout. So a bisection that was stopped goes on where it stopped, and one with
other builds in between uses the runs that it has. Runs of another commit are made again. A build that was built again has
another name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.bisect.candidates import Candidate
from runner.bisect.experiment import Repeated
from runner.bisect.likelihood import passes_unseen
from runner.bisect.search import BuildVerdict
from runner.resumable_matrix import UnfitMatrixError, markdown_table
from verification.evidence.atomic_write import atomic_write

FORMAT, KIND = 1, "onceproof-bisect"
JSON, MARKDOWN = "bisect.json", "bisect.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRun:
    """One run on a build: its verdict, its seconds, its directory, and the finding or the reason in words."""

    build: str
    verdict: str
    seconds: float
    directory: str
    note: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """A build in the ledger; `unseen` is the likelihood that a build as bad as the bad end passes as often as it did."""

    build: str
    source: str
    commit: str
    verdict: str
    repeats: int
    failures: int
    seconds: float
    unseen: float | None
    note: str


class Ledger:
    """The runs so far and the verdicts that follow from them, on disk after each change."""

    def __init__(
        self, directory: Path, repeated: Repeated, builds: Sequence[Candidate], *, confidence: float, commit: str
    ) -> None:
        self.directory, self.builds, self.commit = directory, builds, commit
        self._repeated, self._confidence = repeated, confidence
        self.verdicts: dict[str, BuildVerdict] = {}
        self.rate: tuple[int, int] | None = None
        self.result = "not ended"
        self._runs = _read(directory / JSON, self._question)

    @property
    def _question(self) -> dict[str, Any]:
        return {
            "experiment": self._repeated.identity,
            "seed": self._repeated.seed,
            "client": self._repeated.client,
        }

    def runs(self, build: str) -> list[BuildRun]:
        """The runs on a build at this commit, in their order."""
        return [each for each in self._runs if each.build == build and each.commit == self.commit]

    def forget(self) -> None:
        """Make all runs again."""
        self._runs = []

    def add(self, run: BuildRun) -> None:
        """Keep a run. Raises OSError."""
        self._runs.append(run)
        self.write()

    def decide(self, build: str, verdict: BuildVerdict) -> None:
        """Keep the verdict on a build. Raises OSError."""
        self.verdicts[build] = verdict
        self.write()

    def end(self, result: str) -> None:
        """Keep the result. Raises OSError."""
        self.result = result
        self.write()

    def rows(self) -> list[LedgerRow]:
        """The builds in their order."""
        return [self._row(each) for each in self.builds]

    def table(self) -> list[str]:
        """The rows as a Markdown table."""
        head = ["build", "verdict", "failed", "runs", "seconds", "bad builds that pass so often", "note"]
        return markdown_table(head, map(_cells, self.rows()))

    def write(self) -> None:
        """Write both files. Raises OSError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        failed, tried = self.rate or (0, 0)
        body = {
            "format": FORMAT,
            "kind": KIND,
            **self._question,
            "confidence": self._confidence,
            "rate": {"failed": failed, "tried": tried},
            "result": self.result,
            "builds": [asdict(each) for each in self.rows()],
            "runs": [asdict(each) for each in self._runs],
        }
        atomic_write(self.directory / JSON, json.dumps(body, indent=1) + "\n")
        atomic_write(self.directory / MARKDOWN, self._page())

    def _page(self) -> str:
        rate = "" if self.rate is None else f"The bad end failed in {self.rate[0]} of {self.rate[1]} runs. "
        lines = [
            f"# Bisection: {self._repeated.identity}",
            "",
            f"`{self._repeated.option}`, confidence {self._confidence:g} for each build. {rate}Result: {self.result}.",
            "",
            *self.table(),
            "",
        ]
        return "\n".join(lines)

    def _row(self, build: Candidate) -> LedgerRow:
        runs = self.runs(build.name)
        failures = sum(each.verdict == BuildVerdict.BAD for each in runs)
        passes = sum(each.verdict == BuildVerdict.GOOD for each in runs)
        unseen = None
        if self.rate is not None and passes and not failures:
            unseen = passes_unseen(passes, failed=self.rate[0], tried=self.rate[1])
        notes = list(dict.fromkeys(each.note for each in runs if each.note))
        return LedgerRow(
            build=build.name,
            source="release" if build.directory is None else str(build.directory),
            commit=build.commit,
            verdict=str(self.verdicts.get(build.name, "not tried" if not runs else "not decided")),
            repeats=len(runs),
            failures=failures,
            seconds=round(sum(each.seconds for each in runs), 1),
            unseen=unseen,
            note="; ".join(notes),
        )


def _cells(row: LedgerRow) -> list[str]:
    name = row.build if row.source == "release" else f"{row.build} ({row.source}, commit {row.commit})"
    unseen = "" if row.unseen is None else f"{100 * row.unseen:.1f} %"
    note = row.note.replace("|", "\\|").replace("\n", " ")
    return [name, row.verdict, str(row.failures), str(row.repeats), f"{row.seconds:.0f}", unseen, note]


def _read(path: Path, question: dict[str, Any]) -> list[BuildRun]:
    """The runs of an earlier call. Raises UnfitMatrixError for a file that is not ours, or about something else."""
    if not path.is_file():
        return []
    try:
        body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        ours = (body["kind"], body["format"]) == (KIND, FORMAT)
        asked = {name: body[name] for name in question}
        runs = [BuildRun(**each) for each in body["runs"]]
    except (ValueError, KeyError, TypeError):
        ours, asked, runs = False, {}, []
    if not ours:
        raise UnfitMatrixError(f"{path} is no ledger of this version.", hint="Move it away, or name another --out.")
    if asked != question:
        raise UnfitMatrixError(
            f"{path} is about {asked['experiment']}, seed {asked['seed']}.", hint="Name another --out."
        )
    return runs
