"""What makes the figures worthless; part of the tree in `benchmarks/measuring/errors.py`.

BenchError
├── UnequalError    the sources did not read the same records
└── UnfilledError   the log that was to be read was not written
"""

from __future__ import annotations

from benchmarks.measuring.errors import BenchError


class UnequalError(BenchError):
    """The sources did not read the same records: their time means nothing."""


class UnfilledError(BenchError):
    """The log that was to be read was not written; the message is that of the producer."""

    default_hint = "The producer has bounds that only a hang reaches: run it again on a machine that is less busy."
