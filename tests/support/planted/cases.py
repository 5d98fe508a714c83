"""Histories with one thing wrong each, and the whole set of what must be found in them.

A case is a function from a run id to a plant and its expected violations, folded or not: `Found` tuples are what the
checks return before folding, so that nothing can hide in a fold.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.planted import (
    coordinating,
    copies,
    counts,
    nodes,
    reads,
    sequences,
    silences,
    stability,
    standstills,
    writes,
)
from tests.support.planted.busy import Case, Found
from tests.support.planted.files import write
from tests.support.planted.histories import Plant
from verification.evidence.run_directory import RunDirectory

CASES: dict[str, Case] = {
    function.__name__: function
    for function in (
        writes.clean,
        writes.lost_transaction,
        writes.lost_append,
        writes.lost_without_a_place,
        writes.torn_by_marker,
        writes.torn_unknown,
        writes.torn_by_hiding,
        writes.hidden,
        writes.duplicate,
        reads.aborted_read_by_capture,
        reads.aborted_read_by_observer,
        reads.early_read,
        stability.zombie_by_time,
        stability.zombie_by_epoch,
        writes.reordered,
        writes.reordered_unclaimed,
        reads.back,
        reads.skipped,
        reads.inconsistent,
        reads.given_twice_at_last,
        reads.gone,
        writes.misrouted,
        writes.phantoms,
        stability.hung,
        stability.still_running,
        stability.hung_by_leader,
        stability.adopted,
        stability.adopted_by_an_abort,
        stability.stuck,
        stability.stranded,
        stability.stranded_unclaimed,
        stability.stalled,
        copies.clean_copies,
        copies.offset_ahead,
        copies.output_ahead,
        copies.copied_twice,
        copies.copied_thrice,
        copies.input_twice,
        copies.copied_aborted,
        copies.copied_undecided,
        copies.copied_as_delivered,
        copies.without_log,
        coordinating.coordinated,
        coordinating.decided_twice,
        coordinating.epoch_went_back,
        coordinating.issued_twice,
        coordinating.completed_late,
        coordinating.completed_in_time,
        coordinating.released_in_time,
        coordinating.refused,
        coordinating.refused_at_times,
        nodes.lost,
        nodes.lost_beyond_its_start,
        nodes.lost_by_a_signal,
        nodes.lost_for_want_of_an_address,
        nodes.lost_on_a_slow_machine,
        standstills.stalled,
        standstills.stalled_with_its_clients,
        standstills.stalled_after_a_start,
        standstills.stalled_without_inputs,
        standstills.stalled_until_late,
        standstills.stalled_by_aborts,
        silences.silent,
        silences.spoken,
        silences.silent_for_a_moment,
        silences.silent_while_down,
        silences.silent_unread,
        silences.silent_from_late_on,
        copies.torn_without_log,
        writes.tombstones,
        sequences.number_skipped,
        sequences.number_again,
        sequences.numbers_unknown,
        sequences.number_after_a_marker,
        sequences.numbers_of_a_long_run,
        counts.counted,
        counts.counts_kept,
        counts.store_is_ahead,
        counts.changelog_lacks_a_key,
        counts.key_without_outputs,
        counts.counts_jump,
        counts.counts_again,
        counts.counts_from_two,
        counts.without_count,
        counts.key_in_two_partitions,
        counts.counted_twice,
        counts.counted_again,
        counts.counted_again_and_kept_wrong,
    )
}


def planted_all() -> dict[str, tuple[Plant, set[Found]]]:
    """Every case under a run id of its own, by run id."""
    return {f"case-{number:02d}": case(f"case-{number:02d}") for number, case in enumerate(CASES.values())}


#: Writes, reads, transactions, copies and a reader that waits: something is wrong in each but the first.
MIXED = ("clean", "lost_append", "skipped", "hung", "without_log", "copied_twice", "early_read")


def mixed(place: Path, suffix: str = "") -> list[RunDirectory]:
    """The MIXED cases as directories of runs, each named as its case and the suffix."""
    return [write(CASES[name](name[:12])[0], place / f"{name}{suffix}") for name in MIXED]


def anomalies(name: str) -> set[str]:
    """What of a MIXED case is found after folding."""
    _, expected = CASES[name](name[:12])
    return {each[0] for each in expected if (each[0], name) != ("torn-transaction", "hung")}
