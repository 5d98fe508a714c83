"""illegal-transition, late completions and refused producers, each by another way than the checks'.

For each record it checks every state that its coordinator can have been in, one by one.
`verification.checks.transaction_states` goes forward with the set of possible states. This module goes back instead:
for each record it looks for an earlier record that it can follow. A table of pairs lists the legal steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate

from verification.evidence.transaction_log_file import TransactionLog
from verification.reference.run_index import RunIndex
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.transaction_log import TOPIC_INDEX, Entry
from verification.vocabulary.violations import RawViolation

_OVER = ("Empty", "CompleteCommit", "CompleteAbort")
#: (from, to): every step that there is; `Start` is nothing yet.
_PAIRS = {
    ("Start", "Empty"),
    ("Dead", "Empty"),
    *((before, after) for before in _OVER for after in ("Empty", "Ongoing", "Dead")),
    ("Ongoing", "Ongoing"),
    ("Ongoing", "PrepareCommit"),
    ("Ongoing", "PrepareAbort"),
    ("PrepareCommit", "CompleteCommit"),
    ("PrepareAbort", "CompleteAbort"),
}
_OF_TV2 = {(before, "PrepareAbort") for before in _OVER}
#: Epochs are signed numbers of 16 bits.
_EPOCH_LAST = (1 << 15) - 1
#: So long may readers be held back after a decision, while every node is up.
_LATE_MS = 4_000
#: So many operations in a row must fail.
_FAILURES = 5
#: The longest sequence of failed appends that is believed.
_FAILED_MAX = 63


def transitions(index: RunIndex) -> Iterator[RawViolation]:
    """illegal-transition."""
    for row in index.rows.get("transaction_log", ()):
        log: TransactionLog = row["log"]
        keys = {(each.partition, each.transactional_id) for each in log.entries}
        issued_twice = _issued_twice(log)
        for key in sorted(keys):
            illegal = {*_History(log, *key, row["failing_ms"]).illegal()}
            for entry in sorted(illegal | issued_twice[key], key=lambda each: each.offset):
                yield RawViolation(
                    anomaly=Anomaly.ILLEGAL_TRANSITION,
                    topic_index=TOPIC_INDEX,
                    partition=entry.partition,
                    offset=entry.offset,
                )


def _issued_twice(log: TransactionLog) -> Mapping[tuple[int, str], set[Entry]]:
    """By history, the records whose producer id another transactional id had at an earlier time."""
    users: dict[int, list[Entry]] = defaultdict(list)
    for each in log.entries:
        if each.state != "Dead":
            users[each.producer_id].append(each)
    found: dict[tuple[int, str], set[Entry]] = defaultdict(set)
    for entries in users.values():
        first = min(entries, key=lambda each: (each.appended_ms, each.partition, each.offset))
        for each in entries:
            if each.transactional_id != first.transactional_id:
                found[each.partition, each.transactional_id].add(each)
    return found


def late(index: RunIndex) -> Iterator[RawViolation]:
    """stuck-lso of the transaction log: a decision without completion, and an LSO that stands meanwhile."""
    for row in index.rows.get("transaction_log", ()):
        log: TransactionLog = row["log"]
        decisions = [each for each in log.entries if each.state in ("PrepareCommit", "PrepareAbort")]
        for decision in decisions if row["undisturbed_ms"] else ():
            later = [
                each
                for each in log.entries
                if (each.partition, each.transactional_id) == (decision.partition, decision.transactional_id)
                and each.offset > decision.offset
            ]
            following = min(later, key=lambda each: each.offset, default=None)
            if following is not None and not str(following.state).startswith("Complete"):
                continue
            completed_ms = None if following is None else following.appended_ms
            looks = [row["looks_ms"].get(name, []) for name in decision.places]
            for began, ended in row["undisturbed_ms"]:
                from_ms = max(began, decision.appended_ms)
                until_ms = ended if completed_ms is None else min(ended, completed_ms)
                if any(_stands(each, from_ms, until_ms) for each in looks):
                    yield RawViolation(
                        anomaly=Anomaly.STUCK_LSO,
                        topic_index=TOPIC_INDEX,
                        partition=decision.partition,
                        offset=decision.offset,
                    )
                    break


def refused(index: RunIndex) -> Iterator[RawViolation]:
    """stranded-producer of an upgrade: from the last failed operation of a series back to its first one."""
    for row in index.rows.get("transaction_log", ()):
        for began, ended in row["undisturbed_ms"]:
            inside = [each for each in row["answers"] if began <= each.began_ms <= each.ended_ms <= ended]
            for process in sorted({each.process for each in inside}):
                own = sorted((each for each in inside if each.process == process), key=lambda each: -each.operation)
                while own:
                    last, count = own[0], 0
                    while own and own[0].failed:
                        first, count = own.pop(0), count + 1
                    if count >= _FAILURES and last.ended_ms - first.began_ms > _LATE_MS:
                        yield RawViolation(anomaly=Anomaly.STRANDED_PRODUCER, process=process, operation=last.operation)
                    if not count:
                        own.pop(0)


def _stands(looks: list[tuple[int, int, int]], from_ms: int, until_ms: int) -> bool:
    """Whether two looks in a time are further apart than the bound, with one LSO in both and all looks between."""
    since, stable = 0, None
    for at_ms, now, high in looks:
        if not from_ms <= at_ms <= until_ms or now >= high:
            stable = None
        elif now != stable:
            since, stable = at_ms, now
        elif at_ms - since > _LATE_MS:
            return True
    return False


class _History:
    """The records of one transactional id in one partition; -1 stands for the time before the first one."""

    def __init__(self, log: TransactionLog, partition: int, name: str, failing_ms: tuple[int, int] | None) -> None:
        offsets = {each.offset for each in log.entries if each.partition == partition}
        self.start = log.starts[partition]
        self.new = name in log.header.new_ids
        self.failing_ms = failing_ms
        self.records = sorted(
            (each for each in log.entries if (each.partition, each.transactional_id) == (partition, name)),
            key=lambda each: each.offset,
        )
        first = [self.start - 1, *(each.offset for each in self.records)]
        self.gaps = [
            any(offset not in offsets for offset in range(before + 1, each.offset))
            for before, each in zip(first, self.records, strict=False)
        ]
        #: The number of records before each one with something missing before them.
        self.holes = list(accumulate((not self._complete(each) for each in range(len(self.records))), initial=0))
        self.used: dict[int, list[tuple[int, int]]] = {-1: []}

    def illegal(self) -> Iterator[Entry]:
        """The records that can follow none of the earlier ones."""
        for number, entry in enumerate(self.records):
            can = [before for before in self._states(number) if self._follows(before, number)]
            self._use(max(can, default=number - 1), number)
            if not can:
                yield entry

    def _states(self, number: int) -> list[int]:
        """The records, by number, whose state the coordinator may have been in when it wrote this one."""
        found = [number - 1]
        for back in range(number - 1, max(-1, number - 1 - _FAILED_MAX), -1):
            # Go back beyond a record only if its append may have failed, and no other leader epoch loaded the log
            # since.
            if not self._may_have_failed(back) or self.records[back].leader_epoch != self.records[number].leader_epoch:
                break
            found.append(back - 1)
        return [each for each in found if self._survives(each, number)]

    def _survives(self, state: int, number: int) -> bool:
        """Whether every record between a state and a later record can have been written from that state, and have failed."""
        return all(self._follows(state, between) for between in range(state + 1, number))

    def _may_have_failed(self, number: int) -> bool:
        if self.failing_ms is None:
            return False
        return self.failing_ms[0] <= self.records[number].appended_ms <= self.failing_ms[1]

    def _complete(self, number: int) -> bool:
        """Whether no record can be missing between this record and the one before it."""
        return not self.gaps[number] and (number > 0 or self.new)

    def _follows(self, before: int, number: int) -> bool:
        entry = self.records[number]
        if entry.state == "PrepareEpochFence" or (entry.state in _OVER and entry.places):
            return False
        seen = self.holes[before + 1] == self.holes[number + 1]
        if seen and not self._step(before, entry):
            return False
        return entry.state == "Dead" or self._identity(before, entry, seen=seen)

    def _step(self, before: int, entry: Entry) -> bool:
        last = self.records[before] if before >= 0 else None
        pair = ("Start" if last is None else str(last.state), str(entry.state))
        if pair not in _PAIRS and not (entry.client_version >= 2 and pair in _OF_TV2):
            return False
        if last is not None and entry.state in ("PrepareCommit", "PrepareAbort") and last.places != entry.places:
            return False
        if last is not None and not _of_its_protocol(last, entry):
            return False
        if last is None or last.state != "Ongoing":
            return True
        return last.places <= entry.places and last.began_ms == entry.began_ms

    def _identity(self, before: int, entry: Entry, *, seen: bool) -> bool:
        used = self.used[before]
        if not used:
            return True
        if entry.producer_id == used[-1][0]:
            return entry.epoch >= used[-1][1] and entry.producer_id not in {each for each, _ in used[:-1]}
        # A missing step may have been the Empty of a new producer id.
        return entry.producer_id not in {each for each, _ in used} and (entry.state in _OVER or not seen)

    def _use(self, before: int, number: int) -> None:
        """Set the producer ids with their last epochs, in order of use, up to this record."""
        used, entry = self.used[before], self.records[number]
        if entry.state != "Dead":
            same = bool(used) and used[-1][0] == entry.producer_id
            used = [*(used[:-1] if same else used), (entry.producer_id, entry.epoch)]
        self.used[number] = used


def _of_its_protocol(last: Entry, entry: Entry) -> bool:
    """Whether a step keeps the rules of its protocol version.

    An end of TV2 has an epoch of its own, as long as there is one left. A completion of TV1 has the identity of its
    end.
    """
    match str(entry.state):
        case "PrepareCommit" | "PrepareAbort" if entry.client_version >= 2 and last.producer_id == entry.producer_id:
            least = last.epoch + 1 if entry.state == "PrepareCommit" else min(last.epoch + 1, _EPOCH_LAST)
            return entry.epoch >= least
        case "CompleteCommit" | "CompleteAbort" if last.client_version < 2:
            return last.producer_id == entry.producer_id
    return True
