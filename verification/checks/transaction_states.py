"""Finds records of the transaction log that cannot follow the ones before: COORD-01, anomaly `illegal-transition`.

A history is legal when the state machine has each of its steps. Producer ids and epochs must only go forward, and a
transaction must keep its partitions and its start until it is decided. The rules are those of the coordinator's own
code since 0.11 (`TransactionMetadata.prepareTransitionTo` and `completeTransitionTo`), with KIP-890's additions: in TV2 a
decision raises the epoch (`prepareAbortOrCommit`), and only its completion may begin a new producer id
(`prepareComplete`).

A producer id belongs to one transactional id for ever, in all partitions: the one that had it first. Another one that has it
too was given an id that was issued before (REC-14).

Two things make a legal log look illegal:

* **Compaction** removes records of ids that have newer ones. Where an offset is missing between two records of an id, a
  step may be missing, and only what holds across missing steps is judged: that epochs do not go back and replaced
  producer ids do not return, and each record by itself.
* **An append can fail after it was done.** When too few replicas have a record in time, the coordinator goes back to the
  state before it, answers COORDINATOR_NOT_AVAILABLE (15), and writes its next step from there (COORD-09); the record
  stays. So where appends may have failed, several states are possible at once, and a step is illegal when it can follow
  none of them. A new leadership of the partition ends this: its coordinator loads the state from the log.

Limit: within the time in which appends may have failed, a step back to an earlier state counts as such a failure, unless
the partition changed its leader in between. Before and after faults nothing is excused. With ZooKeeper a leader whose
follower dies has a new epoch and loads nothing (`Partition.makeLeader` finds that it leads already). An append that failed
before that looks illegal there. Clusters with KRaft load at every new epoch (`LocalReplicaChanges`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from verification.vocabulary.transaction_log import TV2, Entry, State

#: The highest epoch (a signed number of 16 bits).
_EPOCH_MAX = 32767
#: A coordinator waits for replicas for seconds before an append fails, so more failures in a row do not happen.
MEMORIES_MAX = 64
IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
#: From which states a state may be entered. A history begins with Empty, and so does one after a tombstone.
PREDECESSORS: Mapping[State, frozenset[State]] = {
    State.EMPTY: IDLE | {State.DEAD},
    State.ONGOING: IDLE | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: frozenset({State.ONGOING}),
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: IDLE,
    # An intermediate step in the coordinator's memory: never in the log.
    State.PREPARE_EPOCH_FENCE: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IllegalStep:
    """A record that cannot follow the record before it in its history, and the reason."""

    entry: Entry
    why: str

    def __str__(self) -> str:
        return f"{self.entry}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogResult:
    """The result for a log. `compacted` are the partitions with holes, in which missing steps are no violation."""

    histories: int
    entries: int
    illegal: tuple[IllegalStep, ...]
    compacted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """The possible memory of a coordinator about an id: its last record, the last that is no tombstone, replaced ids.

    `vague`: the true last record may be missing, so that these are only from before it.
    """

    entry: Entry | None = None
    known: Entry | None = None
    replaced: frozenset[int] = frozenset()
    vague: bool = False

    def after(self, entry: Entry) -> _Memory:
        """The memory once the record was written."""
        if entry.state is State.DEAD:
            return _Memory(entry=entry, known=self.known, replaced=self.replaced)
        changed = self.known is not None and self.known.producer_id != entry.producer_id
        gone = {self.known.producer_id} if self.known is not None and changed else set()
        return _Memory(entry=entry, known=entry, replaced=self.replaced | gone)


def _never(_: Entry) -> bool:
    return False


def judge(
    entries: Iterable[Entry],
    *,
    starts: Mapping[int, int] | None = None,
    new_ids: Container[str] | None = None,
    may_fail: Callable[[Entry], bool] = _never,
) -> TransactionLogResult:
    """Check every history against the state machine.

    `starts` is the first offset that was read of each partition, 0 where it is not named. `new_ids` were not used before
    that, so that their histories must begin with Empty; without it all ids are new. `may_fail` says whether the append
    of a record may have failed although the record is in the log.
    """
    by_partition: dict[int, list[Entry]] = defaultdict(list)
    for each in entries:
        by_partition[each.partition].append(each)
    illegal: list[IllegalStep] = []
    owners: dict[int, str] = {}
    for each in sorted(chain.from_iterable(by_partition.values()), key=_written):
        owners.setdefault(each.producer_id, each.transactional_id)
    compacted, count = [], 0
    for partition, log in sorted(by_partition.items()):
        log.sort(key=lambda each: each.offset)
        start = (starts or {}).get(partition, 0)
        unbroken = _unbroken(log, start)
        if unbroken[log[-1].offset] != start:
            compacted.append(partition)
        histories: dict[str, list[Entry]] = defaultdict(list)
        for each in log:
            histories[each.transactional_id].append(each)
        count += len(histories)
        for name, history in histories.items():
            begun_at = start if new_ids is None or name in new_ids else None
            illegal += _illegal_steps(history, unbroken, begun_at, may_fail, owners)
    return TransactionLogResult(
        histories=count,
        entries=sum(map(len, by_partition.values())),
        illegal=tuple(illegal),
        compacted=tuple(compacted),
    )


def _written(entry: Entry) -> tuple[int, int, int]:
    return (entry.appended_ms, entry.partition, entry.offset)


def _unbroken(log: list[Entry], start: int) -> dict[int, int]:
    """Offset → the lowest offset from which no offset up to it is missing."""
    since, following, found = start, start, {}
    for entry in log:
        if entry.offset != following:
            since = entry.offset
        found[entry.offset] = since
        following = entry.offset + 1
    return found


def _illegal_steps(
    history: list[Entry],
    unbroken: Mapping[int, int],
    begun_at: int | None,
    may_fail: Callable[[Entry], bool],
    owners: Mapping[int, str],
) -> Iterator[IllegalStep]:
    """`begun_at` is an offset after which the history began, None where it may have begun before the first record.

    `owners` are the transactional ids that had each producer id first.
    """
    memories = [_Memory()]
    before: Entry | None = None
    for entry in history:
        if before is not None and entry.leader_epoch != before.leader_epoch:
            memories = memories[-1:]  # the next coordinator has loaded the log
        reached = begun_at if before is None else before.offset
        whole = reached is not None and unbroken[entry.offset] <= reached
        reasons = [tuple(_reasons(memory, entry, seen=whole and not memory.vague)) for memory in memories]
        legal = [memory for memory, why in zip(memories, reasons, strict=True) if not why]
        own = entry.state is State.DEAD or owners[entry.producer_id] == entry.transactional_id
        foreign = () if own else (f"producer id {entry.producer_id} was that of {owners[entry.producer_id]} before",)
        if not legal or foreign:
            yield IllegalStep(entry=entry, why="; ".join((*(() if legal else reasons[-1]), *foreign)))
        after = (legal or memories)[-1].after(entry)
        earlier = [replace(memory, vague=memory.vague or not whole) for memory in legal] if may_fail(entry) else []
        memories = [*earlier, after][-MEMORIES_MAX:]
        before = entry


def _reasons(memory: _Memory, entry: Entry, *, seen: bool) -> Iterator[str]:
    """`seen`: no step between them can be missing."""
    yield from _itself(entry)
    if seen:
        yield from _steps(memory.entry, entry)
    if entry.state is not State.DEAD:
        yield from _identity(memory, entry, seen=seen)


def _itself(entry: Entry) -> Iterator[str]:
    """Reasons why a record is illegal after any other record."""
    if entry.state is State.PREPARE_EPOCH_FENCE:
        yield "this state is never written"
    elif entry.state in IDLE and entry.places:
        yield f"{sorted(entry.places)} are in a transaction that is over"


def _steps(before: Entry | None, entry: Entry) -> Iterator[str]:
    """Reasons why a record is illegal directly after another one."""
    allowed = PREDECESSORS[entry.state]
    if entry.state is State.PREPARE_ABORT and entry.client_version >= TV2:
        allowed |= IDLE  # KIP-890: an abort with nothing in it burns an epoch
    if before is None:
        if entry.state is not State.EMPTY:
            yield "a history begins with Empty"
        return
    if before.state not in allowed:
        yield f"it cannot follow {before.state}"
    elif before.state is State.ONGOING and entry.began_ms != before.began_ms:
        yield f"the transaction began at {before.began_ms} and now at {entry.began_ms}"
    if entry.state is State.ONGOING and before.state is State.ONGOING and not before.places <= entry.places:
        yield f"{sorted(before.places - entry.places)} left the open transaction"
    yield from _of_its_protocol(before, entry)


def _of_its_protocol(before: Entry, entry: Entry) -> Iterator[str]:
    """Reasons why a decision or a completion is illegal after the record before, by the rules of TV1 or TV2."""
    if entry.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT):
        # An abort of an empty transaction has no partitions, like the completed transaction before it.
        if entry.places != before.places:
            yield f"it is decided for {sorted(entry.places)}, but open are {sorted(before.places)}"
        if entry.client_version >= TV2 and not _raised(before, entry):
            yield f"epoch {entry.epoch} after epoch {before.epoch}, though each end in TV2 raises it"
    elif entry.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
        # The protocol of the decision says whether an exhausted producer id is replaced.
        if before.client_version < TV2 and entry.producer_id != before.producer_id:
            yield f"producer id {entry.producer_id} instead of {before.producer_id}, though only TV2 replaces it here"


def _raised(before: Entry, entry: Entry) -> bool:
    """Whether the end of a transaction has a higher epoch than the one before it.

    The highest epoch cannot be raised: an abort keeps it, and its completion has a new producer id. With another producer
    id, epochs are not compared.
    """
    if entry.producer_id != before.producer_id:
        return True
    exhausted = before.epoch == _EPOCH_MAX and entry.state is State.PREPARE_ABORT
    return entry.epoch > before.epoch or (exhausted and entry.epoch == before.epoch)


def _identity(memory: _Memory, entry: Entry, *, seen: bool) -> Iterator[str]:
    """Reasons why its producer id or epoch is illegal after those that were used before.

    A missing step may have been an Empty, with which a new producer id began.
    """
    known = memory.known
    if entry.producer_id in memory.replaced:
        yield f"producer id {entry.producer_id} was replaced before"
    elif known is not None and entry.producer_id == known.producer_id:
        if entry.epoch < known.epoch:
            yield f"epoch {entry.epoch} after epoch {known.epoch} of producer id {entry.producer_id}"
    elif known is not None and seen and entry.state not in IDLE:
        yield f"producer id {entry.producer_id} instead of {known.producer_id} within a transaction"
