"""The exit code of an exploration, or of one walk.

A finding without a name is a violation. A flaky signature keeps the release from passing when it was seen twice, or once
if it is a server error or forbidden data. A walk that was too slow is not conclusive: the coordinator may have aborted by
itself the transaction that the model takes for open. With few conclusive walks an exploration without a finding says
nothing about the release.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from runner.explorer.finding import Nature
from runner.explorer.known_findings import name_of
from runner.explorer.moves import LONG_MS, WalkPlan
from runner.explorer.store import Store
from runner.explorer.walk import Walk
from verification.vocabulary.verdict import ExitCode

#: A flaky signature without a name is doubtful when it was seen so often, or when it is of such a nature.
SEEN_LEAST = 2
GRAVE = frozenset({Nature.SERVER, Nature.VISIBLE})
#: The rarest finding of `docs/generated/findings.md` appeared after 583 walks. 600 walks without a finding exclude, with
#: 95 % confidence (the rule of three), a defect that shows in more than one walk of 200.
CONCLUSIVE_LEAST = 600


class Paced(Protocol):
    """An answerer that knows whether a walk was too slow for its transaction timeout."""

    slow: bool


def is_conclusive(planned: WalkPlan, walk: Walk, broker: Paced) -> bool:
    """Whether a walk was conclusive."""
    return not (broker.slow and (walk.finding or planned.timeout_ms != LONG_MS))


def doubtful(store: Store) -> list[str]:
    """Flaky signatures that keep a release from passing."""
    return [
        signature
        for signature, each in store.flaky.items()
        if not name_of(signature, store.release) and (store.seen[signature] >= SEEN_LEAST or each.nature in GRAVE)
    ]


def of_exploration(store: Store, *, walks: int) -> ExitCode:
    """The code for everything that was found so far; `walks` counts the conclusive ones of this call.

    A violation of an earlier call stays one. Without any, the release passes only after enough conclusive walks.
    """
    passed = bool(walks) and not too_few_walks(store) and not doubtful(store)
    return _of(store.found, store.release, otherwise=ExitCode.CONFORMANT if passed else ExitCode.INCONCLUSIVE)


def too_few_walks(store: Store) -> str:
    """The reason why the walks so far are too few to pass a release; empty when they are enough."""
    conclusive = store.walks - store.slow
    if store.slow > conclusive:
        return f"{store.slow} of {store.walks} walks were too slow to be conclusive"
    return (
        f"{conclusive} walks were conclusive; at least {CONCLUSIVE_LEAST} conclusive walks are needed to pass a release"
        if conclusive < CONCLUSIVE_LEAST
        else ""
    )


def of_walk(planned: WalkPlan, walk: Walk, broker: Paced, release: str) -> ExitCode:
    """The code for one walk alone."""
    if not walk.steps or not is_conclusive(planned, walk, broker):
        return ExitCode.INCONCLUSIVE
    return _of(walk.signatures, release, otherwise=ExitCode.CONFORMANT)


def _of(signatures: Iterable[str], release: str, *, otherwise: ExitCode) -> ExitCode:
    return otherwise if all(name_of(each, release) for each in signatures) else ExitCode.VIOLATION
