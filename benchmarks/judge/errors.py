"""What goes wrong with the comparison of judges; part of the tree in `benchmarks/measuring/errors.py`.

BenchError
├── DisagreementError   a party did not find exactly what was planted, or shows else around it: its time means nothing
└── EvidenceSizeError   evidence of this size has no room for what is to be planted in it
"""

from __future__ import annotations

from benchmarks.measuring.errors import BenchError


class DisagreementError(BenchError):
    """A party did not find exactly what was planted, or shows else around it: its time means nothing."""

    default_hint = "One of the formulations is wrong, or the generator is; `tests/benchmarks/test_judge.py` is smaller."


class EvidenceSizeError(BenchError):
    """Evidence of this size has no room for what is to be planted in it."""

    default_hint = "Ask for more records or for fewer plants."
