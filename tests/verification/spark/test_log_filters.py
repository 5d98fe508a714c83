"""What Spark's Python halves log about an interruption is kept back, and nothing else is."""

from __future__ import annotations

import logging

import pytest

from verification.spark.log_filters import filter_repeated_errors


def _raise(error: BaseException) -> None:
    raise error


def _log_while_handling(logger: logging.Logger, error: BaseException) -> None:
    try:
        try:
            _raise(error)
        except BaseException:
            logger.exception("while it was raised")
            _raise(OSError("the socket is closed"))
    except OSError:
        logger.exception("while it was handled")


@pytest.mark.parametrize("name", ["", "py4j.clientserver", "py4j.java_gateway"])
def test_only_traces_of_an_interruption_are_kept_back(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Those of the interruption itself and of what broke because of it; of other errors all are kept."""
    filter_repeated_errors()
    _log_while_handling(logging.getLogger(name), KeyboardInterrupt())
    assert caplog.messages == []
    _log_while_handling(logging.getLogger(name), ValueError())
    logging.getLogger(name).error("no error at all")
    assert caplog.messages == ["while it was raised", "while it was handled", "no error at all"]


def test_a_logger_of_ours_says_what_it_likes(caplog: pytest.LogCaptureFixture) -> None:
    """Messages of other loggers pass."""
    filter_repeated_errors()
    _log_while_handling(logging.getLogger("verification.judge.judge"), KeyboardInterrupt())
    assert caplog.messages == ["while it was raised", "while it was handled"]


def test_an_analysis_error_is_only_raised(caplog: pytest.LogCaptureFixture) -> None:
    """Not logged as a page of JSON as well."""
    filter_repeated_errors()
    logging.getLogger("DataFrameQueryContextLogger").error("{}")
    assert caplog.messages == []
