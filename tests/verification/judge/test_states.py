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
    return sorted((each.topic_index, each.partition, each.offset) for each in violations)


@settings(deadline=None, database=None, max_examples=500, derandomize=True)
@given(OUTPUTS, st.randoms(use_true_random=False))
def test_both_judges_find_the_same_in_any_order_of_rows(outputs: list[Any], chance: Any) -> None:
    """A walk with the last output of each key, and lists of the outputs of each key."""
    rows = _rows(outputs)
    found = _places(list(state_divergence(rows)))
    chance.shuffle(rows)
    assert _places(list(state_divergence(rows))) == found
    reference = judge_rows({**HONEST, "counts": rows})
    assert all(each.anomaly is Anomaly.STATE_DIVERGENCE for each in reference)
    assert _places(reference) == found
    honest = all(partition == 0 and key is not None and step == 1 for _, partition, key, step in outputs)
    assert not (honest and found)


def test_a_violation_says_what_was_due() -> None:
    """The key, its count, the count that was due, and where the output before it is."""
    rows = _rows([(0, 0, "a", 1), (0, 0, "a", 2), (0, 0, "b", 2), (0, 0, None, 1)])
    assert [each.detail for each in state_divergence(rows)] == [
        "key a: count 3 where 2 was due, after partition 0 at 0",
        "key b: count 2 where 1 was due, the first of its key",
        "the output has no key and count",
    ]
