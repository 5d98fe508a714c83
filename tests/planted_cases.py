"""Histories with one thing wrong each, and the whole set of what must be found in them.

A case is a function from a run id to a plant and its expected violations, folded or not: `Found` tuples are what the
checks return before folding, so that nothing can hide in a fold.
"""

from __future__ import annotations

from pathlib import Path

from tests import (
    planted_coordinating,
    planted_copies,
    planted_numbers,
    planted_reads,
    planted_standing,
    planted_writes,
)
from tests.planted import Plant
from tests.planted_busy import Case, Found
from tests.planted_files import write
from verification.evidence.run_directory import RunDirectory

CASES: dict[str, Case] = {
    function.__name__: function
    for function in (
        planted_writes.clean,
        planted_writes.lost_transaction,
        planted_writes.lost_append,
        planted_writes.lost_without_a_place,
        planted_writes.torn_by_marker,
        planted_writes.torn_unknown,
        planted_writes.torn_by_hiding,
        planted_writes.hidden,
        planted_writes.duplicate,
        planted_reads.aborted_read_by_capture,
        planted_reads.aborted_read_by_observer,
        planted_reads.early_read,
        planted_standing.zombie_by_time,
        planted_standing.zombie_by_epoch,
        planted_writes.reordered,
        planted_writes.reordered_unclaimed,
        planted_reads.back,
        planted_reads.skipped,
        planted_reads.inconsistent,
        planted_reads.given_twice_at_last,
        planted_reads.gone,
        planted_writes.misrouted,
        planted_writes.phantoms,
        planted_standing.hung,
        planted_standing.still_running,
        planted_standing.hung_by_leader,
        planted_standing.adopted,
        planted_standing.stuck,
        planted_standing.stranded,
        planted_standing.stranded_unclaimed,
        planted_copies.clean_copies,
        planted_copies.offset_ahead,
        planted_copies.output_ahead,
        planted_copies.copied_twice,
        planted_copies.without_log,
        planted_coordinating.coordinated,
        planted_coordinating.decided_twice,
        planted_coordinating.epoch_went_back,
        planted_copies.torn_without_log,
        planted_writes.tombstones,
        planted_numbers.number_skipped,
        planted_numbers.number_again,
        planted_numbers.numbers_unknown,
        planted_numbers.number_after_a_marker,
        planted_numbers.numbers_of_a_long_run,
    )
}


def planted_all() -> dict[str, tuple[Plant, set[Found]]]:
    """Every case under a run id of its own, by run id."""
    return {f"case-{number:02d}": case(f"case-{number:02d}") for number, case in enumerate(CASES.values())}


#: Writes, reads, transactions, copies and whoever waits: something is wrong in each but the first.
MIXED = ("clean", "lost_append", "skipped", "hung", "without_log", "copied_twice", "early_read")


def mixed(place: Path, suffix: str = "") -> list[RunDirectory]:
    """The MIXED cases as directories of runs, each named as its case and the suffix."""
    return [write(CASES[name](name[:12])[0], place / f"{name}{suffix}") for name in MIXED]


def anomalies(name: str) -> set[str]:
    """What of a MIXED case is found after folding."""
    _, expected = CASES[name](name[:12])
    return {each[0] for each in expected if (each[0], name) != ("torn-transaction", "hung")}
