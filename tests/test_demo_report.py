"""The demonstration: two reports of runs that exist, with what they cost."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from suites import demo_report
from suites.child_run import OverdueRunError
from tests.browser import NARROWEST
from tests.plans import CONTROL, FAILED, SMOKE
from tests.run_directories import make_run
from tests.screenshots import BYTES_MAX, IMAGES, SIZES, UPGRADE
from tests.sweep_directories import EVERY_SCRIPT, make_sweep
from verification.verdict import Verdict


def test_both_reports_are_made_of_the_runs_that_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A night of scenarios and cases, its comparison with the release before, the difference alone, sizes and times."""
    better = (SMOKE, replace(FAILED, verdict=Verdict.PASS, findings=()), CONTROL)
    before = make_run(tmp_path / "before", [replace(each, release="3.9.2") for each in better], release="3.9.2")
    now = make_run(tmp_path / "now", (SMOKE, FAILED, CONTROL))
    sweep = make_sweep(tmp_path / "sweep", EVERY_SCRIPT)
    arguments = [str(now), str(sweep), "--before", str(before), "--out", str(tmp_path / "demo")]
    assert demo_report.main(arguments) == 0
    out = tmp_path / "demo"
    nightly, upgrade = ((out / name / "report.html").read_text(encoding="utf-8") for name in ("nightly", "upgrade"))
    assert all(each.key in nightly for each in (SMOKE, FAILED, CONTROL))
    assert all(each.case in nightly for each in EVERY_SCRIPT)
    assert 'id="change"' in upgrade
    assert 'id="change"' not in nightly
    assert (out / "upgrade" / "diff.html").is_file()
    results = json.loads((out / "upgrade" / "results.json").read_text(encoding="utf-8"))
    assert results["exit_code"] == 1
    printed = capsys.readouterr().out
    assert printed.count("9 scenarios, controls and cases: evidence read in ") == 2
    assert f"report.html {(out / 'nightly' / 'report.html').stat().st_size / 1000:.0f} kB" in printed
    assert "3.9.2 to 4.3.1: 3 regressed" in printed


def test_what_is_no_run_is_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written for a directory that holds no run, and the exit code is that of bad usage."""
    now = make_run(tmp_path / "now", (SMOKE,))
    with pytest.raises(SystemExit) as ended:
        demo_report.main([str(now), "--before", str(tmp_path / "nowhere"), "--out", str(tmp_path / "demo")])
    assert ended.value.code == 4
    assert "nowhere is not a directory" in capsys.readouterr().err
    assert not (tmp_path / "demo" / "upgrade" / "report.html").exists()


def test_a_run_that_hangs_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with the environment's code; a traceback would end with that of a violation."""

    def hang(_: Sequence[str], *, within_s: float) -> int:
        raise OverdueRunError(f"The run did not end within {within_s:.0f} s.")

    monkeypatch.setattr("suites.demo_report.perform", hang)
    assert demo_report.main(["--out", str(tmp_path)]) == 5
    assert "did not end within 11000 s" in capsys.readouterr().err


def test_the_pictures_are_small_and_of_three_widths() -> None:
    """A telephone, a laptop and a wall, and an upgrade: each is there, and none makes a clone slow."""
    wanted = {f"report-{width}.png": (width, height) for width, height in SIZES} | {"upgrade.png": UPGRADE}
    for name, (width, height) in wanted.items():
        picture = (IMAGES / name).read_bytes()
        assert len(picture) < BYTES_MAX
        # A PNG's header is eight bytes of signature, length and name of its first chunk, then width and height.
        assert struct.unpack(">II", picture[16:24]) == (max(width, NARROWEST), height)
