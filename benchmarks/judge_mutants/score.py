"""The score: of every mutator's mutants, how many were judged right, and how the others were judged wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import Mutant, Mutator
from verification.judge.primary_findings import fold
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation


class Judgement(StrEnum):
    """How a mutant was judged. The last three are mistakes."""

    CONVICTED = "convicted"
    ACQUITTED = "acquitted"
    ESCAPED = "escaped"
    FALSELY_CONVICTED = "falsely convicted"
    MISNAMED = "misnamed"


RIGHT = (Judgement.CONVICTED, Judgement.ACQUITTED)


def judgement(breaks: frozenset[Anomaly], found: frozenset[Anomaly]) -> Judgement:
    """How a mutant that breaks something, or nothing, was judged by what was found in it."""
    if breaks == found:
        return Judgement.CONVICTED if breaks else Judgement.ACQUITTED
    if not found:
        return Judgement.ESCAPED
    return Judgement.MISNAMED if breaks else Judgement.FALSELY_CONVICTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A mutant that one of the judges got wrong."""

    mutant: Mutant
    judge: str
    judgement: Judgement
    found: frozenset[Anomaly]

    def __str__(self) -> str:
        breaks, found = (", ".join(_names(each)) or "nothing" for each in (self.mutant.breaks, self.found))
        made = f"{self.mutant.name} ({self.mutant.mutator} of {self.mutant.base.name})"
        return f"{made}: {self.judge} found {found}; it breaks {breaks}"


@dataclass(slots=True)
class Score:
    """What came of all mutants; `judged` counts (mutator, judgement) by the Spark checks.

    `unread` counts those that were acquitted without a look at their records, by whether they break something.
    """

    judged: Counter[tuple[str, Judgement]] = field(default_factory=Counter)
    broken: dict[str, Counter[frozenset[Anomaly]]] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    unread: Counter[bool] = field(default_factory=Counter)

    def add(self, mutant: Mutant, by_spark: Iterable[RawViolation], *, acquitted: bool = False) -> None:
        """Hold a mutant's violations, and those that the reference finds, against what it breaks.

        `acquitted` says that everything of it agreed, so that nobody would have looked at its records.
        """
        found = {"Spark": list(by_spark), "the reference": judge_rows(mutant.rows)}
        for judge, violations in found.items():
            primary = frozenset(fold(violations).primary)
            result = judgement(mutant.breaks, primary)
            if judge == "Spark":
                self.judged[mutant.mutator, result] += 1
                self.broken.setdefault(mutant.mutator, Counter())[mutant.breaks] += 1
            if result not in RIGHT:
                self.mistakes.append(Mistake(mutant=mutant, judge=judge, judgement=result, found=primary))
        if acquitted:
            self.unread[bool(mutant.breaks)] += 1
            if mutant.breaks:
                escaped = Mistake(mutant=mutant, judge="the folds", judgement=Judgement.ESCAPED, found=frozenset())
                self.mistakes.append(escaped)
        first, second = (_comparable(violations) for violations in found.values())
        if first != second:
            self.disagreements.append(mutant.name)

    @property
    def flawless(self) -> bool:
        """Whether both judges were right about every mutant, and found the same in each."""
        return not self.mistakes and not self.disagreements

    def total(self, result: Judgement) -> int:
        """How many mutants were judged so."""
        return sum(count for (_, judged), count in self.judged.items() if judged is result)


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
    head = ["mutator", "what it does", "breaks", *map(str, Judgement)]
    rows = [f"| {' | '.join(head)} |", f"|---|---|---|{'--:|' * len(Judgement)}"]
    for mutator in mutators:
        counts = [str(score.judged[mutator.name, each] or "") for each in Judgement]
        cells = [f"`{mutator.name}`", mutator.does, _breaks(score.broken.get(mutator.name, {})), *counts]
        rows.append(f"| {' | '.join(cells)} |")
    rows.append(f"| **all** | | | {' | '.join(str(score.total(each)) for each in Judgement)} |")
    return rows


def summary(score: Score) -> str:
    """The score in one line."""
    counts = ", ".join(f"{score.total(each)} {each}" for each in Judgement)
    wrong = sum(1 for each in score.mistakes if each.judge == "the reference")
    return (
        f"{counts}; the reference judge was wrong about {wrong} and disagreed about {len(score.disagreements)}; "
        f"the folds acquitted {score.unread[False]} of those that break nothing, and {score.unread[True]} of the others"
    )


_PAGE = """# Score of the judge

Evidence of real runs that were found conformant, changed on purpose by mutators that know the
[definitions](../semantics.md) of the anomalies and nothing of how they are checked. A mutant that breaks something must be
convicted of exactly that, after folding; one that breaks nothing must be acquitted. Both judges see every mutant, the
Spark checks and the plain-Python reference; so do the folds, which acquit small runs of which everything agrees before
anybody looks at their records, and may leave in doubt what they like. This page is written by

```
{command}
```

Seed {seed}, {count} mutants of {bases} runs ({names}).

{summary}.

{table}

*Escaped*: it breaks something and nothing was found. *Falsely convicted*: it breaks nothing. *Misnamed*: something else,
or something more, was found than it breaks. What a mutator breaks can depend on where it strikes; it is said beforehand
for every mutant.
"""


def page(score: Score, mutators: Sequence[Mutator], bases: Sequence[Base], *, seed: int, command: str) -> str:
    """The whole page of the score."""
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
