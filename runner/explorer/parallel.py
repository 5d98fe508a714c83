"""Several walkers of one exploration: each has connections of its own to the broker, and all share what is known.

A walk mostly waits, for topics that are made, for expiries and for answers: four walkers make three times as many walks
as one (6.0 and 2.1 per second, on two processors that had other work).
Walks share nothing on the broker either, for each has its own transactional id, group and topic, and so the model of
one holds whatever the others do. What they find is kept by one at a time; what one follows up, the others leave to him.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from runner.explorer import findings_page
from runner.explorer.explorer import Explorer
from runner.explorer.shared_state import EndedError

#: State is written after so many walks: a few seconds of work.
WRITE_EVERY = 50


def explore(explorers: Sequence[Explorer], seeds: Iterable[int], *, seconds: float) -> None:
    """Perform the walks of the seeds that are not done; state is on disk whatever ends it.

    `explorers` share a store. Raises what one of them raises, when the others have ended their walks.
    """
    first = explorers[0]
    share, store = first.share, first.store
    began_s, before_s = time.monotonic(), store.seconds
    due = _due(first, seeds, began_s + seconds)

    def work(explorer: Explorer) -> None:
        while True:
            with share.lock:
                seed = next(due, None)
            if seed is None:
                return
            try:
                explorer.walk(seed)
            except EndedError:
                return
            with share.lock:
                store.done.add(seed)
                store.seconds = before_s + time.monotonic() - began_s
                if store.walks % WRITE_EVERY == 0:
                    store.write()

    try:
        with ThreadPoolExecutor(len(explorers), thread_name_prefix="walker") as pool:
            try:
                for each in as_completed([pool.submit(work, explorer) for explorer in explorers]):
                    each.result()
            except BaseException:
                # Whoever is in a walk ends it, in seconds, and keeps nothing of it.
                share.ended.set()
                raise
    finally:
        store.write()
        if first.page_at is not None and store.walks:
            findings_page.explored(first.page_at, store)


def _due(explorer: Explorer, seeds: Iterable[int], end_s: float) -> Iterator[int]:
    """The seeds that are still to be walked, until the time is over or somebody has failed."""
    done = frozenset(explorer.store.done)
    for seed in seeds:
        if time.monotonic() > end_s or explorer.share.ended.is_set():
            return
        if seed not in done:
            yield seed
