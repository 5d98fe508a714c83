"""The errors of the comparison of sources; part of the tree in `benchmarks/measuring/errors.py`.

BenchError
├── UnequalError    the sources did not read the same records
└── UnfilledError   the log to read was not written
"""

from __future__ import annotations

from benchmarks.measuring.errors import BenchError


class UnequalError(BenchError):
    """The sources did not read the same records, so their times mean nothing."""


class UnfilledError(BenchError):
    """The log to read was not written; the message is that of the producer."""

    default_hint = "Only a hang exceeds the producer's timeouts: run it again on a machine that is less busy."
