"""Shortens an error of Spark to one line. Its errors are pages: calls, traces, and the reason at their end.

Imports nothing of pyspark before there is an error.
"""

from __future__ import annotations

import re

#: py4j's first line names the call, the next one the error. For a job that failed in another thread, Spark's message only
#: says that the result was awaited.
_NOTHING = re.compile(r"An error occurred while calling |.*Exception thrown in awaitResult")
_CAUSE = "Caused by: "
#: Packages of exceptions, and details that services add for their operators.
_LEFT_OUT = re.compile(
    r"\b(?:[a-z][\w$]*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)|\s*\(SDK Attempt Count: \d+\)|\s*SQLSTATE: \w+"
)
_STATUS = re.compile(r"\(Service: [^()]*Status Code: (\d+)[^()]*\)")
#: Separators between an error, its cause, and the code of a service, which has no blank before it.
_PARTS = re.compile(r":\s+|:(?=[A-Z]\w+: )|:(?=null\b)")


def jvm_ended(error: BaseException) -> bool:
    """Whether the JVM of this session no longer answers; errors are then only about a socket."""
    from py4j.protocol import Py4JError, Py4JJavaError

    return isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)


def in_a_line(error: BaseException) -> str:
    """The error, and its first cause where it names one, without repetition."""
    if jvm_ended(error):
        return "Spark's JVM has ended, most likely for want of memory (--spark spark.driver.memory=4g gives it more)"
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    told = [line for line in (*lines[:2], *causes) if not _NOTHING.match(line)]
    if not told:
        return repr(error)
    return _short(": ".join((told[0], causes[-1]) if causes else told[:1]))


def _short(text: str) -> str:
    parts = (part.strip(" .") for part in _PARTS.split(_STATUS.sub(r"(status \1)", _LEFT_OUT.sub("", text))))
    return ": ".join(dict.fromkeys(part for part in parts if part not in ("", "null", "SparkException")))
