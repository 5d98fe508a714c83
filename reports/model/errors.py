"""The errors of making a report.

    ReportError                 base of all; the message is a sentence and a hint
    ├── UnfitRunError           the path is no run directory, or nothing in it can be read
    ├── UnfitRunRecordError     `run.json` is missing, truncated, foreign or of another format
    ├── UnfitBaselineError      a baseline is missing, truncated, foreign or of another format
    ├── UnfitTrendError         of all runs of a trend none can be read
    └── RetentionError          fewer than one run to keep, or `latest` is no symlink

A run directory with damaged files is no error: the report names the damage.
"""

from __future__ import annotations


class ReportError(Exception):
    """A report cannot be made; the message is one sentence with a hint."""


class UnfitRunError(ReportError):
    """The path is no directory of a run, scenario or case; the message names the files that were looked for."""


class UnfitRunRecordError(ReportError):
    """`run.json` cannot be read; the message says why."""


class UnfitBaselineError(ReportError):
    """The `results.json` to compare with cannot be used; the message says why."""


class UnfitTrendError(ReportError):
    """A trend has no run; the message names the first file and its fault."""


class RetentionError(ReportError):
    """The number of runs to keep makes no sense, or `latest` is no symlink."""
