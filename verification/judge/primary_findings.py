"""Finds the primary finding of each defect, and attributes the consequences to it.

A violation that the claim of the run allows is neither, and explains nothing but a count that comes again with its output.

Violations come from independent checks, so one defect shows several times. A partition whose LSO does not advance hides
every later transaction. A truncated log loses a record, sends an observer back, and gives one offset two contents. The
first rule that matches attributes a violation to an anomaly that was found in the same run:

1. A violation whose `cause` is an LSO that does not advance: to `hung-transaction`, else to `stuck-lso`.
2. `lost-write` or `inconsistent-offset` at a place that holds a `phantom-record`, and `torn-transaction` if all its
   missing records were acknowledged at such places: to `phantom-record`.
3. `inconsistent-offset`, `nonmonotonic-poll` and `poll-skip` in a partition, at or above the lowest acknowledged offset
   of a `lost-write` there: to `lost-write`. The same for the missing records of a `torn-transaction`: to that. A record
   that was read and is gone (`cause`) may be below that offset: a log loses its end, and the first record of
   that end need not have been acknowledged.
4. `inconsistent-offset` and `poll-skip` of a record of a torn transaction: to `torn-transaction`.
5. `poll-skip` at a place that is `hidden-committed`: to that.
6. `aborted-read` of an operation that is a `zombie-write`: to that.
7. `state-divergence` at a place that is a `duplicate`: to that.
8. `broken-sequence` of a process, if another finding says which record of the process in the same partition is missing,
   duplicated, late or out of order: to the worst of `lost-write`, `torn-transaction`, `inconsistent-offset`,
   `duplicate`, `reordered-write`, `hung-transaction` and `decided-late`. A finding without a place explains any
   partition. So does a `phantom-record`, which may have come from any. A `zombie-write` of any process in the partition
   explains it too, because its epoch begins another numbering. If such a violation is itself a consequence, its primary
   finding counts.

The other anomalies name the record and what was promised about it. A sequence number cannot do that. So a broken
sequence is a finding of its own only if nothing else shows the defect: if the records were neither promised nor
delivered, or if a leader accepted a wrong number.

Limit: rules 3 and 8 are generous. In a run that lost records, another defect in the same partition (by rule 3: further
up) counts as a consequence. The run fails anyway, and every violation stays in `findings/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from verification.vocabulary.anomalies import Anomaly, severity
from verification.vocabulary.violations import AGAIN, ALLOWED, GONE, LSO, Attributed, Partition, Place, RawViolation


class _Context:
    """Facts about all violations of a run that the rules need."""

    def __init__(self, violations: tuple[RawViolation, ...]) -> None:
        def of(anomaly: Anomaly) -> tuple[RawViolation, ...]:
            return tuple(each for each in violations if each.anomaly is anomaly)

        self.found = frozenset(each.anomaly for each in violations if each.cause is None)
        self.phantoms = {each.place for each in of(Anomaly.PHANTOM_RECORD)}
        self.hidden = {each.place for each in of(Anomaly.HIDDEN_COMMITTED)}
        self.doubled = {each.place for each in of(Anomaly.DUPLICATE)}
        self.zombies = {each.operation_key for each in of(Anomaly.ZOMBIE_WRITE)}
        self.torn = {each.operation_key for each in of(Anomaly.TORN_TRANSACTION)}
        self.lost_from = _lowest(each.place for each in of(Anomaly.LOST_WRITE) if each.place not in self.phantoms)
        self.torn_from = _lowest(
            place
            for each in of(Anomaly.TORN_TRANSACTION)
            if each.cause is None
            for place in each.missing()
            if place not in self.phantoms
        )


def _lowest(places: Iterable[Place | None]) -> dict[Partition, int]:
    lowest: dict[Partition, int] = {}
    for place in places:
        if place is not None:
            partition = place[:2]
            lowest[partition] = min(place[2], lowest.get(partition, place[2]))
    return lowest


def _standing_lso(violation: RawViolation, context: _Context) -> Anomaly | None:
    if violation.cause != LSO:
        return None
    standing = (Anomaly.HUNG_TRANSACTION, Anomaly.STUCK_LSO)
    return next((anomaly for anomaly in standing if anomaly in context.found), None)


def _phantom(violation: RawViolation, context: _Context) -> Anomaly | None:
    if violation.anomaly in (Anomaly.LOST_WRITE, Anomaly.INCONSISTENT_OFFSET):
        explained = violation.place is not None and violation.place in context.phantoms
    elif violation.anomaly is Anomaly.TORN_TRANSACTION:
        missing = violation.missing()
        explained = bool(missing) and None not in missing and set(missing) <= context.phantoms
    else:
        return None
    return Anomaly.PHANTOM_RECORD if explained else None


_OF_TRUNCATION = (Anomaly.INCONSISTENT_OFFSET, Anomaly.NONMONOTONIC_POLL, Anomaly.POLL_SKIP)


def _truncation(violation: RawViolation, context: _Context) -> Anomaly | None:
    place = violation.place
    if violation.anomaly not in _OF_TRUNCATION or place is None:
        return None
    for anomaly, lowest in ((Anomaly.LOST_WRITE, context.lost_from), (Anomaly.TORN_TRANSACTION, context.torn_from)):
        if place[:2] in lowest and (place[2] >= lowest[place[:2]] or violation.cause == GONE):
            return anomaly
    return None


def _torn(violation: RawViolation, context: _Context) -> Anomaly | None:
    concerned = violation.anomaly in (Anomaly.INCONSISTENT_OFFSET, Anomaly.POLL_SKIP)
    return Anomaly.TORN_TRANSACTION if concerned and violation.operation_key in context.torn - {None} else None


def _hidden(violation: RawViolation, context: _Context) -> Anomaly | None:
    skipped = violation.anomaly is Anomaly.POLL_SKIP and violation.place in context.hidden - {None}
    return Anomaly.HIDDEN_COMMITTED if skipped else None


def _zombie(violation: RawViolation, context: _Context) -> Anomaly | None:
    read = violation.anomaly is Anomaly.ABORTED_READ and violation.operation_key in context.zombies - {None}
    return Anomaly.ZOMBIE_WRITE if read else None


def _counted_again(violation: RawViolation, context: _Context) -> Anomaly | None:
    again = violation.anomaly is Anomaly.STATE_DIVERGENCE and violation.place in context.doubled
    return Anomaly.DUPLICATE if again else None


#: The rules 1 to 7 of the module's docstring, in that order.
RULES: tuple[Callable[[RawViolation, _Context], Anomaly | None], ...] = (
    _standing_lso,
    _phantom,
    _truncation,
    _torn,
    _hidden,
    _zombie,
    _counted_again,
)


#: Anomalies that name a process and a place at which its record is not where its number belongs.
_OF_A_RECORD = (
    Anomaly.LOST_WRITE,
    Anomaly.INCONSISTENT_OFFSET,
    Anomaly.DUPLICATE,
    Anomaly.REORDERED_WRITE,
    Anomaly.HUNG_TRANSACTION,
    Anomaly.DECIDED_LATE,
)
#: A process (None: any) in a partition (None: any).
Numbering = tuple[int | None, Partition | None]


def _numberings(violation: RawViolation) -> Iterator[Numbering]:
    """The processes and partitions whose sequence numbers a violation may break."""
    process, place = violation.process, violation.place
    here = None if place is None else place[:2]
    if violation.anomaly is Anomaly.ZOMBIE_WRITE and here is not None:
        yield (None, here)
    elif process is None:
        return
    elif violation.anomaly is Anomaly.TORN_TRANSACTION:
        yield from ((process, None if missing is None else missing[:2]) for missing in violation.missing())
    elif violation.anomaly is Anomaly.PHANTOM_RECORD:
        yield (process, None)
    elif violation.anomaly in _OF_A_RECORD:
        yield (process, here)


def _renumbered(divided: Iterable[tuple[RawViolation, Anomaly | None]]) -> dict[Numbering, Anomaly]:
    """The worst anomaly that explains each numbering, from violations with the anomalies that they were attributed to."""
    found: dict[Numbering, Anomaly] = {}
    for violation, under in divided:
        for numbering in _numberings(violation):
            each = under or violation.anomaly
            found[numbering] = min(each, found.get(numbering, each), key=severity)
    return found


def _sequence(violation: RawViolation, renumbered: dict[Numbering, Anomaly]) -> Anomaly | None:
    place, process = violation.place, violation.process
    here = None if place is None else place[:2]
    own: list[Numbering] = [] if process is None else [(process, here), (process, None)]
    under = [renumbered[each] for each in (*own, (None, here)) if each in renumbered]
    return min(under, key=severity, default=None)


def _excused(every: tuple[RawViolation, ...]) -> tuple[tuple[RawViolation, ...], tuple[RawViolation, ...]]:
    """The violations that count, and those that the claim of the run allows."""
    again = {each.place for each in every if each.cause == ALLOWED and each.anomaly is Anomaly.DUPLICATE}

    def is_allowed(each: RawViolation) -> bool:
        return each.cause == ALLOWED or (each.cause == AGAIN and each.place in again)

    return tuple(each for each in every if not is_allowed(each)), tuple(filter(is_allowed, every))


def attribute(violations: Iterable[RawViolation]) -> Attributed:
    """Divide the violations of one run into primary findings, their consequences, and those that its claim allows."""
    every, allowed = _excused(tuple(violations))
    context = _Context(every)
    broken = [each for each in every if each.anomaly is Anomaly.BROKEN_SEQUENCE]
    divided = [
        (each, next((found for rule in RULES if (found := rule(each, context)) is not None), None))
        for each in every
        if each.anomaly is not Anomaly.BROKEN_SEQUENCE
    ]
    renumbered = _renumbered(divided) if broken else {}
    divided += [(each, _sequence(each, renumbered)) for each in broken]
    primary: dict[Anomaly, list[RawViolation]] = {}
    consequences: dict[Anomaly, list[RawViolation]] = {}
    for violation, under in divided:
        if under is None:
            primary.setdefault(violation.anomaly, []).append(violation)
        else:
            consequences.setdefault(under, []).append(violation)
    return Attributed(
        primary={anomaly: tuple(primary[anomaly]) for anomaly in Anomaly if anomaly in primary},
        consequences={anomaly: tuple(consequences[anomaly]) for anomaly in Anomaly if anomaly in consequences},
        allowed=allowed,
    )
