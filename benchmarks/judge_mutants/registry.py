"""All mutators, and the seeded generator of mutants: every mutator makes the same number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from benchmarks.judge_mutants import (
    copies,
    effects,
    harmless,
    markers,
    nodes,
    outcomes,
    reads,
    sequences,
    silences,
    standstills,
    states,
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
    *nodes.MUTATORS,
    *silences.MUTATORS,
    *standstills.MUTATORS,
    *states.MUTATORS,
    *effects.MUTATORS,
    *harmless.MUTATORS,
)


#: How often a mutator may find nothing to change in a base before it gives the base up.
MISSES_MAX = 8


def mutants(bases: Sequence[Base], *, each: int, seed: int) -> Iterator[Mutant]:
    """`each` mutants by every mutator, from the bases that it can change, in turn."""
    number = 0
    for mutator in MUTATORS:
        # Each mutator has its own generator, so that adding or removing one does not change the others' mutants.
        random = Random(f"{seed} {mutator.name}")
        # The others do not know that outputs of a pipeline belong to no operation.
        own = mutator in effects.MUTATORS
        fit = [base for base in bases if bool(base.effects) is own] * MISSES_MAX
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
