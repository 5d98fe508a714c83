"""One defect, one finding: which violations are consequences of which, and which never are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verification.judge.primary_findings import attribute
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import RawViolation


def at(anomaly: Anomaly, offset: int, *, partition: int = 0, operation: int = 1, **values: object) -> RawViolation:
    """A violation of process 0 at a place of topic 0."""
    chosen: dict[str, object] = {"process": 0, "operation": operation, "index": 0, "topic_index": 0, **values}
    return RawViolation(anomaly=anomaly, partition=partition, offset=offset, **chosen)  # type: ignore[arg-type]


def torn(*places: str, operation: int = 1, cause: str | None = None) -> RawViolation:
    """A torn transaction with the acknowledged places of its missing records."""
    return RawViolation(
        anomaly=Anomaly.TORN_TRANSACTION, process=0, operation=operation, cause=cause, places=tuple(places)
    )


LOST, PHANTOM = at(Anomaly.LOST_WRITE, 10), at(Anomaly.PHANTOM_RECORD, 10, process=None, operation=9)
HUNG = at(Anomaly.HUNG_TRANSACTION, 5, operation=7)
BROKEN = at(Anomaly.BROKEN_SEQUENCE, 13, operation=2)
STUCK = RawViolation(anomaly=Anomaly.STUCK_LSO, topic_index=0, partition=0, offset=5)


def test_consequences_are_counted_by_their_own_anomaly() -> None:
    """A hung transaction explains two torn ones and a hidden record, in the order of severity."""
    hidden = at(Anomaly.HIDDEN_COMMITTED, 6, cause="lso")
    found = attribute((HUNG, hidden, torn("", cause="lso"), torn("", operation=2, cause="lso")))
    assert found.explained(Anomaly.HUNG_TRANSACTION) == (("torn-transaction", 2), ("hidden-committed", 1))
    assert found.explained(Anomaly.STUCK_LSO) == ()


#: name → (violation, other violations, the anomaly that it is attributed to or None)
TABLE: dict[str, tuple[RawViolation, tuple[RawViolation, ...], Anomaly | None]] = {
    "torn above a hung transaction's LSO": (torn("", cause="lso"), (HUNG,), Anomaly.HUNG_TRANSACTION),
    "hidden above a stuck LSO": (
        at(Anomaly.HIDDEN_COMMITTED, 6, cause="lso"),
        (STUCK,),
        Anomaly.STUCK_LSO,
    ),
    "hung wins over stuck": (torn("", cause="lso"), (STUCK, HUNG), Anomaly.HUNG_TRANSACTION),
    "torn for another reason": (torn(""), (HUNG, STUCK), None),
    "torn with a cause that nothing shows": (torn("", cause="lso"), (), None),
    "counted again where a copy is doubled": (
        at(Anomaly.STATE_DIVERGENCE, 6),
        (at(Anomaly.DUPLICATE, 6),),
        Anomaly.DUPLICATE,
    ),
    "counted again elsewhere": (at(Anomaly.STATE_DIVERGENCE, 6), (at(Anomaly.DUPLICATE, 7),), None),
    "lost where a phantom stands": (LOST, (PHANTOM,), Anomaly.PHANTOM_RECORD),
    "read and gone below the lost write": (
        at(Anomaly.INCONSISTENT_OFFSET, 8, cause="gone"),
        (LOST,),
        Anomaly.LOST_WRITE,
    ),
    "two contents below the lost write": (at(Anomaly.INCONSISTENT_OFFSET, 8), (LOST,), None),
    "read and gone where nothing was lost": (at(Anomaly.INCONSISTENT_OFFSET, 8, cause="gone"), (HUNG, STUCK), None),
    "lost elsewhere": (at(Anomaly.LOST_WRITE, 11), (PHANTOM,), None),
    "lost without a place": (
        RawViolation(anomaly=Anomaly.LOST_WRITE, process=0, operation=1, index=0),
        (PHANTOM,),
        None,
    ),
    "torn by a phantom": (torn("0:0:10"), (PHANTOM,), Anomaly.PHANTOM_RECORD),
    "torn by a phantom and something else": (torn("0:0:10", "0:0:12"), (PHANTOM,), None),
    "torn by a phantom and a record without a place": (torn("0:0:10", ""), (PHANTOM,), None),
    "two contents where a phantom stands": (
        at(Anomaly.INCONSISTENT_OFFSET, 10),
        (PHANTOM,),
        Anomaly.PHANTOM_RECORD,
    ),
    "two contents above a lost write": (at(Anomaly.INCONSISTENT_OFFSET, 12), (LOST,), Anomaly.LOST_WRITE),
    "two contents below a lost write": (at(Anomaly.INCONSISTENT_OFFSET, 9, operation=5), (LOST,), None),
    "two contents in another partition": (
        at(Anomaly.INCONSISTENT_OFFSET, 12, partition=1, operation=5),
        (LOST,),
        None,
    ),
    "going back over a truncation": (at(Anomaly.NONMONOTONIC_POLL, 10), (LOST,), Anomaly.LOST_WRITE),
    "skipping over a truncation that tore": (
        at(Anomaly.POLL_SKIP, 10, operation=5),
        (torn("0:0:10"),),
        Anomaly.TORN_TRANSACTION,
    ),
    "skipping a record of a torn transaction": (
        at(Anomaly.POLL_SKIP, 3, partition=1),
        (torn(""),),
        Anomaly.TORN_TRANSACTION,
    ),
    "skipping a hidden place": (
        at(Anomaly.POLL_SKIP, 3),
        (at(Anomaly.HIDDEN_COMMITTED, 3),),
        Anomaly.HIDDEN_COMMITTED,
    ),
    "skipping next to a hidden place": (at(Anomaly.POLL_SKIP, 4), (at(Anomaly.HIDDEN_COMMITTED, 3),), None),
    "reading a zombie's record": (
        at(Anomaly.ABORTED_READ, 3),
        (at(Anomaly.ZOMBIE_WRITE, 3),),
        Anomaly.ZOMBIE_WRITE,
    ),
    "reading another aborted record": (at(Anomaly.ABORTED_READ, 3, operation=2), (at(Anomaly.ZOMBIE_WRITE, 3),), None),
    "a number missing where a record was lost": (BROKEN, (LOST,), Anomaly.LOST_WRITE),
    "a number missing where a lost record may have been": (
        BROKEN,
        (RawViolation(anomaly=Anomaly.LOST_WRITE, process=0, operation=1, index=0),),
        Anomaly.LOST_WRITE,
    ),
    "a number missing where another process lost a record": (BROKEN, (replace(LOST, process=3),), None),
    "a number missing in another partition": (BROKEN, (replace(LOST, partition=1),), None),
    "a number missing in a torn transaction": (BROKEN, (torn("0:0:12"),), Anomaly.TORN_TRANSACTION),
    "a number missing where nothing of a torn transaction is": (BROKEN, (torn("0:1:12"),), None),
    "a number missing that went elsewhere": (
        BROKEN,
        (at(Anomaly.PHANTOM_RECORD, 3, partition=5),),
        Anomaly.PHANTOM_RECORD,
    ),
    "a number again where a record is": (BROKEN, (at(Anomaly.DUPLICATE, 12),), Anomaly.DUPLICATE),
    "a missing number of a record that was read": (
        BROKEN,
        (at(Anomaly.INCONSISTENT_OFFSET, 12),),
        Anomaly.INCONSISTENT_OFFSET,
    ),
    "numbers out of order with their records": (BROKEN, (at(Anomaly.REORDERED_WRITE, 12),), Anomaly.REORDERED_WRITE),
    "the number of a record that came too late": (BROKEN, (HUNG,), Anomaly.HUNG_TRANSACTION),
    "a number missing where another process's transaction hangs": (BROKEN, (replace(HUNG, process=3),), None),
    "numbers after a zombie's epoch": (BROKEN, (at(Anomaly.ZOMBIE_WRITE, 2, process=3),), Anomaly.ZOMBIE_WRITE),
    "numbers next to a zombie": (BROKEN, (at(Anomaly.ZOMBIE_WRITE, 2, partition=1),), None),
    "a number missing where a reader skipped a record": (BROKEN, (at(Anomaly.POLL_SKIP, 12),), None),
    "duplicates explain nothing": (LOST, (at(Anomaly.DUPLICATE, 10),), None),
}


@pytest.mark.parametrize("name", TABLE)
def test_which_finding_a_violation_is_attributed_to(name: str) -> None:
    """Each rule attributes exactly its violations, and a near miss stays a finding of its own."""
    violation, others, under = TABLE[name]
    attributed = attribute((violation, *others))
    if under is None:
        assert violation in attributed.primary[violation.anomaly]
    else:
        assert attributed.consequences == {under: (violation,)}
        assert violation.anomaly not in attributed.primary


def test_what_explains_a_number_may_be_explained_itself() -> None:
    """A record was lost where a phantom is: the loss and the missing number are both consequences of the phantom."""
    attributed = attribute((BROKEN, LOST, PHANTOM))
    assert attributed.primary == {Anomaly.PHANTOM_RECORD: (PHANTOM,)}
    assert attributed.consequences == {Anomaly.PHANTOM_RECORD: (LOST, BROKEN)}


def test_the_worst_of_several_explains_a_number() -> None:
    """A number is attributed once, to the worst anomaly."""
    attributed = attribute((BROKEN, at(Anomaly.REORDERED_WRITE, 12), at(Anomaly.DUPLICATE, 11), torn("")))
    assert attributed.consequences == {Anomaly.TORN_TRANSACTION: (BROKEN,)}


def test_findings_are_in_order_of_severity() -> None:
    """The worst anomaly comes first, in any order of violations."""
    found = (STUCK, at(Anomaly.DUPLICATE, 1), LOST)
    assert list(attribute(found).primary) == [Anomaly.LOST_WRITE, Anomaly.DUPLICATE, Anomaly.STUCK_LSO]
