"""Planted histories of producers whose own numbering of their records does not go on as it should, or only seems not to."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.planted.busy import A0, A1, B0, B1, Found, busy, found
from tests.support.planted.histories import Plant, Planted
from verification.evidence.row_types import Row
from verification.evidence.rows import FORGOTTEN_NS
from verification.vocabulary.history import Intent

#: The last number before 0.
LAST = (1 << 31) - 1


def _renumber(rows: Iterable[Row], first: int) -> None:
    """Give rows the numbers from `first` on, which go round after LAST."""
    for number, row in enumerate(rows, start=first):
        row["sequence"] = number & LAST


def _aborted(planted: Planted, name: str) -> list[Row]:
    """Six records of one producer in one partition, none of them acknowledged, and one more elsewhere."""
    client = planted.client(name)
    places = (A0, A0, A0, B1)
    written = [planted.transaction(client, places, intent=Intent.ABORT, decision="abort")[1] for _ in range(2)]
    return [row for rows in written for row in rows if (row["topic_index"], row["partition"]) == A0]


def number_skipped(run: str) -> tuple[Plant, set[Found]]:
    """Aborted records are gone from the log, and an epoch does not begin with 0: nothing else shows either."""
    planted = busy(run)
    rows = _aborted(planted, "tx-9")
    planted.log[A0].remove(rows[1])
    client = planted.client()
    planted.plain(client, (B0,))
    client.epoch = 1
    _, later = planted.plain(client, (B0, B0))
    _renumber(later, 2)
    return planted.finish(), {found("broken-sequence", rows[2]), found("broken-sequence", later[0])}


def number_again(run: str) -> tuple[Plant, set[Found]]:
    """A number stands twice, two have changed places, and one stands behind LAST that is not 0."""
    planted = busy(run)
    twice, exchanged, round_again = (_aborted(planted, f"tx-{number}") for number in (7, 8, 9))
    twice[2]["sequence"] = 1
    exchanged[1]["sequence"], exchanged[2]["sequence"] = 2, 1
    _renumber(round_again, LAST - 2)
    round_again[3]["sequence"] = 1
    wrong = (*twice[2:4], *exchanged[1:4], *round_again[3:5])
    return planted.finish(), {found("broken-sequence", row) for row in wrong}


def numbers_unknown(run: str) -> tuple[Plant, set[Found]]:
    """Wherever leaders accept any number, and wherever none was captured, nothing is said."""
    planted = busy(run)
    around, unnumbered, first = (_aborted(planted, f"tx-{number}") for number in (6, 7, 9))
    _renumber(around, LAST - 2)
    for row in unnumbered[1:3]:
        row["sequence"] = None
    unnumbered[4]["sequence"], unnumbered[5]["sequence"] = -1, 17
    _renumber(first, 40)
    client = planted.client("tx-8")
    # Another control record than one that ends transactions makes no producer known.
    planted.mark(client, A1, "other")
    _, rows = planted.transaction(client, (A1, A1), intent=Intent.ABORT, decision="abort")
    _renumber(rows, 5)
    return planted.finish(), set()


def number_after_a_marker(run: str) -> tuple[Plant, set[Found]]:
    """A control record makes a producer known, but not where the log's beginning is gone, unless it raises the epoch."""
    planted = busy(run)
    client = planted.client("tx-9")
    expected = set()
    for place in (A0, B0):
        planted.mark(client, place, "abort")
        _, rows = planted.transaction(client, (place,), intent=Intent.ABORT, decision="abort")
        _renumber(rows, 7)
        if place == A0:
            expected.add(found("broken-sequence", rows[0]))
    client.epoch += 1
    planted.mark(client, B0, "abort")
    _, rows = planted.transaction(client, (B0,), intent=Intent.ABORT, decision="abort")
    _renumber(rows, 3)
    plant = planted.finish()
    plant.rows["acks"] = [row for row in plant.rows["acks"] if row["offset"] > 0]
    for row in plant.rows["ends"]:
        row["start"] = int((row["topic_index"], row["partition"]) == B0)
    return plant, {*expected, found("broken-sequence", rows[0])}


def numbers_of_a_long_run(run: str) -> tuple[Plant, set[Found]]:
    """A run of more than a day, in which brokers may have forgotten a producer."""
    planted = busy(run)
    planted.now += FORGOTTEN_NS
    _aborted(planted, "tx-9")[2]["sequence"] = 1
    plant = planted.finish()
    plant.rows["runs"][0]["forgetful"] = True
    return plant, set()
