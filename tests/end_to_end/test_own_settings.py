"""A setting of the user that brings a known bug back on a release without it: the run says so before and after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.paths import FIELD_FILES
from tests.support.real_cluster import RELEASE
from tests.support.whole_commands import starting

pytestmark = pytest.mark.cluster

#: One broker and two cases of a second; a loaded machine takes several times that.
RUN_WITHIN_S = 300.0
CASE = "transaction-batches-a-partition-that-was-not-added-takes-no-batch-tv1"
SAID = "transaction.partition.verification.enable=false brings back the mechanism of KB-01"


def test_a_setting_that_brings_a_bug_back_is_the_reason(tmp_path: Path) -> None:
    """The setting reaches the broker, whose answer convicts; the case has no name of a bug, so it decides."""
    file = FIELD_FILES / "server-properties" / "verification-off.properties"
    options = ("--kafka", RELEASE, "-k", "not_added", "--server-properties", str(file))
    with starting(tmp_path) as start:
        ended = start("pytest", "suites/protocol", "--run-dir", str(tmp_path / "run"), *options).end(
            within_s=RUN_WITHIN_S
        )
    assert ended.code == 1, ended.output
    assert f"warning: {SAID}" in ended.output
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    (case,) = [each for each in results["cases"] if each["id"] == CASE]
    assert (case["verdict"], case["aside"]) == ("FAIL", "")
    assert SAID in case["reason"]
    assert f"--server-properties {file}" in case["replay"]
    assert "that a setting of yours explains" in (tmp_path / "run" / "summary.md").read_text(encoding="utf-8")
