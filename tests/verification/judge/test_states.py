"""Both judges of counts agree about any rows, and count each key of each topic by itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.planted import counts
from verification.checks.states import state_divergence
from verification.evidence.row_types import Row
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly

HONEST = counts.counted("honest")[0].rows
#: Few values, so that many outputs nearly count on: topic, partition, key, and the step from the count before.
OUTPUTS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([1, 1, 1, 1, 1, 0, -1, 2]),
    ),
    max_size=12,
)


#: A state with few keys and counts, so that it often has the last one: its origin, key and count.
KEPT = st.lists(
    st.tuples(st.sampled_from(["store", "changelog"]), st.sampled_from(["a", "b", "c"]), st.integers(0, 3)), max_size=5
)


def _rows(outputs: list[Any]) -> list[Row]:
    """The outputs in the order of offsets; a key that stays in its partition and always steps by 1 is in order."""
    reached: dict[tuple[int, str], int] = {}
    rows: list[Row] = []
    for offset, (topic, partition, key, step) in enumerate(outputs):
        count = None if key is None else reached.get((topic, key), 0) + step
        if key is not None and count is not None:
            reached[topic, key] = count
        rows.append({"topic_index": topic, "partition": partition, "offset": offset, "key": key, "count": count})
    return rows


def _places(violations: list[Any]) -> list[tuple[int, int, int]]:
    """The places, in order; a violation without one is a key that no output has."""
    return sorted(each.place or (-1, -1, -1) for each in violations)


@settings(deadline=None, database=None, max_examples=500, derandomize=True)
@given(OUTPUTS, KEPT, st.randoms(use_true_random=False))
def test_both_judges_find_the_same_in_any_order_of_rows(outputs: list[Any], state: list[Any], chance: Any) -> None:
    """A walk with the last output of each key, and lists of the outputs of each key."""
    rows = _rows(outputs)
    kept = [{"origin": origin, "place": "p", "key": key, "count": count} for origin, key, count in state]
    jumps = _places(list(state_divergence(rows)))
    found = _places(list(state_divergence(rows, kept)))
    chance.shuffle(rows)
    chance.shuffle(kept)
    assert _places(list(state_divergence(rows, kept))) == found
    reference = judge_rows({**HONEST, "counts": rows, "kept_counts": kept})
    assert all(each.anomaly is Anomaly.STATE_DIVERGENCE for each in reference)
    assert _places(reference) == found
    honest = all(partition == 0 and key is not None and step == 1 for _, partition, key, step in outputs)
    assert not (honest and jumps)
    assert set(jumps) <= set(found)


def test_a_state_says_how_it_disagrees() -> None:
    """A count of another number, a key that is missing, and one that no output has."""
    rows = _rows([(0, 0, "a", 1), (0, 0, "b", 1), (0, 0, "b", 1)])
    kept = [
        {"origin": "store", "place": "instance-0", "key": "a", "count": 1},
        {"origin": "store", "place": "instance-1", "key": "b", "count": 3},
        {"origin": "store", "place": "instance-1", "key": "c", "count": 1},
        {"origin": "changelog", "place": "counts", "key": "b", "count": 2},
    ]
    assert sorted(each.detail for each in state_divergence(rows, kept)) == [
        "key a: no changelog has it, and its last output has the count 1",
        "key b: the store of instance-1 has the count 3 where its last output has 2",
        "key c: the store has it, and no output does",
    ]


def test_a_violation_says_what_was_due() -> None:
    """The key, its count, the count that was due, and where the output before it is."""
    rows = _rows([(0, 0, "a", 1), (0, 0, "a", 2), (0, 0, "b", 2), (0, 0, None, 1)])
    assert [each.detail for each in state_divergence(rows)] == [
        "key a: count 3 where 2 was due, after partition 0 at 0",
        "key b: count 2 where 1 was due, the first of its key",
        "the output has no key and count",
    ]
