"""Runs the walks of an exploration by several walkers at the same time, each with its own connections to the broker.

A walk mostly waits: for new topics, for expiries and for answers. Four walkers made three times as many walks as one
(6.0 and 2.1 per second, measured on two processors that had other work).
Walks share nothing on the broker. Each has its own transactional id, group and topic, so its model holds whatever the
others do. The store is written by one walker at a time, and only one walker follows up a signature.
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
    """Perform the walks of the seeds that are not done; the state is on disk however the call ends.

    `explorers` share a store. An error of one of them is raised when the others have ended their walks.
    """
    first = explorers[0]
    shared, store = first.shared, first.store
    began_s, before_s = time.monotonic(), store.seconds
    due = _due(first, seeds, began_s + seconds)

    def work(explorer: Explorer) -> None:
        while True:
            with shared.lock:
                seed = next(due, None)
            if seed is None:
                return
            try:
                explorer.walk(seed)
            except EndedError:
                return
            with shared.lock:
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
                # Walks under way end in seconds, and nothing of them is kept.
                shared.ended.set()
                raise
    finally:
        store.write()
        if first.page_at is not None and store.walks:
            findings_page.explored(first.page_at, store)


def _due(explorer: Explorer, seeds: Iterable[int], end_s: float) -> Iterator[int]:
    """The seeds that are still to be walked, until the time is over or a walker has failed."""
    done = frozenset(explorer.store.done)
    for seed in seeds:
        if time.monotonic() > end_s or explorer.shared.ended.is_set():
            return
        if seed not in done:
            yield seed
