"""A machine that is busy with other work: a run of three scenarios next to two programs that never wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.support.whole_commands import Command, python

pytestmark = [pytest.mark.cluster, pytest.mark.deep]

HOGS = 2
SCENARIOS = ("without_faults", "leader_crash_while_sending", "paused_past_its_session")
#: A run may take two and a half times as long as on a quiet machine, where these take a minute in one lane. The rest is
#: for the other test files that run at the same time: a capture that starves takes minutes.
WITHIN_S = 240.0


@pytest.fixture
def hogs() -> Iterator[None]:
    """Programs that compute without end, at the priority of the run."""
    with ExitStack() as ending:
        for _ in range(HOGS):
            hog = ending.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            ending.callback(hog.kill)
        yield


@pytest.mark.usefixtures("hogs")
def test_a_run_next_to_two_hogs_is_decided(tmp_path: Path) -> None:
    """Every scenario passes, none is inconclusive, and no capture starves."""
    run = tmp_path / "run"
    options = ("--runtime", "local", "--seed", "1", "--only", "scenarios", "--run-dir", str(run))
    with closing(Command(tmp_path, python("pytest", "suites", *options, "-k", " or ".join(SCENARIOS)), {})) as command:
        ended = command.end(within_s=WITHIN_S)
    assert ended.code == os.EX_OK, ended.output
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    assert [each["verdict"] for each in results["scenarios"]] == ["PASS"] * len(SCENARIOS), ended.output
