"""The score: how many mutants of each mutator were judged right, and how the others were judged wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import Mutant, Mutator
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation


class MutantOutcome(StrEnum):
    """How a mutant was judged. The last three are mistakes."""

    KILLED = "killed"
    PASSED = "passed"
    SURVIVED = "survived"
    FALSELY_REPORTED = "falsely reported"
    MISNAMED = "misnamed"


RIGHT = (MutantOutcome.KILLED, MutantOutcome.PASSED)


def outcome_of(breaks: frozenset[Anomaly], found: frozenset[Anomaly]) -> MutantOutcome:
    """How a mutant was judged, given the anomalies that it breaks and those that were found in it."""
    if breaks == found:
        return MutantOutcome.KILLED if breaks else MutantOutcome.PASSED
    if not found:
        return MutantOutcome.SURVIVED
    return MutantOutcome.MISNAMED if breaks else MutantOutcome.FALSELY_REPORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A mutant that one of the judges got wrong."""

    mutant: Mutant
    judge: str
    outcome: MutantOutcome
    found: frozenset[Anomaly]

    def __str__(self) -> str:
        breaks, found = (", ".join(_names(each)) or "nothing" for each in (self.mutant.breaks, self.found))
        made = f"{self.mutant.name} ({self.mutant.mutator} of {self.mutant.base.name})"
        return f"{made}: {self.judge} found {found}; it breaks {breaks}"


@dataclass(slots=True)
class Score:
    """The outcomes of all mutants; `judged` counts (mutator, outcome) of the Spark checks.

    `unread` counts the mutants that the fingerprints passed without reading records, by whether they break something.
    """

    judged: Counter[tuple[str, MutantOutcome]] = field(default_factory=Counter)
    broken: dict[str, Counter[frozenset[Anomaly]]] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    unread: Counter[bool] = field(default_factory=Counter)

    def add(self, mutant: Mutant, by_spark: Iterable[RawViolation], *, unread: bool = False) -> None:
        """Compare the violations that both judges find in a mutant with the anomalies that it breaks.

        `unread` says that all its fingerprints agreed, so that no check would have read its records.
        """
        found = {"Spark": list(by_spark), "the reference": judge_rows(mutant.rows)}
        for judge, violations in found.items():
            primary = frozenset(attribute(violations).primary)
            result = outcome_of(mutant.breaks, primary)
            if judge == "Spark":
                self.judged[mutant.mutator, result] += 1
                self.broken.setdefault(mutant.mutator, Counter())[mutant.breaks] += 1
            if result not in RIGHT:
                self.mistakes.append(Mistake(mutant=mutant, judge=judge, outcome=result, found=primary))
        if unread:
            self.unread[bool(mutant.breaks)] += 1
            if mutant.breaks:
                survivor = Mistake(
                    mutant=mutant, judge="the fingerprints", outcome=MutantOutcome.SURVIVED, found=frozenset()
                )
                self.mistakes.append(survivor)
        first, second = (_comparable(violations) for violations in found.values())
        if first != second:
            self.disagreements.append(mutant.name)

    @property
    def flawless(self) -> bool:
        """Whether both judges were right about every mutant, and found the same in each."""
        return not self.mistakes and not self.disagreements

    def total(self, result: MutantOutcome) -> int:
        """How many mutants had an outcome."""
        return sum(count for (_, outcome), count in self.judged.items() if outcome is result)


def _names(anomalies: Iterable[Anomaly]) -> tuple[str, ...]:
    return tuple(sorted(map(str, anomalies)))


def _comparable(violations: Iterable[RawViolation]) -> Counter[RawViolation]:
    return Counter(replace(each, detail="", places=tuple(sorted(each.places))) for each in violations)


def _breaks(counts: Mapping[frozenset[Anomaly], int]) -> str:
    kinds = [
        " + ".join(_names(kind)) or "nothing" for kind in sorted(counts, key=lambda each: (-len(each), sorted(each)))
    ]
    return ", or ".join(kinds)


def lines(score: Score, mutators: Sequence[Mutator]) -> list[str]:
    """The score as a table in Markdown, one row per mutator."""
    head = ["mutator", "change", "breaks", *map(str, MutantOutcome)]
    rows = [f"| {' | '.join(head)} |", f"|---|---|---|{'--:|' * len(MutantOutcome)}"]
    for mutator in mutators:
        counts = [str(score.judged[mutator.name, each] or "") for each in MutantOutcome]
        cells = [f"`{mutator.name}`", mutator.does, _breaks(score.broken.get(mutator.name, {})), *counts]
        rows.append(f"| {' | '.join(cells)} |")
    rows.append(f"| **all** | | | {' | '.join(str(score.total(each)) for each in MutantOutcome)} |")
    return rows


def summary(score: Score) -> str:
    """The score in one line."""
    counts = ", ".join(f"{score.total(each)} {each}" for each in MutantOutcome)
    wrong = sum(1 for each in score.mistakes if each.judge == "the reference")
    return (
        f"{counts}; the reference judge was wrong about {wrong} and disagreed about {len(score.disagreements)}; "
        f"the fingerprints passed {score.unread[False]} of those that break nothing, and {score.unread[True]} of the others"
    )


_PAGE = """# Score of the judge

Mutators change evidence of real runs that were found conformant. They know the [definitions](../semantics.md) of the
anomalies, but not how these are checked. A mutant is killed if the judge finds exactly the anomalies that it breaks, not
counting consequences. A mutant that breaks nothing must pass. Two judges see every mutant: the Spark checks and the
plain-Python reference. The fingerprints see it too: they pass small runs in which everything agrees, before any record is
read. They may suspect any run, but must not pass one that is broken. This page is written by

```
{command}
```

Seed {seed}, {count} mutants of {bases} runs ({names}).

{summary}.

{table}

*Survived*: it breaks something, and nothing was found. *Falsely reported*: it breaks nothing, and something was found.
*Misnamed*: other or more anomalies were found than it breaks. The anomalies that a mutator breaks can depend on the place
that it changes. They are fixed for every mutant before it is judged.
"""


def page(score: Score, mutators: Sequence[Mutator], bases: Sequence[Base], *, seed: int, command: str) -> str:
    """The text of the page."""
    count = sum(score.judged.values())
    text = summary(score)
    return _PAGE.format(
        command=command,
        seed=seed,
        count=count,
        bases=len(bases),
        names=", ".join(each.name for each in bases),
        summary=text[0].upper() + text[1:],
        table="\n".join(lines(score, mutators)),
    )
