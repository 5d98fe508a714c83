"""What an exploration, or one walk, comes to.

A finding without a name is a violation. So far as something was seen and could not be shown again, the exploration has
not acquitted the release: twice by chance is no chance, and a server error or forbidden data needs to be seen only once.
A walk that was too slow shows nothing, for the coordinator may have aborted by itself what the model takes for open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from suites.explorer.finding import Nature
from suites.explorer.known import name_of
from suites.explorer.moves import LONG_MS, Plan
from suites.explorer.store import Store
from suites.explorer.walk import Walk
from verification.verdict import ExitCode

#: A fleeting signature without a name is doubtful when it was seen so often, or when it is of such a nature.
SEEN_LEAST = 2
GRAVE = frozenset({Nature.SERVER, Nature.VISIBLE})


class Paced(Protocol):
    """Who says whether time may have changed what a walk relies on."""

    slow: bool


def told(planned: Plan, walk: Walk, broker: Paced) -> bool:
    """Whether a walk says anything."""
    return not (broker.slow and (walk.finding or planned.timeout_ms != LONG_MS))


def doubtful(store: Store) -> list[str]:
    """Fleeting signatures that keep a release from being acquitted."""
    return [
        signature
        for signature, each in store.fleeting.items()
        if not name_of(signature, store.release) and (store.seen[signature] >= SEEN_LEAST or each.nature in GRAVE)
    ]


def of_exploration(store: Store, *, walks: int) -> ExitCode:
    """Of all that was found so far; `walks` were performed by this call and say something."""
    if not walks:
        return ExitCode.INCONCLUSIVE
    return _of(store.found, store.release, otherwise=ExitCode.INCONCLUSIVE if doubtful(store) else ExitCode.CONFORMANT)


def of_walk(planned: Plan, walk: Walk, broker: Paced, release: str) -> ExitCode:
    """Of one walk alone."""
    if not walk.steps or not told(planned, walk, broker):
        return ExitCode.INCONCLUSIVE
    return _of(walk.signatures, release, otherwise=ExitCode.CONFORMANT)


def _of(signatures: Iterable[str], release: str, *, otherwise: ExitCode) -> ExitCode:
    return otherwise if all(name_of(each, release) for each in signatures) else ExitCode.VIOLATION
