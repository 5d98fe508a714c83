"""All mutators, and making mutants with them: seeded, every mutator as often as every other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from benchmarks.judge_mutants import (
    copies,
    harmless,
    markers,
    outcomes,
    reads,
    sequences,
    transaction_log,
    without_log,
    writes,
)
from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.mutant import Draft, Mutant, Mutator, NothingToChangeError

MUTATORS: tuple[Mutator, ...] = (
    *writes.MUTATORS,
    *outcomes.MUTATORS,
    *markers.MUTATORS,
    *sequences.MUTATORS,
    *reads.MUTATORS,
    *copies.MUTATORS,
    *without_log.MUTATORS,
    *transaction_log.MUTATORS,
    *harmless.MUTATORS,
)


#: How often a mutator may find nothing where it happens to look before a base is given up.
MISSES_MAX = 8


def mutants(bases: Sequence[Base], *, each: int, seed: int) -> Iterator[Mutant]:
    """`each` mutants by every mutator, of the bases in turn that have something for it."""
    number = 0
    for mutator in MUTATORS:
        # Of its own, so that a mutator more or less does not change what the others make.
        random = Random(f"{seed} {mutator.name}")
        fit = [*bases] * MISSES_MAX
        made = 0
        while made < each and fit:
            base = fit[made % len(fit)]
            draft = Draft(base, random)
            try:
                breaks = mutator.make(base, draft)
            except NothingToChangeError:
                fit.remove(base)
                continue
            yield Mutant(
                name=f"m{number:06d}", mutator=mutator.name, base=base, rows=draft.rows, breaks=frozenset(breaks)
            )
            number += 1
            made += 1
