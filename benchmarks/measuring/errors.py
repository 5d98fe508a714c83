"""What goes wrong with a benchmark; part of the tree in `fixtures/errors.py`.

OnceproofError
└── EnvironmentProblemError
    └── BenchError                  no figure came about, or none that means anything
        ├── ContenderError              a party did not come to its end, or one of them is not installed
        ├── BareBrokerError         the broker that is the measure did not start
        ├── WorthlessJudgementError what was timed is not the judgement of all the evidence
        ├── WorthlessReportError    the report that was timed is not that of all the scenarios
        └── WorthlessRateError      a client did not write or read what it was timed for
"""

from __future__ import annotations

from fixtures.errors import EnvironmentProblemError


class BenchError(EnvironmentProblemError):
    """No figure came about, or none that means anything."""


class BareBrokerError(BenchError):
    """The broker that is the measure did not start; the message ends with the tail of its log."""


class WorthlessJudgementError(BenchError):
    """The verdict was not PASS, or the judge did not see everything: its time means nothing."""

    default_hint = (
        "An INCONCLUSIVE comes from a machine that is too busy, an ERROR mostly from too little memory for Spark."
    )


class WorthlessReportError(BenchError):
    """The report does not have every scenario that was laid out for it: its time and size mean nothing."""


class WorthlessRateError(BenchError):
    """A client did not write, or was not given, as many records as it was asked for: its rate means nothing."""

    default_hint = "Run it again on a quiet machine; when it persists, the settings of that client no longer fit."


class ContenderError(BenchError):
    """A party did not come to its end; the message ends with the tail of what it said."""
