"""What makes the figures worthless; part of the tree in `suites/bench/errors.py`."""

from __future__ import annotations

from suites.bench.errors import BenchError


class UnequalError(BenchError):
    """The sources did not read the same records: their time means nothing."""
