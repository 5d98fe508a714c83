"""Options of a conformance run: wrong ones are refused with an exit code, and some start nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

#: Collecting scenarios takes two seconds; a minute is for a machine that is busy with a cluster.
WITHIN_S = 120.0
#: A scenario whose one call is wrong.
WRONG = """from chaos.faults.brokers import StopBroker
from chaos.schedule import Step
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import THREE_BROKERS, requirement
from verification.vocabulary.experiment import Floor
PLAN = OrderFanOut(partitions=4)
PLAIN = dict(cluster=THREE_BROKERS, workload=PLAN)
@requirement("TXN-25")
def test_wrong_scenario(run):
    {body}
"""


def conformance(*options: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run `pytest suites` as tox does."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "suites", "--run-dir", str(directory / "run"), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--kafka", "banana"], "does not name a release of Kafka"),
        (["--kafka", "2.8.1"], "is older than 3.3.0"),
        (["--client", "carrier-pigeon"], "There is no client 'carrier-pigeon'. Use one of: confluent"),
        (["--client-name", "mine"], "--client-name names the client of --client-driver"),
        (["--client-driver", "./no-such-client"], "There is no program './no-such-client'"),
        (["--client-driver", "sh -c 'exit 3'"], "is no driver. The driver sh ended with exit code 3"),
        (
            ["--client-driver", "sh -c 'echo hello; cat >&2'"],
            "is no driver. The driver sh wrote a line that is not an event: 'hello'",
        ),
        (["--client-driver", "true", "--client-name", "java"], "'java' is the name of a client of ours"),
        (["--client-driver", "true", "--client-name", "My Own"], "'My Own' cannot be the name of a client"),
        (["--client-driver", "true", "--client", "java"], "both name the client"),
        (["--client-driver", "true", "--only", "protocol"], "--client-driver is an option of scenarios"),
        (["--seed", "-1"], "is outside 0"),
        (["--retain", "0"], "at least 1"),
        (["--accept", "KB-99"], "neither a known bug nor a requirement"),
        (["--waivers", "no-such-file.toml"], "cannot be read"),
        (["--runtime", "abacus"], "invalid choice"),
        (["--only", "controls"], "invalid choice"),
        (["--lanes", "0"], "is neither auto nor a number from 1 to"),
        (["--lanes", "many"], "is neither auto nor a number from 1 to"),
        (["--baseline", "no-such-results.json"], "does not exist"),
        (["--bootstrap", "127.0.0.1", "--kafka", "4.3.1"], "127.0.0.1 is not host:port"),
        (["--bootstrap", "127.0.0.1:9", "--kafka", "4.3.1", "--runtime", "local"], "--runtime local has no meaning"),
        (["--bootstrap", "127.0.0.1:9", "--kafka", "4.3.1", "--keep"], "--keep has no meaning"),
        (["--bootstrap", "127.0.0.1:9", "--kafka", "4.3.1", "--prefix", "a b"], "--prefix 'a b' must be"),
        (["--dry-run"], "--dry-run needs --bootstrap"),
        (["--client-properties", os.devnull], "--client-properties needs --bootstrap"),
        (["--client-properties", "x"], "--client-properties x cannot be read"),
        (["--faults", "x"], "--faults needs --bootstrap"),
    ],
)
def test_bad_options_get_one_sentence_and_exit_code_4(options: list[str], sentence: str, tmp_path: Path) -> None:
    """A wrong option is refused before anything starts, and leaves no directory."""
    done = conformance(*options, directory=tmp_path)
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == 4
    assert not (tmp_path / "run").exists()


def test_a_directory_that_holds_files_is_refused(tmp_path: Path) -> None:
    """Recorded evidence is never overwritten."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("evidence", encoding="utf-8")
    done = conformance("--list", directory=tmp_path)
    assert "already holds files" in done.stdout + done.stderr
    assert done.returncode == 4
    assert (tmp_path / "run" / "precious").read_text(encoding="utf-8") == "evidence"


def test_a_selection_of_nothing_is_inconclusive(tmp_path: Path) -> None:
    """Zero cases is not a pass."""
    done = conformance("-k", "no_such_scenario", directory=tmp_path)
    assert done.returncode == 2, done.stdout


def test_a_listing_of_nothing_is_inconclusive(tmp_path: Path) -> None:
    """Pytest's own code for it means an environment error here."""
    done = conformance("--list", "-k", "no_such_scenario", directory=tmp_path)
    assert done.returncode == 2, done.stdout
    assert not (tmp_path / "run").exists()


def test_listing_starts_nothing(tmp_path: Path) -> None:
    """`--list` shows ids, requirements, claims and estimates, and leaves no trace."""
    done = conformance("--list", "--kafka", "4.3.1", "--seed", "5", "--lanes", "1", directory=tmp_path)
    assert "atomicity-leader-crash-while-committing-confluent-5  (TXN-25" in done.stdout
    assert "no transaction is visible in part" in done.stdout
    assert re.search(
        r"\d+ scenarios, \d+ of them controls, and \d+ protocol cases: about \d+ min, in 2 lanes", done.stdout
    )
    assert done.returncode == 0
    assert not (tmp_path / "run").exists()


def test_every_scenario_makes_a_claim_on_known_requirements(tmp_path: Path) -> None:
    """Each scenario of a subject names requirements, and only those that an anomaly of a run can refute."""
    from verification.requirements.catalogue import load

    catalogue = load()
    listed = conformance(
        "--list", "--kafka", "4.3.1", "--profile", "nightly", "--seed", "1", "--only", "scenarios", directory=tmp_path
    ).stdout.splitlines()
    heads = [line for line in listed if "≈" in line]
    assert len(heads) >= 24
    # Each night also pipelines, once: their client only writes the inputs.
    paused = [line.split()[0] for line in heads if line.startswith("pipelines-streams-paused-")]
    assert paused == ["pipelines-streams-paused-confluent-1"]
    for line in heads:
        ids = [each for each in line[line.index("(") + 1 : line.index(")")].split(", ") if each]
        assert "control" in line or ids, line
        assert set(ids) <= set(catalogue), line
        assert all(catalogue[each].forbids for each in ids), f"nothing that a run shows could refute one of: {line}"


def test_every_step_of_a_schedule_must_take_hold() -> None:
    """One confirmed fault of two says nothing about the other; the same holds for a control."""
    from chaos.faults.brokers import CrashBroker
    from chaos.schedule import Step
    from chaos.targets import Controller
    from fixtures.workloads import OrderFanOut
    from runner.scenarios.scenario import THREE_BROKERS, Scenario

    def needed(steps: int) -> dict[str, int]:
        scenario = Scenario(
            name="recovery/s",
            test_name="test_s",
            claim="c",
            requirements=(),
            cluster=THREE_BROKERS,
            workload=OrderFanOut(partitions=1),
            schedule=(Step(fault=CrashBroker(Controller())),) * steps,
        )
        return {floor.name: floor.need for floor in scenario.floors}

    assert needed(2)["faults_confirmed"] == 2
    assert needed(1)["faults_confirmed"] == 1
    assert needed(2)["ok_after"] == needed(1)["ok_after"] == 50


def test_every_control_names_known_anomalies() -> None:
    """A control expects at least one anomaly, by the name that the judge gives it."""
    from suites.controls import test_known_bad as controls
    from verification.vocabulary.anomalies import Anomaly

    marks = {
        name: [mark.args for mark in getattr(each, "pytestmark", []) if mark.name == "convict"]
        for name, each in vars(controls).items()
        if name.startswith("test_")
    }
    assert len(marks) >= 12
    for name, (expected,) in marks.items():
        assert expected, name
        assert {one for each in expected for one in each.split("|")} <= set(Anomaly), name


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("run(cluster=THREE_BROKERS, workload=PLAN, shedule=())", "run() got an unexpected keyword argument 'shedule'"),
        ("run(cluster=THREE_BROKERS)", "run() missing 1 required keyword-only argument: 'workload'"),
        ("run(**PLAIN, floors=(Floor(name='transaction', need=1),))", "coverage floor 'transaction' is unknown"),
        ("run(**PLAIN, schedule=(Step(fault=StopBroker(), hold_s=1),))", "missing 1 required positional argument"),
        ("pass", "calls run 0 times; a scenario calls it once"),
    ],
)
def test_a_wrong_scenario_is_refused_before_anything_starts(body: str, sentence: str, tmp_path: Path) -> None:
    """Its description is read when it is collected: `--list` refuses it too."""
    file = tmp_path / "wrong" / "test_wrong.py"
    file.parent.mkdir()
    file.write_text(WRONG.format(body=body), encoding="utf-8")
    done = conformance(str(file), "--list", "-k", "wrong_scenario", directory=tmp_path)
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == 4
    assert not (tmp_path / "run").exists()


def test_a_file_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    """Nothing is started, and pytest's own words say where the mistake is."""
    file = tmp_path / "wrong" / "test_wrong.py"
    file.parent.mkdir()
    file.write_text("import no_such_module_of_ours\n", encoding="utf-8")
    done = conformance(str(file), directory=tmp_path)
    assert "No module named 'no_such_module_of_ours'" in done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert done.returncode == 5, done.stdout
