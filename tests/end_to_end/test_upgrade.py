"""Real upgrades of one stage: stopped and kept, interrupted, and without load.

One roll is enough for each of these; whole upgrades are run by `tox -e upgrade-matrix`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.whole_commands import GONE_WITHIN_S, Command, python

pytestmark = pytest.mark.cluster

Start = Callable[..., Command]
#: One roll takes a minute with everything around it; a loaded machine takes several times that.
RUN_WITHIN_S = 600.0
ONE_ROLL = ("--from", "4.1.2", "--to", "4.2.1", "--seed", "1", "--stop-after", "roll 1 of 3")
#: Ends every client before the first stage begins. No floor can be met then, so none is waited for.
IDLE = """from runner.scenarios import phases
phases.AFTER_WINDOW_WITHIN_S = 1.0
real = phases.inject_faults
def without_load(run):
    run.workload.stop(timeout_s=30)
    real(run)
phases.inject_faults = without_load"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts upgrades in `run` below the directory of the test; ends the processes that they leave."""
    started: list[Command] = []

    def begin(*options: str, patch: str = "", pair: tuple[str, ...] = ONE_ROLL) -> Command:
        place = tmp_path / f"command-{len(started)}"
        place.mkdir()
        directory = ("--run-dir", str(tmp_path / "run"))
        arguments = python("pytest", "suites/upgrades", *pair, *directory, *options, patch=patch)
        started.append(Command(place, arguments, {}))
        return started[-1]

    yield begin
    for each in started:
        each.close()


def results(directory: Path) -> dict[str, object]:
    """The results of a run."""
    read: dict[str, object] = json.loads((directory / "run" / "results.json").read_text(encoding="utf-8"))
    return read


@pytest.mark.deep
def test_a_cluster_is_kept_after_a_roll_that_no_client_met(start: Start, tmp_path: Path) -> None:
    """Without load a roll proves nothing: INCONCLUSIVE. The mixed cluster stays; the printed command ends its processes."""
    command = start("--keep", patch=IDLE)
    ended = command.end(within_s=RUN_WITHIN_S)
    assert ended.code == 2, ended.output
    found = results(tmp_path)
    assert (found["verdict"], found["decision"]) == ("INCONCLUSIVE", "UNDECIDED")
    assert "PARTIAL" in ended.output
    assert re.search(r"The cluster goes on running: node 1 on .*, node 2 on .*, node 3 on ", ended.output)
    assert {"4.1.2", "4.2.1"} == set(re.findall(r"node \d on (\S+?)(?:,|$)", ended.output, re.MULTILINE))
    assert "bootstrap servers: 127.1.0.1:" in ended.output
    assert len(command.processes()) >= 4, "three nodes and Toxiproxy"
    ending = re.search(r"to end it: kill (\d+)", ended.output)
    assert ending is not None
    os.kill(int(ending[1]), signal.SIGTERM)
    deadline = time.monotonic() + GONE_WITHIN_S
    while command.processes() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert command.processes() == {}
    assert list((tmp_path / "run").glob("clusters/*/*/data/*")), "the user asked to keep the data"


@pytest.mark.deep
def test_a_roll_that_is_interrupted_leaves_nothing_but_evidence(start: Start, tmp_path: Path) -> None:
    """The node is down at that moment. No process and no data are left, and the judge says what the evidence lacks.

    SIGINT and SIGTERM set off the same (`test_interruption.py` tries both), so one of them is enough for a roll.
    """
    command = start()
    command.wait_for(lambda: ", 4.1.2 → 4.2.1" in command.output, "the roll", within_s=RUN_WITHIN_S)
    command.interrupt(signal.SIGTERM)
    ended = command.end()
    assert ended.code == 5, ended.output
    ended.left_nothing()
    found = results(tmp_path)
    assert (found["interrupted"], found["decision"]) == (True, "UNDECIDED")
    assert not list((tmp_path / "run").glob("clusters/**/data"))
    (history,) = (tmp_path / "run").glob("runs/*/history.jsonl")
    lines = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    assert lines[-1]["type"] == "footer"
    phases = {line["name"]: line["note"] for line in lines if line["type"] == "phase"}
    assert "KeyboardInterrupt" in phases["roll 1 of 3"]
    (tmp_path / "judging").mkdir()
    judged = Command(tmp_path / "judging", python("verification", str(tmp_path / "run")), {}).end()
    assert "Traceback" not in judged.output
    assert judged.code == 5, judged.output


@pytest.mark.deep
def test_a_node_that_does_not_come_back_is_a_finding(start: Start, tmp_path: Path) -> None:
    """4.0 refuses a segment size that 3.9 accepts. The run ends, nothing of it is left, and its evidence convicts again."""
    own = tmp_path / "own.properties"
    own.write_text("log.segment.bytes=500000\n", encoding="utf-8")
    ended = start("--from", "3.9.2", "--to", "4.0.2", "--server-properties", str(own)).end(within_s=RUN_WITHIN_S)
    assert ended.code == 1, ended.output
    ended.left_nothing()
    found = results(tmp_path)
    assert (found["verdict"], found["decision"]) == ("FAIL", "NO-GO")
    assert "Invalid value 500000 for configuration log.segment.bytes" in ended.output
    (tmp_path / "judging").mkdir()
    judged = Command(tmp_path / "judging", python("verification", str(tmp_path / "run")), {}).end()
    assert judged.code == 1, judged.output
    (verdict,) = (tmp_path / "run").glob("runs/*/verdicts.json")
    (finding,) = json.loads(verdict.read_text(encoding="utf-8"))["findings"]
    assert finding["anomaly"] == "lost-node"
    (example,) = finding["examples"]
    assert example["circumstances"]["stage"] == "roll 1 of 3"
    assert re.search(r"node \d, 3\.9\.2 → 4\.0\.2, ended by itself with exit status 1", example["detail"])


@pytest.mark.deep
def test_a_node_that_ends_while_another_is_rolled_is_a_finding(start: Start, tmp_path: Path) -> None:
    """Its directory is gone, so it ends itself with an error in its log. It is named with its one release."""
    command = start()
    command.wait_for(lambda: ", 4.1.2 → 4.2.1" in command.output, "the roll", within_s=RUN_WITHIN_S)
    (rolled,) = set(re.findall(r"node (\d), 4\.1\.2 → 4\.2\.1", command.output))
    lost = next(each for each in "321" if each != rolled)
    (data,) = (tmp_path / "run").glob(f"clusters/*/*/data/*{lost}")
    shutil.rmtree(data)
    ended = command.end(within_s=RUN_WITHIN_S)
    assert ended.code == 1, ended.output
    ended.left_nothing()
    (verdict,) = (tmp_path / "run").glob("runs/*/verdicts.json")
    findings = json.loads(verdict.read_text(encoding="utf-8"))["findings"]
    (finding,) = (each for each in findings if each["anomaly"] == "lost-node")
    (example,) = finding["examples"]
    assert f"node {lost}, 4.1.2, ended by itself with exit status 1 after it had joined:\nERROR" in example["detail"]


@pytest.mark.deep
def test_an_interrupted_migration_leaves_nothing_but_evidence(start: Start, tmp_path: Path) -> None:
    """ZooKeeper, controllers and brokers are all at work when Ctrl-C is pressed."""
    command = start("--from", "3.9.2", "--migrate", pair=())
    command.wait_for(
        lambda: "says that it has copied the metadata" in command.output, "the dual write", within_s=RUN_WITHIN_S
    )
    assert len(command.processes()) >= 8, "three brokers, three controllers, ZooKeeper and Toxiproxy"
    command.interrupt(signal.SIGINT)
    ended = command.end()
    assert ended.code == 5, ended.output
    ended.left_nothing()
    found = results(tmp_path)
    assert (found["interrupted"], found["decision"]) == (True, "UNDECIDED")
    assert not list((tmp_path / "run").glob("clusters/**/data"))
