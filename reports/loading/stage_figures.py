"""The figures of an upgrade: what each stage cost each client.

* A commit is a transaction whose client received the answer *committed*. It counts in the stage in which the answer came.
  Its latency is the time from the request to the answer. The rate is the number of commits by the length of the stage.
* The gap is the longest time in which one producer committed nothing; that of all is the longest in which no producer of
  the client did. A producer is a transactional id, so a gap goes on while an instance is replaced. It begins with a commit
  or with the first initialisation. It counts in the stage in which the next commit ended it, or in which the workload
  ended; also in each stage that it spans whole. A producer that the schedule holds inside a transaction during a step does
  not stand still: its gap begins when it is let go.
* Errors are counted by name and code, an operation in the stage in which it ended.
* A fenced producer is an instance that was told that a newer one owns its id.
* A transaction is aborted on purpose, or although its commit was meant; its outcome is unknown where no answer says it.
* A replaced producer is an instance that ended by itself: after a fatal error, or because it could not learn the outcome
  of a commit. Instances that a fault struck do not count, nor those that the schedule held in their last transaction:
  a coordinator aborts a transaction that is held for longer than its timeout.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from reports.loading.availability import latency_of
from reports.loading.process_lanes import Clock
from reports.model.upgrade import ErrorCount, StageFigures
from verification.vocabulary.history import (
    FENCING_CODES,
    FENCING_NAMES,
    FaultRecord,
    History,
    Intent,
    Operation,
    ProcessRecord,
    Told,
)

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
#: How an instance ends that cannot go on (`fixtures.workloads.client_process`).
GIVEN_UP = frozenset({"retired", "died"})
OBSERVER = "observer"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpan:
    """The begin and the end of a stage; the end belongs to it."""

    began_ns: int
    ended_ns: int

    def holds(self, at_ns: int) -> bool:
        """Whether a moment is in the stage."""
        return self.began_ns < at_ns <= self.ended_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """A time without a commit; `client` is the one that ended it."""

    client: str
    began_ns: int
    ended_ns: int

    @property
    def length_ns(self) -> int:
        return self.ended_ns - self.began_ns

    def counts_in(self, stage: StageSpan) -> bool:
        spans_it = self.began_ns <= stage.began_ns and self.ended_ns >= stage.ended_ns
        return stage.holds(self.ended_ns) or spans_it


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClientRecords:
    """What the history has of one client: the gaps of each of its producers, and those of all of them together."""

    operations: Sequence[Operation]
    gaps: Sequence[_Gap]
    gaps_of_all: Sequence[_Gap]
    given_up: Sequence[ProcessRecord]


def figures(history: History, stages: Sequence[StageSpan], clock: Clock) -> tuple[dict[str, StageFigures], ...]:
    """The figures of each stage by client. Every client that ever had an operation is in every stage."""
    if not stages:
        return ()
    clients = _by_client(history, until_ns=stages[-1].ended_ns)
    return tuple({name: _figures_of(stage, clients[name], clock) for name in sorted(clients)} for stage in stages)


def _by_client(history: History, *, until_ns: int) -> dict[str, _ClientRecords]:
    processes = history.of(ProcessRecord)
    client_of = {each.process: each.client for each in processes}
    operations: dict[str, list[Operation]] = defaultdict(list)
    of_id: dict[str, list[Operation]] = defaultdict(list)
    ends: dict[str | None, int] = defaultdict(int)
    for each in processes:
        ends[each.transactional_id] = max(ends[each.transactional_id], each.ended_ns)
    for one in history.of(Operation):
        operations[client_of.get(one.process, "")].append(one)
        if one.transactional_id is not None:
            of_id[one.transactional_id].append(one)
    held = _held(history)
    gaps = [gap for name in sorted(of_id) for gap in _gaps(of_id[name], client_of, min(ends[name], until_ns), held)]
    given_up = tuple(_given_up(history, held))
    found = {}
    for client, done in operations.items():
        transactional = [each for each in done if each.transactional_id is not None]
        ended_ns = min(max((ends[each.transactional_id] for each in transactional), default=0), until_ns)
        found[client] = _ClientRecords(
            operations=done,
            gaps=[each for each in gaps if each.client == client],
            gaps_of_all=tuple(_gaps(transactional, client_of, ended_ns)),
            given_up=[each for each in given_up if each.client == client],
        )
    return found


def _held(history: History) -> dict[int, list[int]]:
    """By process the times until which the schedule held it."""
    found: dict[int, list[int]] = defaultdict(list)
    for each in history.of(FaultRecord):
        for process in each.held:
            found[process].append(each.confirmed_ns or each.healed_ns or each.began_ns)
    return found


def _gaps(
    operations: Sequence[Operation],
    client_of: Mapping[int, str],
    ended_ns: int,
    held: Mapping[int, Sequence[int]] = MappingProxyType({}),
) -> Iterator[_Gap]:
    """The times between the commits of these operations, from the first initialisation to the end of the workload."""
    if not operations:
        return
    began_ns = min(each.completed_ns or each.invoked_ns for each in operations)
    commits = sorted((_last_sign_ns(each), each.process) for each in operations if _is_commit(each))
    last_ns, last = max((_last_sign_ns(each), each.process) for each in operations)
    edges = [(began_ns, last), *commits, (max(ended_ns, last_ns), last)]
    for (before_ns, _), (after_ns, process) in pairwise(edges):
        began_ns = max([before_ns, *(each for each in held.get(process, ()) if each < after_ns)])
        yield _Gap(client=client_of.get(process, ""), began_ns=began_ns, ended_ns=after_ns)


def _figures_of(stage: StageSpan, client: _ClientRecords, clock: Clock) -> StageFigures:
    ended = [each for each in client.operations if stage.holds(_last_sign_ns(each))]
    commits = [each for each in ended if _is_commit(each)]
    meant = [each for each in ended if each.intent is Intent.COMMIT]
    longest, of_all = _longest(client.gaps, stage), _longest(client.gaps_of_all, stage)
    return StageFigures(
        committed=len(commits),
        committed_per_s=round(len(commits) * NS_PER_S / (stage.ended_ns - stage.began_ns), 2),
        gap_s=None if longest is None else round(longest.length_ns / NS_PER_S, 3),
        gap_began_s=None if longest is None else clock(longest.began_ns),
        gap_of_all_s=None if of_all is None else round(of_all.length_ns / NS_PER_S, 3),
        latency=latency_of([(_last_sign_ns(each) - _asked_ns(each)) / NS_PER_MS for each in commits]),
        errors=_errors(ended),
        fenced=len({each.process for each in ended if _is_fenced(each)}),
        aborted_on_purpose=sum(each.intent is Intent.ABORT for each in ended),
        aborted=sum(each.told is Told.ABORTED for each in meant),
        unknown=sum(each.told is Told.UNKNOWN for each in meant),
        replaced=sum(stage.holds(each.ended_ns) for each in client.given_up),
    )


def _longest(gaps: Iterable[_Gap], stage: StageSpan) -> _Gap | None:
    return max((each for each in gaps if each.counts_in(stage)), key=lambda each: each.length_ns, default=None)


def _given_up(history: History, held: Mapping[int, Sequence[int]]) -> Iterator[ProcessRecord]:
    """The instances that ended by themselves, without those that a fault struck or that were held at their end."""
    struck = {process for each in history.of(FaultRecord) for process in each.processes}
    begun: dict[int, int] = defaultdict(int)
    for operation in history.of(Operation):
        begun[operation.process] = max(begun[operation.process], operation.invoked_ns)
    struck |= {process for process, until in held.items() if begun[process] < max(until)}
    for each in history.of(ProcessRecord):
        if each.end in GIVEN_UP and each.role != OBSERVER and each.process not in struck:
            yield each


def _is_commit(operation: Operation) -> bool:
    return operation.intent is not None and operation.told is Told.COMMITTED and operation.completed_ns is not None


def _is_fenced(operation: Operation) -> bool:
    return operation.error_code in FENCING_CODES or operation.error_name in FENCING_NAMES


def _asked_ns(operation: Operation) -> int:
    return operation.invoked_ns if operation.decided_ns is None else operation.decided_ns


def _last_sign_ns(operation: Operation) -> int:
    return operation.completed_ns or operation.decided_ns or operation.invoked_ns


def _errors(operations: Iterable[Operation]) -> tuple[ErrorCount, ...]:
    """The errors by name and code, the most frequent first."""
    counts = Counter(
        (each.error_name or "unnamed", each.error_code)
        for each in operations
        if each.error_name or each.error_code is not None
    )
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0][0]))
    return tuple(ErrorCount(name=name, code=code, count=count) for (name, code), count in ordered)
