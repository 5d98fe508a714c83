"""A pipeline of the user, by its manifest: those that work, that end or do nothing, and that write garbage."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures.pipelines.manifest import GO_COPIER
from tests.support.whole_commands import Command, Ended, python

pytestmark = pytest.mark.cluster

Run = Callable[..., Ended]
#: A scenario takes a minute; a loaded machine takes several times that.
RUN_WITHIN_S = 600.0
COPIER = str(GO_COPIER.parent / "python_copier" / "copier.py")
#: Copies the inputs once the consumer has joined, and says so in words of its own instead of the input's value.
FORGETFUL = """
import os, signal
from confluent_kafka import Consumer, Producer
running = [True]
signal.signal(signal.SIGTERM, lambda *_: running.clear())
brokers = {"bootstrap.servers": os.environ["ONCEPROOF_BOOTSTRAP"]}
group = {"group.id": os.environ["ONCEPROOF_GROUP"], "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
consumer = Consumer(brokers | group)
consumer.subscribe([os.environ["ONCEPROOF_INPUT"]])
producer = Producer(brokers)
while running:
    for message in consumer.consume(100, 0.5):
        producer.produce(os.environ["ONCEPROOF_OUTPUT"], b"an order came", partition=0)
    producer.flush()
consumer.close()
"""
#: The input's value with a byte of its identity changed, whose checksum is then wrong.
DAMAGED = FORGETFUL.replace('b"an order came"', 'message.value()[:20] + b"?" + message.value()[21:]')


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs the pipeline of a command line; whatever it started ends with the test."""
    commands: list[Command] = []

    def perform(*command: str, manifest: Path = tmp_path / "pipeline.toml", reference: str = "value") -> Ended:
        if command:
            text = f'name = "own"\ncommand = {json.dumps(command)}\nreference = {json.dumps(reference)}\n'
            manifest.write_text(text, encoding="utf-8")
        options = ("--manifest", str(manifest), "--kafka", "4.3.1", "--runtime", "local", "--seed", "1", "--lanes", "1")
        narrowed = ("-k", "own_pipeline_killed", "--run-dir", str(tmp_path / "run"))
        (tmp_path / "place").mkdir()
        commands.append(Command(tmp_path / "place", python("pytest", "suites/pipelines", *options, *narrowed), {}))
        return commands[-1].end(within_s=RUN_WITHIN_S)

    yield perform
    for each in commands:
        each.close()


def test_a_pipeline_that_ends_is_no_pass_and_is_named_with_its_last_words(run: Run) -> None:
    """It is started again some times, and then the run ends early."""
    ended = run("sh", "-c", "echo there is no such topic >&2; exit 3")
    assert ended.code == 5, ended.output
    assert "the pipeline ended with status 3; its last lines: there is no such topic" in ended.output
    assert "killed (SIGKILL)" not in ended.output, "no fault strikes a pipeline that does not work"
    ended.left_nothing()


@pytest.mark.deep
def test_a_pipeline_that_never_becomes_ready_is_no_pass_and_is_named_with_its_last_words(run: Run) -> None:
    """The run ends when the pipeline has committed nothing for two minutes; no fault strikes."""
    ended = run("sh", "-c", "echo waiting for a license >&2; sleep 999")
    assert ended.code == 5, ended.output
    assert re.search(
        r"offsets of outputs from the pipeline.*0 offsets; its log ends: waiting for a license", ended.output
    )
    assert "killed (SIGKILL)" not in ended.output, "no fault strikes a pipeline that does not work"
    ended.left_nothing()


@pytest.mark.deep
def test_a_pipeline_that_ends_again_and_again_after_a_kill_makes_no_progress(run: Run, tmp_path: Path) -> None:
    """It had worked, brokers are whole and another client works: everything is captured, and the pipeline is to blame."""
    once = tmp_path / "once"
    twice = f"mkdir {once} 2>/dev/null || mkdir {once}/again 2>/dev/null || {{ echo no license >&2; exit 3; }}"
    ended = run("sh", "-c", f'{twice}; exec "$@"', "sh", "{python}", COPIER, "transaction")
    assert ended.code == 1, ended.output
    assert "gets no further successor: the pipeline ended with status 3; its last lines: no license" in ended.output
    (verdict,) = (tmp_path / "run").glob("runs/*/verdicts.json")
    judged = json.loads(verdict.read_text(encoding="utf-8"))
    assert "no-progress" in {each["anomaly"] for each in judged["findings"]}
    failed = {each["id"] for each in judged["requirements"] if each["verdict"] == "FAIL"}
    assert "GRP-21" in failed
    assert "EXP-12" not in failed, "that is for clients"
    ended.left_nothing()


@pytest.mark.deep
@pytest.mark.parametrize("program", [FORGETFUL, DAMAGED], ids=["in other words", "damaged"])
def test_an_output_that_names_no_input_is_a_phantom(program: str, run: Run, tmp_path: Path) -> None:
    """The judge knows no record that the pipeline could have had it from."""
    ended = run("{python}", "-c", program)
    assert ended.code == 1, ended.output
    (verdict,) = (tmp_path / "run").glob("runs/*/verdicts.json")
    found = {each["anomaly"] for each in json.loads(verdict.read_text(encoding="utf-8"))["findings"]}
    assert found >= {"phantom-record", "offset-without-output"}
    ended.left_nothing()


@pytest.mark.deep
def test_a_pipeline_in_go_is_killed_twice_and_passes(run: Run, tmp_path: Path) -> None:
    """A third language, and a client that no other part of this suite uses; built on first use."""
    passed(run(manifest=GO_COPIER / "pipeline.toml"), tmp_path)


@pytest.mark.deep
def test_outputs_with_values_of_their_own_name_their_inputs(run: Run, tmp_path: Path) -> None:
    """In JSON, with characters that no identity has; live observers received the same values."""
    reference = "json:order.id"
    passed(run("{python}", COPIER, "transaction", "--reference", reference, reference=reference), tmp_path)


def passed(ended: Ended, tmp_path: Path) -> None:
    """The instances were killed in transactions, and nothing was found."""
    assert ended.code == 0, ended.output
    (verdict,) = (tmp_path / "run").glob("runs/*/verdicts.json")
    coverage = {each["name"]: each["have"] for each in json.loads(verdict.read_text(encoding="utf-8"))["coverage"]}
    assert coverage["faults_confirmed"] == 2
    assert coverage["interrupted_copies"] >= 1, "the kills met open transactions"
    ended.left_nothing()
