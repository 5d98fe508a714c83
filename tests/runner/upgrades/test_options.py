"""Options of an upgrade: impossible requests get one sentence and exit code 4, and `--plan` starts nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.clusters.locks.releases import Release, default_release
from fixtures.errors import OnceproofError
from runner.settings.own_settings import own_settings
from runner.upgrades.options import refuse_upgrade_options, upgrade_options, upgrade_path
from tests.support.paths import ROOT

#: Collecting takes two seconds; a minute is for a machine that is busy with a cluster.
WITHIN_S = 120.0


def options(**named: Any) -> Any:
    """The options of a command line."""
    own = (
        "upgrade_from",
        "upgrade_to",
        "migrates",
        "outline",
        "stop_after",
        "controllers",
        "server_properties",
        "topic_properties",
    )
    empty = dict.fromkeys((*own, "kafka"))
    return SimpleNamespace(**{**empty, "runtime": "auto", **named})


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ((None, "4.3.1"), "an upgrade needs --from"),
        (("banana", "4.3.1"), "'banana' does not name a release of Kafka"),
        (("4.1.2", "4.3"), "'4.3' does not name a release of Kafka"),
        (("4.3.1", "4.2.1"), r"4.2.1 is older than 4.3.1\. .* Swap --from and --to"),
        (("2.8.2", "4.0.2"), "cannot be upgraded from 2.8.2 to 4.0.2: Kafka 4 has no ZooKeeper mode"),
        (("3.2.3", "4.4.0"), "cannot be upgraded from 3.2.3 to 4.4.0: Kafka 4 has no ZooKeeper mode"),
        (("2.8.2", "3.9.2"), "2.8.2 has no KRaft for production"),
    ],
)
def test_an_impossible_pair_gets_a_sentence(pair: tuple[str | None, str], sentence: str) -> None:
    """The rules are data; the first that fits says why."""
    with pytest.raises((OnceproofError, pytest.UsageError), match=sentence):
        upgrade_path(options(upgrade_from=pair[0], upgrade_to=pair[1]))


@pytest.mark.parametrize("pair", [("3.3.0", "4.0.0"), ("3.9.2", "4.4.0"), ("4.2.1", "4.2.1"), ("3.3.2", "3.9.2")])
def test_a_pair_that_kafka_supports_is_accepted(pair: tuple[str, str]) -> None:
    """4.0 and later from KRaft of 3.3 on, over any number of lines; equal releases are the control."""
    path = upgrade_path(options(upgrade_from=pair[0], upgrade_to=pair[1]))
    assert (str(path.source), str(path.target)) == pair


def test_the_target_is_the_newest_supported_release_by_default() -> None:
    """An upgrade to an older one is asked for by name."""
    assert upgrade_path(options(upgrade_from="3.9.2")).target == default_release()
    assert upgrade_path(options(upgrade_from="3.9.2", upgrade_to="4.0.2")).target == Release.parse("4.0.2")


@pytest.mark.parametrize("pair", [("3.9.2", "4.3.1"), ("3.4.1", None), ("4.1.2", None), ("3.6.0", "3.9.2")])
def test_a_migration_stays_at_a_release_that_can_migrate(pair: tuple[str, str | None]) -> None:
    """From 3.5 to 3.9; its target is its source."""
    assert upgrade_path(options(upgrade_from="3.9.2", migrates=True)).target == Release.parse("3.9.2")
    with pytest.raises(OnceproofError, match=r"--migrate moves a cluster from ZooKeeper to KRaft within one release"):
        upgrade_path(options(upgrade_from=pair[0], upgrade_to=pair[1], migrates=True))


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"kafka": "4.3.1"}, "--from and --to instead of --kafka"),
        ({"runtime": "docker", "stop_after": "back", "keep": True}, "--stop-after with --keep needs --runtime local"),
    ],
)
def test_options_that_an_upgrade_cannot_have_are_refused(named: dict[str, str], sentence: str) -> None:
    """Before anything starts."""
    with pytest.raises(pytest.UsageError, match=sentence):
        upgrade_path(options(upgrade_from="4.1.2", **named))


@pytest.mark.parametrize("name", ["upgrade_from", "upgrade_to", "outline", "stop_after", "controllers"])
def test_an_ordinary_run_refuses_the_options_of_an_upgrade(name: str) -> None:
    """They would change nothing there, and the user would believe that they did."""
    refuse_upgrade_options(options())
    with pytest.raises(pytest.UsageError, match="is an option of `tox -e upgrade`"):
        refuse_upgrade_options(options(**{name: "x"}))


def test_a_command_repeats_the_users_own_part(tmp_path: Path) -> None:
    """Stage and files; the settings are read at once, so that a wrong file is refused before anything starts."""
    (tmp_path / "server.properties").write_text("num.io.threads=8\n", encoding="utf-8")
    (tmp_path / "topic.properties").write_text("compression.type=zstd\n", encoding="utf-8")
    server, topic = str(tmp_path / "server.properties"), str(tmp_path / "topic.properties")
    asked = options(stop_after="back", server_properties=server, topic_properties=topic)
    found = own_settings(asked)
    assert upgrade_options(asked).written == ' --stop-after "back"'
    assert found.written == f" --server-properties {server} --topic-properties {topic}"
    assert found.configuration == {"brokers: num.io.threads": "8", "topics: compression.type": "zstd"}


def upgrade(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run `pytest suites/upgrades` as tox does."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "suites/upgrades", "--run-dir", str(directory / "run"), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def test_the_plan_shows_stages_proofs_floors_and_an_estimate(tmp_path: Path) -> None:
    """It starts nothing, and leaves no directory."""
    done = upgrade("--from", "3.9.2", "--to", "4.3.1", "--seed", "1", "--plan", directory=tmp_path)
    assert done.returncode == 0, done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert [line for line in lines if line.startswith("roll 2 of 3  ≈")]
    assert [line for line in lines if "roll of the next node to 4.3.1 by SIGKILL" in line]
    assert [line for line in lines if line.startswith("proof: the node names the release")]
    assert [line for line in lines if line.startswith("floors: ok_before ≥ 50, ")]
    assert [line for line in lines if line.startswith("estimate: ")]
    assert not (tmp_path / "run").exists()


def test_words_of_k_select_stages(tmp_path: Path) -> None:
    """The rolls before the kept stage stay; what comes after it does not."""
    done = upgrade("--from", "3.9.2", "--to", "4.3.1", "--plan", "-k", "back", directory=tmp_path)
    stages = [
        line.split("  ≈")[0].strip() for line in done.stdout.splitlines() if line.startswith("    ") and "≈" in line
    ]
    assert stages == ["roll 1 of 3", "roll 2 of 3", "roll 3 of 3", "back"]


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (("--stop-after", "lunch"), 'The upgrade has no stage "lunch" to stop after; it has "roll 1 of 3", ', 4),
        (("-k", "back or"), "Wrong expression passed to '-k': back or", 4),
        (("-k", "no_such_stage", "--plan"), "nothing: about", 2),
        (("--stop-after", "back", "--keep", "--profile", "nightly"), "--keep leaves one cluster running, but ", 4),
    ],
)
def test_a_request_about_stages_that_cannot_be_met(
    arguments: tuple[str, ...], sentence: str, code: int, tmp_path: Path
) -> None:
    """One sentence, and no directory."""
    done = upgrade("--from", "4.1.2", "--to", "4.3.1", *arguments, directory=tmp_path)
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == code
    assert not (tmp_path / "run").exists()
