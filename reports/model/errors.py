"""What can go wrong while a report is made.

    ReportError                 everything below; the message is a sentence and a hint
    ├── UnfitRunError           the path is no run directory of this suite, or nothing in it can be read
    ├── UnfitRunRecordError     `run.json` is missing, cut, foreign or of another format
    ├── UnfitBaselineError      a baseline is missing, cut, foreign or of another format
    └── RetentionError          asked to keep fewer than one run, or something stands where `latest` belongs

A run directory that is damaged in part is no error: the report is made and names the damage.
"""

from __future__ import annotations


class ReportError(Exception):
    """A report cannot be made; the message is one sentence with a hint."""


class UnfitRunError(ReportError):
    """The path is not a whole run's directory and not a scenario's; the message says what was looked for."""


class UnfitRunRecordError(ReportError):
    """`run.json` cannot be read; the message says why."""


class UnfitBaselineError(ReportError):
    """The `results.json` to compare with cannot be used; the message says why."""


class RetentionError(ReportError):
    """The number of runs to keep makes no sense, or `latest` is no symlink."""
