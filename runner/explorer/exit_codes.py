"""What an exploration, or one walk, comes to.

A finding without a name is a violation. So far as something was seen and could not be shown again, the exploration has
not acquitted the release: twice by chance is no chance, and a server error or forbidden data needs to be seen only once.
A walk that was too slow shows nothing, for the coordinator may have aborted by itself what the model takes for open.
Where most walks were, or where few were performed at all, that nothing was found says nothing about the release.
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

#: A fleeting signature without a name is doubtful when it was seen so often, or when it is of such a nature.
SEEN_LEAST = 2
GRAVE = frozenset({Nature.SERVER, Nature.VISIBLE})
#: The rarest finding of `docs/generated/findings.md` showed itself after 583 walks. With 600 that show nothing,
#: whatever shows in more than one walk of 200 is excluded with 95 % confidence (the rule of three).
TELLING_LEAST = 600


class Paced(Protocol):
    """Who says whether time may have changed what a walk relies on."""

    slow: bool


def told(planned: WalkPlan, walk: Walk, broker: Paced) -> bool:
    """Whether a walk was conclusive."""
    return not (broker.slow and (walk.finding or planned.timeout_ms != LONG_MS))


def doubtful(store: Store) -> list[str]:
    """Fleeting signatures that keep a release from being acquitted."""
    return [
        signature
        for signature, each in store.fleeting.items()
        if not name_of(signature, store.release) and (store.seen[signature] >= SEEN_LEAST or each.nature in GRAVE)
    ]


def of_exploration(store: Store, *, walks: int) -> ExitCode:
    """Of all that was found so far; `walks` were performed by this call and say something.

    A violation stands whatever this call did. The rest is an acquittal only when walks enough say something.
    """
    acquitted = bool(walks) and not thin(store) and not doubtful(store)
    return _of(store.found, store.release, otherwise=ExitCode.CONFORMANT if acquitted else ExitCode.INCONCLUSIVE)


def thin(store: Store) -> str:
    """Why the walks so far are too few to acquit a release; empty when they are not."""
    telling = store.walks - store.slow
    if store.slow > telling:
        return f"{store.slow} of {store.walks} walks were too slow to be conclusive"
    return (
        f"{telling} walks were conclusive; at least {TELLING_LEAST} conclusive walks are needed to pass a release"
        if telling < TELLING_LEAST
        else ""
    )


def of_walk(planned: WalkPlan, walk: Walk, broker: Paced, release: str) -> ExitCode:
    """Of one walk alone."""
    if not walk.steps or not told(planned, walk, broker):
        return ExitCode.INCONCLUSIVE
    return _of(walk.signatures, release, otherwise=ExitCode.CONFORMANT)


def _of(signatures: Iterable[str], release: str, *, otherwise: ExitCode) -> ExitCode:
    return otherwise if all(name_of(each, release) for each in signatures) else ExitCode.VIOLATION
