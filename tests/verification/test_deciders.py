"""The commands for untested requirements: from the declarations in `suites/`, and true for the program that runs them."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from reports.model.vocabulary import catalogue, why_untested
from tests.support.paths import ROOT
from verification.requirements.deciders import deciders, deciders_of

#: A release without ZooKeeper, and one before it to upgrade from.
RELEASE, OLDER = "4.3.1", "4.1.2"


def test_every_requirement_has_a_test_or_a_reason() -> None:
    """Nothing is left with a sentence that says neither how to test it nor why nothing can."""
    for id_, each in catalogue().items():
        said = why_untested(each, RELEASE, spoke_tv2=True)
        assert (id_ in deciders_of()) == (not each.reason_untested), id_
        assert said == each.reason_untested or "It applies to" in said or "`tox -e " in said, said


@pytest.mark.parametrize("id_", ["GRP-21", "TV2-13", "TV2-15", "REC-15", "TXN-25", "SHARE-01", "IDEMP-03"])
def test_the_command_runs_a_test_of_the_requirement(id_: str) -> None:
    """The program itself lists, for this command, a test that declares the requirement; it starts nothing."""
    command = shlex.split(deciders_of()[id_].command(RELEASE).replace("OLDER", OLDER))
    assert command[:2] == ["tox", "-e"]
    job, options = command[2], command[4:]
    suite = {"conformance": "suites", "upgrade": "suites/upgrades"}.get(job, f"suites/{job}")
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", suite, "--list", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert id_ in listed.stdout, listed.stdout + listed.stderr


def test_the_jobs_of_tests_exist_and_a_control_decides_nothing() -> None:
    """Each command names a job of tox.ini; a test that must be convicted is not among the tests."""
    jobs = {each.command(RELEASE).split()[2] for each in deciders()}
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    assert jobs >= {"conformance", "protocol", "pipelines", "upgrade"}
    assert all(f"[testenv:{each}]" in tox for each in jobs)
    assert not {each.test for each in deciders() if each.suite == "controls"}
