"""Compares the records that live observers received with the log of a run in memory: the worker's side of `agreement`.

In each partition, an observer must have received exactly the log's records for its isolation level, in that order. They
run from the start to the last offset that it received. A reader of committed records must have received none before its
commit was invoked. Then no observer skipped, repeated or went back, saw other content, or saw an aborted record or one
too early.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from verification.fingerprints.workers.columns import NULL, Flags, NumpyColumns
from verification.fingerprints.workers.hashing import Numbers
from verification.fingerprints.workers.producer_layout import COMMIT, Producers, decided, outcomes
from verification.vocabulary.identity import text_digest

_PARTITION = ("topic_index", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """The records that an observer received, in order; `digest` is that of the identity, null for a value without one."""

    committed_reader: bool
    topic_index: Numbers
    partition: Numbers
    offset: Numbers
    digest: Numbers
    received_ns: Numbers


#: Topic index, partition, offset, digest, and when it was received.
PolledRecord = tuple[int, int, int, int, int]


def polled(records: Iterable[PolledRecord], *, committed_reader: bool) -> Polled:
    """The records that an observer received, from single records in order."""
    columns = np.array(list(records), dtype=np.int64).reshape(-1, 5).T
    topic_index, partition, offset, digest, received_ns = columns
    return Polled(
        committed_reader=committed_reader,
        topic_index=topic_index,
        partition=partition,
        offset=offset,
        digest=digest,
        received_ns=received_ns,
    )


def records_of(path: str) -> Iterator[PolledRecord]:
    """The records of an observer's file (`sources.schema.OBSERVATIONS_LINE`)."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            poll = json.loads(line)
            for topic_index, partition, offset, text in poll["records"]:
                digest = text_digest(text)
                yield topic_index, partition, offset, NULL if digest is None else digest, poll["received_ns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """The records of a log in the order of their places, with the time at which their operation decided, or null."""

    topic_index: Numbers
    partition: Numbers
    offset: Numbers
    digest: Numbers
    committed: Flags
    decided_ns: Numbers


def readable(log: NumpyColumns, decided_ns: dict[tuple[int, int], int]) -> Readable:
    """The records of a whole log; `decided_ns` is by process and operation."""
    order = np.lexsort((log["offset"], log["producer_id"], *(log[name] for name in reversed(_PARTITION))))
    own = Producers([log[name][order] for name in (*_PARTITION, "producer_id")])
    control = log["control"][order]
    ended = decided(own, control, log.values("control"))
    committed = np.empty(len(log), dtype=bool)
    committed[order] = outcomes(own, ended, log["transactional"][order]) == COMMIT
    places = np.lexsort((log["offset"], *(log[name] for name in reversed(_PARTITION))))
    data = places[log["control"][places] == NULL]
    named = zip(log["process"][data].tolist(), log["operation"][data].tolist(), strict=True)
    return Readable(
        topic_index=log["topic_index"][data],
        partition=log["partition"][data],
        offset=log["offset"][data],
        digest=log["identity_digest"][data],
        committed=committed[data],
        decided_ns=np.array([decided_ns.get(name, NULL) for name in named], dtype=np.int64),
    )


def as_the_log_has_it(seen: Polled, log: Readable) -> bool:
    """Whether an observer received the log's records, by the rule of the module's docstring."""
    partitions = np.unique(np.stack([seen.topic_index, seen.partition]), axis=1).T
    return all(_partition(seen, log, int(topic), int(partition)) for topic, partition in partitions)


def _partition(seen: Polled, log: Readable, topic: int, partition: int) -> bool:
    given = np.flatnonzero((seen.topic_index == topic) & (seen.partition == partition))
    there = (log.topic_index == topic) & (log.partition == partition)
    held = np.flatnonzero(there & log.committed if seen.committed_reader else there)[: len(given)]
    same = np.array_equal(log.offset[held], seen.offset[given]) and np.array_equal(log.digest[held], seen.digest[given])
    early = same and seen.committed_reader and (seen.received_ns[given] < log.decided_ns[held]).any()
    return bool(same and not early)
