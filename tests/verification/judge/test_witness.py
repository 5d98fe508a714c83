"""A witness shows a contradiction, and no more: its places, the markers that decided them, and their operations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.planted.cases import CASES
from tests.support.planted.files import write
from tests.support.planted.histories import Plant
from verification.evidence.row_types import Row
from verification.evidence.run_evidence import read_run
from verification.judge.witness import PLACES_MAX, place_of, witness
from verification.reference import judge_rows
from verification.vocabulary.anomalies import DEFINITIONS, Anomaly
from verification.vocabulary.transaction_log import TOPIC_INDEX
from verification.vocabulary.verdict import Witness
from verification.vocabulary.violations import Place, RawViolation


def _shown(plant: Plant) -> list[Row]:
    """The whole log as the judge shows places: with the number of deliveries to the captures, and the observers."""
    given = {name: Counter(map(place_of, plant.rows[name])) for name in ("committed", "uncommitted")}
    seen: dict[Place, int] = {}
    for row in plant.rows["observations"]:
        seen[place_of(row)] = seen.get(place_of(row), 0) | 1 << row["observer_index"]
    return [
        {
            **row,
            "in_log": True,
            "received": seen.get(place_of(row), 0),
            **{name: given[name][place_of(row)] for name in given},
        }
        for row in plant.rows["log"]
    ]


def _witness(case: str, tmp_path: Path, anomaly: Anomaly) -> tuple[RawViolation, Witness]:
    plant, _ = CASES[case]("shown")
    first = next(each for each in judge_rows(plant.rows) if each.anomaly is anomaly)
    return first, witness(read_run(write(plant, tmp_path / case)), first, _shown(plant))


def test_a_torn_transaction_shows_both_sides_and_their_markers(tmp_path: Path) -> None:
    """One record that is visible and one that is not, each with the marker that decided it so."""
    _, shown = _witness("torn_by_marker", tmp_path, Anomaly.TORN_TRANSACTION)
    assert [(each.partition, each.holds) for each in shown.places] == [
        (0, "record"),
        (0, "commit marker"),
        (1, "record"),
        (1, "abort marker"),
    ]
    all_readers = ("committed capture", "uncommitted capture", "careful", "eager")
    assert [each.given_to for each in shown.places if each.holds == "record"] == [
        all_readers,
        ("uncommitted capture", "eager"),
    ]
    assert [(each.told, each.records) for each in shown.operations] == [("committed", 2)]


def test_disorder_shows_the_neighbour(tmp_path: Path) -> None:
    """A late record is shown with the one that was sent after it."""
    found, shown = _witness("reordered", tmp_path, Anomaly.REORDERED_WRITE)
    assert [each.index for each in shown.places] == [1, 0]
    assert shown.places[-1].offset == found.offset


def test_a_broken_sequence_shows_what_it_should_follow(tmp_path: Path) -> None:
    """A record whose number does not follow is shown with the last one of its producer in the partition."""
    found, shown = _witness("number_again", tmp_path, Anomaly.BROKEN_SEQUENCE)
    records = [each for each in shown.places if each.holds == "record"]
    assert len({(each.producer_id, each.topic, each.partition) for each in records}) == 1
    assert [each.offset for each in records][-1] == found.offset
    assert len(records) == 2


def test_a_count_shows_the_output_before_it(tmp_path: Path) -> None:
    """An output that does not count on is shown with the last one of its key, in a partition that may be another one."""
    found, shown = _witness("key_in_two_partitions", tmp_path, Anomaly.STATE_DIVERGENCE)
    records = [(each.partition, each.offset, each.given_to) for each in shown.places if each.holds == "record"]
    readers = ("committed capture", "uncommitted capture", "careful", "eager")
    assert records == [(0, 3, readers), (found.partition, found.offset, readers)]


def test_a_zombie_shows_who_superseded_it(tmp_path: Path) -> None:
    """The initialisation of the successor is one of the operations, and completed before the zombie decided."""
    found, shown = _witness("zombie_by_time", tmp_path, Anomaly.ZOMBIE_WRITE)
    init, own = sorted(shown.operations, key=lambda each: each.action != "init")
    assert (own.process, own.operation) == found.operation_key
    assert init.process != own.process
    assert (init.completed_ns or 0) < (own.decided_ns or 0)


def test_a_wrong_step_shows_the_one_before(tmp_path: Path) -> None:
    """Records of the transaction log are shown with producer and epoch, and not as empty places."""
    found, shown = _witness("epoch_went_back", tmp_path, Anomaly.ILLEGAL_TRANSITION)
    offset = found.offset or 0
    assert [(each.topic, each.offset, each.holds, each.producer_epoch) for each in shown.places] == [
        ("__transaction_state", offset - 1, "record", 4),
        ("__transaction_state", offset, "record", 3),
    ]


def test_what_is_lost_everywhere_shows_its_promise(tmp_path: Path) -> None:
    """Without any place there is still the operation that was told committed."""
    _, shown = _witness("lost_without_a_place", tmp_path, Anomaly.LOST_WRITE)
    assert (shown.places, [each.told for each in shown.operations]) == ((), ["committed"])


@pytest.mark.parametrize("case", [name for name in CASES if CASES[name]("any")[1]])
def test_every_planted_violation_has_a_small_witness(case: str, tmp_path: Path) -> None:
    """Each gives its reason, place, operation and the marker of every record in a transaction, within a screen."""
    plant, _ = CASES[case]("shown")
    evidence = read_run(write(plant, tmp_path / case))
    known = {(each.process, each.operation) for each in plant.operations}
    rows = _shown(plant)
    for each in judge_rows(plant.rows):
        shown = witness(evidence, each, rows)
        assert shown.why == DEFINITIONS[each.anomaly].why_illegal
        of_no_record = each.anomaly in (Anomaly.LOST_NODE, Anomaly.STATE_DIVERGENCE) and each.place is None
        assert shown.places or shown.operations or of_no_record
        assert len(shown.places) <= PLACES_MAX
        places = {(at.topic, at.partition, at.offset) for at in shown.places}
        if each.place is not None:
            assert (evidence.topic(each.place[0]), *each.place[1:]) in places
        if each.operation_key in known:
            assert each.operation_key in {(one.process, one.operation) for one in shown.operations}
        if each.topic_index != TOPIC_INDEX:
            assert {_named(plant, at) for at in _deciders(plant, shown)} <= places


def _named(plant: Plant, row: Row) -> tuple[str, int, int]:
    return (plant.experiment.topics[row["topic_index"]].name, row["partition"], row["offset"])


def _deciders(plant: Plant, shown: Witness) -> list[Row]:
    """The control record that decided each record in a transaction that a witness shows, as the plant has it."""
    log = {_named(plant, row): row for row in plant.rows["log"]}
    found = []
    for row in [log[at.topic, at.partition, at.offset] for at in shown.places if at.holds == "record" and log]:
        after = [
            each
            for each in plant.rows["log"]
            if row["transactional"] and each["control"] is not None
            if (place_of(each)[:2], each["producer_id"]) == (place_of(row)[:2], row["producer_id"])
            if each["offset"] > row["offset"]
        ]
        found += sorted(after, key=place_of)[:1]
    return found
