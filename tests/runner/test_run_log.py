"""`run.log` has the steps of the harness and the traceback of an error, and nothing once it is closed."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from fixtures.waiting import WaitTimeoutError, await_until
from runner.run_log import NAME, RunLog

#: Time in UTC, level, thread, module, message.
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) +\[[^\]]+\] [a-z_]+(\.[a-z_]+)*: .*")


def test_waits_and_breakages_are_in_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A wait names its condition and its bound before it begins; an error of one sentence has its traceback here."""
    looks = iter((False, False, True))
    log = RunLog(tmp_path)
    try:
        await_until(lambda: next(looks), "a leader", timeout_s=5.0)
        with pytest.raises(WaitTimeoutError):
            await_until(lambda: False, "a follower", timeout_s=0.0)
        try:
            (tmp_path / "missing").read_text(encoding="utf-8")
        except OSError:
            logging.getLogger("runner.x").exception("case-1 broke")
    finally:
        log.close()
    await_until(lambda: True, "a later wait", timeout_s=1.0)
    logging.getLogger("runner.x").error("a later wait")
    text = (tmp_path / NAME).read_text(encoding="utf-8")
    assert "fixtures.waiting: waiting for a leader, at most 5 s\n" in text
    assert re.search(r"fixtures\.waiting: waited 0\.\d s for a leader\n", text)
    assert "fixtures.waiting: waiting for a follower, at most 0 s\n" in text
    assert "case-1 broke\nTraceback (most recent call last):\n" in text
    assert text.splitlines()[-1].startswith("FileNotFoundError: ")
    assert "a later wait" not in text
    lines = [line for line in text.splitlines() if line[:2] == "20"]
    assert len(lines) == 4
    assert all(map(LINE.fullmatch, lines))
    # While it is open pytest captures nothing, or it would print all of it again below each case that fails.
    assert [each.message for each in caplog.records] == ["a later wait"]
