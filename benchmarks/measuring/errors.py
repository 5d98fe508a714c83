"""The errors of benchmarks; part of the tree in `fixtures/errors.py`.

OnceproofError
└── EnvironmentProblemError
    └── BenchError                      no figure, or a figure without meaning
        ├── ContenderError              a contender failed, or is not installed
        ├── BareBrokerError             the broker to compare with did not start
        ├── WorthlessJudgementError     the timed judgement did not see all the evidence
        ├── WorthlessReportError        the timed report does not have all the scenarios
        └── WorthlessRateError          a client did not write or read all its records
"""

from __future__ import annotations

from fixtures.errors import EnvironmentProblemError


class BenchError(EnvironmentProblemError):
    """No figure, or a figure without meaning."""


class BareBrokerError(BenchError):
    """The broker to compare with did not start; the message ends with the tail of its log."""


class WorthlessJudgementError(BenchError):
    """The verdict was not PASS, or the judge did not see everything, so its time means nothing."""

    default_hint = "INCONCLUSIVE means that the machine is too busy; ERROR mostly means too little memory for Spark."


class WorthlessReportError(BenchError):
    """The report does not have every prepared scenario, so its time and size mean nothing."""


class WorthlessRateError(BenchError):
    """A client did not write or receive all its records, so its rate means nothing."""

    default_hint = "Run it again on a quiet machine. If it fails again, the settings of that client no longer fit."


class ContenderError(BenchError):
    """A contender failed; the message ends with the tail of its output."""
