"""The examples of `docs/ci` use environments, options and files that exist, and work when they are carried out."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from reports.retention import LATEST
from runner.config import OUT
from runner.options import add_options
from tests.reports.trend.results import body, plant, started
from tests.support.paths import ROOT
from tests.support.plans import STARTED
from tests.support.whole_commands import python
from tests.support.workflows import (
    CLEAN,
    ENDLESS,
    GITHUB,
    GITLAB,
    TIMED_OUT,
    VIOLATING,
    Done,
    body_of,
    carry_out,
    job_of,
)
from verification.vocabulary.verdict import ExitCode

EXAMPLES = sorted((ROOT / "docs" / "ci").glob("*.yml"))
SYSTEMS = (GITHUB, GITLAB)
#: Each test starts several commands of ours; those of the second system are started each night.
PERFORMED = (SYSTEMS[0], *(pytest.param(each, marks=pytest.mark.deep) for each in SYSTEMS[1:]))
GUIDE = ROOT / "docs" / "ci.md"
#: The files that a run leaves; the examples keep some of them.
FILES = {"report.html", "results.json", "junit.xml", "ctrf.json", "summary.md", "badge.json", "trace.json", "trend"}
#: The schemas by which editors check such files, published by SchemaStore and GitLab and kept in a package.
SCHEMAS = files("check_jsonschema.builtin_schemas") / "vendor"
LIMITED = re.compile(r"timeout --kill-after=(\d+)m (\d+)m (?:\S*/)?tox -e (?:conformance|upgrade)")
#: Minutes that a job takes for packages, the trend and uploads.
OTHERS_MIN = 3
COMMAND = re.compile(r"tox -e (\S+)((?: --(?=\s))?(?:[^\n|&`]|\\\n)*)")


def scripts(value: Any) -> Iterator[str]:
    """Every shell script of a workflow, wherever the system keeps it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "run":
                yield inner
            elif name in ("script", "after_script"):
                yield "\n".join(inner)
            else:
                yield from scripts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from scripts(inner)


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def example(request: pytest.FixtureRequest) -> Path:
    """Each of the examples."""
    path: Path = request.param
    return path


def test_every_example_is_a_workflow_with_commands(example: Path) -> None:
    """It is YAML, it has scripts, and each of them is sound shell."""
    found = list(scripts(body_of(example)))
    assert any(re.search("tox -e (conformance|upgrade)", script) for script in found)
    for script in found:
        checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


def faults_of(example: Path, body: dict[str, Any]) -> list[str]:
    """The errors of a workflow by the published schema of its system."""
    name = "github-workflows.json" if example.stem.startswith(GITHUB) else "gitlab-ci.json"
    schema = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return [each.message for each in jsonschema.validators.validator_for(schema)(schema).iter_errors(body)]


def test_the_published_schema_accepts_every_example(example: Path) -> None:
    """The schema refuses the same file with a wrong job."""
    body = body_of(example)
    assert faults_of(example, body) == []
    jobs = body.get("jobs", body)
    (name,) = jobs
    jobs[name] = {**jobs[name], "timeout-minutes" if "jobs" in body else "timeout": ["an hour"]}
    assert faults_of(example, body)


@pytest.mark.parametrize("path", [*EXAMPLES, GUIDE], ids=lambda path: path.name)
def test_environments_and_options_exist(path: Path) -> None:
    """Each `tox -e …` is an environment of tox.ini, and each option of a conformance run exists."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    parser = pytest.Parser(_ispytest=True)
    add_options(parser)
    known = {name for group in parser._groups for option in group.options for name in option.names()}
    commands = COMMAND.findall(path.read_text(encoding="utf-8"))
    assert commands
    for environment, rest in commands:
        assert f"testenv:{environment}" in tox.sections()
        if environment in ("conformance", "upgrade"):
            assert set(re.findall(r"--[a-z-]+", rest)) <= known


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_nightly_run_tries_everything(path: Path) -> None:
    """Runners have a Docker engine, and some nightly scenarios need brokers that are local processes."""
    for environment, rest in COMMAND.findall(path.read_text(encoding="utf-8")):
        if environment == "conformance" and "--profile nightly" in rest:
            assert "--runtime local" in rest


def test_a_nightly_run_has_time_for_everything() -> None:
    """On a machine with two lanes, by the estimate that the run itself shows."""
    listed = subprocess.run(
        python("pytest", "suites", "--profile", "nightly", "--lanes", "2", "--collect-only", "-q"),
        text=True,
        capture_output=True,
        cwd=ROOT,
        check=True,
    )
    (expected,) = re.findall(r"protocol cases: about (\d+) min", listed.stdout)
    nightly = [path.read_text(encoding="utf-8") for path in EXAMPLES if path.stem.endswith("-nightly")]
    limits = [int(minutes) for text in nightly for _, minutes in LIMITED.findall(text)]
    assert len(limits) == len(SYSTEMS)
    # A fifth more, for downloads, and because a whole quick run took up to a fifth longer than its estimate.
    assert 1.2 * int(expected) < min(limits)


def test_every_run_ends_before_its_job_is_killed(example: Path) -> None:
    """Each run has a time limit, and all of them fit into that of the job, also if they must be killed."""
    body = body_of(example)
    (job,) = body.get("jobs", body).values()
    (minutes,) = re.findall(r"\d+", str(job.get("timeout-minutes", job.get("timeout"))))
    text = "\n".join(scripts(body))
    limits = [int(kill) + int(limit) for kill, limit in LIMITED.findall(text)]
    assert len(limits) == len(re.findall(r"tox -e (?:conformance|upgrade)", text)) > 0
    assert sum(limits) + OTHERS_MIN <= int(minutes) <= 2 * sum(limits)


def test_what_is_kept_is_what_a_run_leaves(example: Path) -> None:
    """Paths of reports name the directory that runs are kept in, and files that a run writes."""
    text = example.read_text(encoding="utf-8")
    kept = re.findall(rf"{OUT.relative_to(ROOT)}/([\w.-]*)/?([\w.-]*)", text)
    assert kept
    for directory, name in kept:
        assert directory in {"", LATEST, "from", "to"}
        assert name in {"", *FILES}


def performed(kind: str, system: str, place: Path, planted: dict[str, str], **given: str) -> Done:
    """Carry out the example of one kind on one system. Whatever its result, the kept files of a run are there."""
    job = job_of(ROOT / "docs" / "ci" / f"{system}-{kind}.yml")
    done = carry_out(job, place, given=given, planted=planted)
    results = list((done.checkout / OUT.relative_to(ROOT)).rglob("results.json"))
    if results:
        assert job.kept
        assert all(list((done.checkout / each).rglob("report.html")) for each in job.kept)
    return done


def cases_of(done: Done, path: str) -> int:
    """The number of test cases in the system's own list of tests."""
    return sum(1 for _ in Xml.parse(done.checkout / path).iter("testcase"))  # noqa: S314 - our own file


@pytest.mark.parametrize("system", PERFORMED)
@pytest.mark.parametrize(
    ("before", "now", "code", "said"),
    [
        # The violations of production are the baseline, not the verdict of the job.
        (VIOLATING, CLEAN, 0, "0 regressed, 0 vanished, 0 newly inconclusive, 3 fixed"),
        (CLEAN, VIOLATING, 1, "3 regressed, 0 vanished"),
        (VIOLATING, VIOLATING, 1, "0 regressed, 0 vanished, 0 newly inconclusive, 0 fixed"),
    ],
)
def test_an_upgrade_is_decided_by_the_new_release(
    tmp_path: Path, system: str, before: str, now: str, code: int, said: str
) -> None:
    """The exit code of the job is that of the second run; its report with the changes is kept in any case."""
    planted = {"3.9.2": before, "4.3.1": now}
    given = {"from": "3.9.2", "to": "4.3.1"} if system == GITHUB else {"FROM": "3.9.2", "TO": "4.3.1"}
    done = performed("upgrade", system, tmp_path, planted, **given)
    assert done.code == code
    to = done.checkout / "reports" / "out" / "to"
    assert said in (to / "summary.md").read_text(encoding="utf-8")
    if system == GITHUB:
        assert said in done.summary
    else:
        assert cases_of(done, job_of(ROOT / "docs" / "ci" / f"{system}-upgrade.yml").junit)


@pytest.mark.parametrize("system", PERFORMED)
@pytest.mark.parametrize(("does", "code"), [(CLEAN, 0), (VIOLATING, 1)])
def test_a_rolling_upgrade_is_shown_next_to_its_control(tmp_path: Path, system: str, does: str, code: int) -> None:
    """The job ends as the upgrade does; the run of the same release is its baseline."""
    planted = {"4.1.2": CLEAN, "4.3.1": does}
    given = {"from": "4.1.2", "to": "4.3.1"} if system == GITHUB else {"FROM": "4.1.2", "TO": "4.3.1"}
    done = performed("rolling-upgrade", system, tmp_path, planted, **given)
    assert done.code == code
    said = (done.checkout / "reports" / "out" / "to" / "summary.md").read_text(encoding="utf-8")
    assert f"{3 * code} regressed, 0 vanished" in said
    if system == GITHUB:
        assert done.summary == said


def test_a_night_of_upgrades_shows_the_page_of_the_matrix(tmp_path: Path) -> None:
    """Also when a path did not end as expected; the paths that the example names are in the matrix."""
    done = performed("upgrade-matrix", GITHUB, tmp_path, {})
    assert done.code == ExitCode.INCONCLUSIVE
    assert done.summary == (done.checkout / "docs" / "generated" / "upgrades.md").read_text(encoding="utf-8")
    assert "| path | client, seed | for |" in done.summary


@pytest.mark.parametrize("system", PERFORMED)
def test_an_upgrade_from_a_run_that_left_nothing_is_not_compared(tmp_path: Path, system: str) -> None:
    """Without a baseline no result could be worse, so the job ends before the new release is run."""
    given = {"from": "3.9.2", "to": "4.3.1"} if system == GITHUB else {"FROM": "3.9.2", "TO": "4.3.1"}
    done = performed("upgrade", system, tmp_path, {"4.3.1": CLEAN}, **given)
    assert done.code
    assert not (done.checkout / "reports" / "out" / "to").exists()


@pytest.mark.parametrize("system", PERFORMED)
def test_an_upgrade_from_a_run_that_reached_its_limit_is_not_compared(tmp_path: Path, system: str) -> None:
    """The results of a part of a run are no baseline; they are kept, and the job ends before the new release is run."""
    given = {"from": "3.9.2", "to": "4.3.1"} if system == GITHUB else {"FROM": "3.9.2", "TO": "4.3.1"}
    done = performed("upgrade", system, tmp_path, {"3.9.2": ENDLESS, "4.3.1": CLEAN}, **given)
    assert done.code
    assert (done.checkout / "reports" / "out" / "from" / "results.json").is_file()
    assert not (done.checkout / "reports" / "out" / "to").exists()


@pytest.mark.parametrize("system", PERFORMED)
def test_a_night_that_reached_its_limit_is_no_violation(tmp_path: Path, system: str) -> None:
    """It ends with the code of `timeout`, and its report is kept."""
    given = {"kafka": "4.3.1"} if system == GITHUB else {"KAFKA": "4.3.1"}
    done = performed("nightly", system, tmp_path, {"4.3.1": ENDLESS}, **given)
    assert done.code == TIMED_OUT
    assert (done.checkout / "reports" / "out" / LATEST / "summary.md").is_file()


@pytest.mark.parametrize("system", PERFORMED)
@pytest.mark.parametrize(("release", "does", "code"), [("4.2.1", CLEAN, 0), ("", VIOLATING, 1)])
def test_a_night_ends_with_its_exit_code_and_keeps_its_report(
    tmp_path: Path, system: str, release: str, does: str, code: int
) -> None:
    """The night tests the given release, or else the default one; the summary is there either way."""
    given = {"kafka": release} if system == GITHUB else {"KAFKA": release}
    done = performed("nightly", system, tmp_path, {release: does}, **given)
    assert done.code == code
    latest = done.checkout / "reports" / "out" / LATEST
    assert json.loads((latest / "results.json").read_text(encoding="utf-8"))["run"]["profile"] == "nightly"
    trend = (latest / "trend" / "trend.md").read_text(encoding="utf-8")
    assert "Trend over 1 run" in trend
    if system == GITHUB:
        assert done.summary == (latest / "summary.md").read_text(encoding="utf-8") + trend
    else:
        assert cases_of(done, job_of(ROOT / "docs" / "ci" / f"{system}-nightly.yml").junit)


@pytest.mark.parametrize("system", PERFORMED)
def test_the_trend_has_the_last_sixty_nights(tmp_path: Path, system: str) -> None:
    """The results of earlier nights, which the system has kept, and of this one; older ones are removed."""
    for number in range(70):
        plant(tmp_path / "checkout" / "nights" / f"202610{number:02}T021700Z", body(number))
    done = performed(
        "nightly", system, tmp_path, {"4.3.1": CLEAN}, **{"kafka" if system == GITHUB else "KAFKA": "4.3.1"}
    )
    made = json.loads((done.checkout / "reports/out/latest/trend/trend.json").read_text(encoding="utf-8"))
    assert done.code == 0
    assert [each["started"] for each in made["runs"]] == [*(started(number) for number in range(11, 70)), STARTED]
    assert len(list((done.checkout / "nights").iterdir())) == 60


@pytest.mark.parametrize("system", PERFORMED)
def test_a_night_without_results_is_not_in_the_trend(tmp_path: Path, system: str) -> None:
    """A run that could not start leaves nothing; the exit code stays that of the run."""
    done = performed("nightly", system, tmp_path, {}, **{"kafka" if system == GITHUB else "KAFKA": "4.3.1"})
    assert done.code == ExitCode.ENVIRONMENT
    assert not list(done.checkout.rglob("trend.json"))
    assert not (done.checkout / "nights").exists()
