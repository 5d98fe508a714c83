"""`pytest suites/protocol`: its listing, the options that it refuses, and how it is a part of the whole run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from verification.requirements.catalogue import load

WITHIN_S = 120.0


def pytest_of(place: str, *options: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", place, "--run-dir", str(directory / "run"), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def test_every_case_makes_a_claim_on_known_requirements(tmp_path: Path) -> None:
    """Each case has a claim and rows of the catalogue; listing them starts nothing, on an old release too."""
    done = pytest_of("suites/protocol", "--list", "--kafka", "2.8.2", directory=tmp_path)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    heads = [number for number, line in enumerate(lines) if "  (" in line and not line.startswith(" ")]
    assert len(heads) >= 12
    catalogue = load()
    keys = []
    for number in heads:
        key, _, rest = lines[number].partition("  (")
        ids = rest.partition(")")[0].split(", ")
        assert set(ids) <= set(catalogue), lines[number]
        assert lines[number + 1].strip().endswith("."), f"{key} makes no claim"
        keys.append(key)
    assert len(set(keys)) == len(keys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "scenarios", "cases"),
    [((), True, True), (("--only", "scenarios"), True, False), (("--only", "protocol"), False, True)],
    ids=["whole", "only scenarios", "only protocol"],
)
def test_one_run_has_scenarios_and_cases(
    options: tuple[str, ...], scenarios: bool, cases: bool, tmp_path: Path
) -> None:
    """A whole run has both; `--only` leaves one kind out. The last line counts them."""
    done = pytest_of("suites", "--list", *options, directory=tmp_path)
    assert ("atomicity-leader-crash-while-committing" in done.stdout) is scenarios
    assert ("idempotence-a-gap-is-refused" in done.stdout) is cases
    assert bool(re.search(r"\d+ scenarios, \d+ of them controls", done.stdout)) is scenarios
    assert bool(re.search(r"\d+ protocol cases", done.stdout)) is cases


def test_a_smoke_run_has_no_cases(tmp_path: Path) -> None:
    """It gives a first answer early."""
    done = pytest_of("suites", "--list", "--profile", "smoke", directory=tmp_path)
    assert "protocol cases" not in done.stdout
    assert "scenarios" in done.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--kafka", "2.3.1"], "is older than 2.4.0"),
        (["--kafka", "banana"], "does not name a release of Kafka"),
    ],
)
def test_bad_options_get_one_sentence_and_exit_code_4(options: list[str], sentence: str, tmp_path: Path) -> None:
    """A wrong option is refused before anything starts."""
    done = pytest_of("suites/protocol", *options, directory=tmp_path)
    assert sentence in done.stdout + done.stderr
    assert done.returncode == 4
    assert not (tmp_path / "run").exists()


def test_a_selection_of_nothing_is_inconclusive(tmp_path: Path) -> None:
    """Zero cases is not a PASS. Nothing follows the closing line, such as a warning about a file that was not closed."""
    # As in tox. That plugin of pytest keeps files open, and then there would never be a warning.
    options = ("-p", "no:hypothesispytest", "-k", "no_such_case")
    done = pytest_of("suites/protocol", *options, directory=tmp_path)
    assert done.returncode == 2, done.stdout
    assert not done.stderr
