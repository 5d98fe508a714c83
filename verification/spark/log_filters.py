"""Filters log messages of pyspark and py4j that repeat a raised error.

pyspark logs every analysis error as a page of JSON and raises it too. py4j logs a stack trace for every connection that
was interrupted, and raises the interruption too. Ctrl-C would print two screens of internals, with our one useful
sentence at their end.
"""

from __future__ import annotations

import logging

#: Loggers that only repeat raised errors.
_SAID_TWICE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: The loggers of py4j for exceptions; some go to the root logger.
_OF_PY4J = ("", "py4j.clientserver", "py4j.java_gateway")


def _interrupted(error: BaseException | None) -> bool:
    """Whether an exception is an interruption, or was raised while one was handled."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _interrupted(error.__context__))


def of_interest(record: logging.LogRecord) -> bool:
    """Whether a record is no stack trace of an interruption."""
    return not (record.exc_info and _interrupted(record.exc_info[1]))


def filter_repeated_errors() -> None:
    """Keep repeated errors out of the log of this process; calling it again does no harm."""
    for name in _SAID_TWICE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for name in _OF_PY4J:
        logging.getLogger(name).addFilter(of_interest)
