"""The command lines of the README and the guides: the real parser takes the options of each, and refuses none."""

from __future__ import annotations

import configparser
import re
import shlex
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks.cost.__main__ import BENCHMARK
from fixtures.clients.registry import CLIENTS
from fixtures.clusters.locks.releases import default_release, fetch_release
from runner.config import PIPELINES, PROTOCOL, UPGRADES, WATCH, Only
from runner.options import from_options
from tests.end_to_end.test_guides import GUIDES
from tests.support.paths import ROOT
from verification.command_line import Parser

KINDS = {PROTOCOL: Only.PROTOCOL, UPGRADES: Only.UPGRADE, PIPELINES: Only.PIPELINES, WATCH: Only.WATCH}
#: A command of one of these jobs with options in code: as far as a comment, an ellipsis or the end of the code.
_COMMAND = re.compile(r"tox -e (conformance|smoke|protocol|watch|pipelines|upgrade|cost)\s+-- ([^#…]*)")
#: Values for what a reader puts in; port 9 refuses connections at once.
_PLACEHOLDERS = {
    "HOST:PORT": "127.0.0.1:9",
    "FILE": "client.properties",
    "NEW": "4.3.1",
    "VERSION": "4.3.1",
    "OLD": "4.1.2",
    "A": "4.1.2",
    "B": "4.3.1",
    "X": "4.3.1",
    "DIR": "libs",
    "/tmp/kafka_2.13-4.5.0-SNAPSHOT": "libs",  # noqa: S108 - the text of a guide
    "results-of-OLD.json": "results.json",
    "reports/out/from/results.json": "results.json",
    "./my-client": "true",
    "./my-client --quiet": "true --quiet",
}
#: Values of an option before an ellipsis.
_LEFT_OUT = {"--bootstrap": "127.0.0.1:9", "--kafka": "4.3.1"}


def code(guide: str) -> Iterator[str]:
    """Each line of a fenced block, and each span of code."""
    guide = guide.replace("\\\n", " ")
    for block in re.findall(r"```\w*\n(.*?)```", guide, re.DOTALL):
        yield from block.splitlines()
    for span in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", guide, flags=re.DOTALL)):
        yield " ".join(span.split())


def commands() -> dict[str, tuple[str, list[str]]]:
    """The job and the options of each command, by the file and the line of code that has it."""
    found = {}
    for guide in GUIDES:
        for line in code(guide.read_text(encoding="utf-8")):
            for job, options in _COMMAND.findall(line):
                words = [_PLACEHOLDERS.get(word, word) for word in shlex.split(options)]
                words += [value for name, value in _LEFT_OUT.items() if words[-1] == name]
                found[f"{guide.relative_to(ROOT)}: {job} {options}".strip()] = (job, words)
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that commands name."""
    place = tmp_path_factory.mktemp("files")
    for name in ("client.properties", "faults.toml"):
        (place / name).touch()
    golden = ROOT / "tests/reports/golden/protocol-4.3.1/expected/results.json.txt"
    (place / "results.json").write_bytes(golden.read_bytes())
    (place / "my").mkdir()
    (place / "my/pipeline.toml").write_bytes((ROOT / "fixtures/pipelines/go_copier/pipeline.toml").read_bytes())
    (place / "libs").mkdir()
    for jar in fetch_release(default_release()).jars:
        (place / "libs" / jar.name).symlink_to(jar)
    return place


@pytest.mark.parametrize(("job", "options"), commands().values(), ids=commands())
def test_no_command_of_a_guide_is_refused(
    job: str, options: list[str], files: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its options are those of a run; nothing is started, and no engine is asked for an image."""
    monkeypatch.chdir(files)
    monkeypatch.setattr("runner.options.own_image", lambda *_, **__: None)
    if job == "cost":
        assert BENCHMARK.options(Parser(prog="cost"), options)
        return
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    (suite, *fixed) = shlex.split(tox[f"testenv:{job}"]["commands"].replace("{posargs}", ""), comments=True)[1:]
    arguments = [suite, *fixed, "--list", *options]
    parsed = request.config._parser.parse(arguments, namespace=Namespace())
    assert parsed.file_or_dir == [suite], "an option of ours takes no more words"
    only = KINDS.get(ROOT / suite, Only(parsed.only) if parsed.only else None)
    config: Any = SimpleNamespace(option=parsed, invocation_params=SimpleNamespace(args=arguments))
    with patch.dict(CLIENTS):  # a client of the user is added
        from_options(config, only=only)


def test_the_commands_of_guides_are_found() -> None:
    """Those in blocks, in tables and in sentences."""
    found = commands()
    assert len(found) > 40
    assert {job for job, _ in found.values()} == {
        "conformance",
        "smoke",
        "protocol",
        "watch",
        "pipelines",
        "upgrade",
        "cost",
    }
    assert ("protocol", ["--bootstrap", "127.0.0.1:9", "-k", "idempotence"]) in found.values()
