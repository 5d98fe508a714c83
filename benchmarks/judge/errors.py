"""The errors of the comparison of judges; part of the tree in `benchmarks/measuring/errors.py`.

BenchError
├── DisagreementError   a contender found other violations than the planted ones, or shows other records around them
└── EvidenceSizeError   evidence of this size has no room for its plants
"""

from __future__ import annotations

from benchmarks.measuring.errors import BenchError


class DisagreementError(BenchError):
    """A contender did not find exactly the planted violations, or shows other records around them.

    Its time means nothing then.
    """

    default_hint = "A formulation or the generator is wrong. `tests/benchmarks/test_judge.py` uses fewer records."


class EvidenceSizeError(BenchError):
    """Evidence of this size has no room for its plants."""

    default_hint = "Ask for more records or for fewer plants."
