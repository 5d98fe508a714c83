"""The examples of `docs/ci` say what the product has: environments, options, files."""

from __future__ import annotations

import configparser
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reports.retention import LATEST
from suites.config import OUT, add_options

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "docs" / "ci").glob("*.yml"))
GUIDE = ROOT / "docs" / "ci.md"
#: What a run leaves, of which the examples keep something.
FACES = {"report.html", "results.json", "junit.xml", "ctrf.json", "summary.md", "badge.json", "trace.json"}
COMMAND = re.compile(r"tox -e (\S+)((?: --(?=\s))?(?:[^\n|&`]|\\\n)*)")


def scripts(value: Any) -> Iterator[str]:
    """Every shell script of a workflow, wherever the system keeps it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "run":
                yield inner
            elif name == "script":
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
    found = list(scripts(yaml.safe_load(example.read_text(encoding="utf-8"))))
    assert any("tox -e conformance" in script for script in found)
    for script in found:
        checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("path", [*EXAMPLES, GUIDE], ids=lambda path: path.name)
def test_environments_and_options_exist(path: Path) -> None:
    """Each `tox -e …` is an environment of ours, and each option of a conformance run is one that it has."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    parser = pytest.Parser(_ispytest=True)
    add_options(parser)
    known = {name for group in parser._groups for option in group.options for name in option.names()}
    commands = COMMAND.findall(path.read_text(encoding="utf-8"))
    assert commands
    for environment, rest in commands:
        assert f"testenv:{environment}" in tox.sections()
        if environment == "conformance":
            assert set(re.findall(r"--[a-z-]+", rest)) <= known


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_nightly_run_tries_everything(path: Path) -> None:
    """Runners have a Docker engine, and some scenarios of the night are tried on processes of the machine alone."""
    for environment, rest in COMMAND.findall(path.read_text(encoding="utf-8")):
        if environment == "conformance" and "--profile nightly" in rest:
            assert "--runtime local" in rest


def test_what_is_kept_is_what_a_run_leaves(example: Path) -> None:
    """Paths of reports name the directory that runs are kept in, and files that a run writes."""
    text = example.read_text(encoding="utf-8")
    kept = re.findall(rf"{OUT.relative_to(ROOT)}/([\w.-]*)/?([\w.-]*)", text)
    assert kept
    for directory, name in kept:
        assert directory in {"", LATEST, "from", "to"}
        assert name in {"", *FACES}
