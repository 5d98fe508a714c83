"""A library that cannot name the member of a group is not fenced when another member has its partitions (KIP-447)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.deep]

#: Go builds the driver first, which takes minutes; then one scenario runs and is judged.
WITHIN_S = 900.0


@pytest.mark.parametrize(("client", "found"), [("sarama@1.50.1", {"duplicate"}), ("sarama@1.61.1", set())])
def test_offsets_without_their_member_are_committed_twice(client: str, found: set[str], tmp_path: Path) -> None:
    """A copier is cut from its group coordinator in mid-transaction, for longer than its session."""
    command = [sys.executable, "-m", "pytest", "suites", "--only", "scenarios", "-k", "cut_from_its_group"]
    command += ["--kafka", "4.3.1", "--client", client, "--runtime", "local", "--run-dir", str(tmp_path / "run")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    (scenario,) = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))["scenarios"]
    assert scenario["verdict"] == ("FAIL" if found else "PASS"), ended.stdout
    assert {each["anomaly"] for each in scenario["findings"]} == found
