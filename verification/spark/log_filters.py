"""What the Python halves of Spark log although whoever called them says it: nobody reads it twice.

pyspark logs every analysis error as a page of JSON beside raising it. py4j logs a stack trace for every connection on which
an interruption met it, beside raising that: Ctrl-C would end in two screens of its insides, and the one sentence that says
what was kept at their end.
"""

from __future__ import annotations

import logging

#: Loggers that have nothing to say but what is raised as well.
_SAID_TWICE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: Where py4j logs exceptions: some by way of the root logger.
_OF_PY4J = ("", "py4j.clientserver", "py4j.java_gateway")


def _interrupted(error: BaseException | None) -> bool:
    """Whether an exception is an interruption, or came up while one was dealt with."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _interrupted(error.__context__))


def of_interest(record: logging.LogRecord) -> bool:
    """All but the stack traces of interruptions."""
    return not (record.exc_info and _interrupted(record.exc_info[1]))


def hush() -> None:
    """Keep what is said twice out of the log, for as long as this process lives; more than once does no harm."""
    for name in _SAID_TWICE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for name in _OF_PY4J:
        logging.getLogger(name).addFilter(of_interest)
