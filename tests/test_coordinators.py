"""Where a transactional id or group belongs, by Kafka's own rule."""

from __future__ import annotations

import pytest

from fixtures.clusters.observing.coordinators import partition_of


@pytest.mark.parametrize(
    ("key", "java_hash"),
    [("long", 3327612), ("double", -1325958191), ("String", -1808118735), ("", 0)],
)
def test_a_key_belongs_to_the_absolute_value_of_its_hash(key: str, java_hash: int) -> None:
    """Negative hashes count by their absolute value, not without their sign bit."""
    assert [partition_of(key, count) for count in (1, 3, 50)] == [abs(java_hash) % count for count in (1, 3, 50)]


def test_the_hash_without_an_absolute_value_counts_as_zero() -> None:
    """-2147483648 has none in 32 bits, and Kafka takes 0 for it."""
    assert partition_of("polygenelubricants", 3) == 0
