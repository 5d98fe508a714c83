"""docs/evidence.md names every field of the evidence, and no other: it is all that another harness needs."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from fixtures.recording.recorder import Recorder
from tests.support.paths import ROOT
from verification.__main__ import main
from verification.coverage.coverage import MEASURES
from verification.evidence import history_file, transaction_log_file, verdict_file
from verification.evidence.columns import DELIVERED, LOG
from verification.evidence.peer_file import PeerPartition
from verification.evidence.run_directory import RunDirectory
from verification.evidence.transaction_log_file import LogHeader, LogLeader, LogRange
from verification.scripts import script
from verification.scripts.script import Exchange, Relation, Script, Statement
from verification.vocabulary import experiment, quiescent_state
from verification.vocabulary.experiment import Experiment, ExperimentTopic, Floor, IsolationLevel, Observer, TopicRole
from verification.vocabulary.history import TAGS, Action, InputRange, Intent, Outcome
from verification.vocabulary.identity import LAYOUT
from verification.vocabulary.quiescent_state import (
    CoordinatorState,
    GroupOffset,
    OpenProducer,
    PartitionEnd,
    QuiescentState,
    TopicState,
)
from verification.vocabulary.transaction_log import Entry
from verification.vocabulary.verdict import (
    Circumstances,
    CoverageItem,
    ExitCode,
    Finding,
    RequirementVerdict,
    ScenarioVerdict,
    Verdict,
    Witness,
    WitnessOperation,
    WitnessPlace,
)

DOCUMENT = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "writing" / "pipeline.md").read_text(encoding="utf-8")
#: Importing pyarrow takes a second; a minute is for a machine that is busy with a cluster.
EXAMPLE_S = 60.0


def _sections() -> dict[str, str]:
    """Heading → the text below it, up to the next heading of any rank."""
    parts = re.split(r"^#+ (.+)$", DOCUMENT, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _rows(heading: str) -> dict[str, list[str]]:
    """A section's table: the name in its first column → the other cells."""
    rows = re.findall(r"^\| `([^`]+)` \|(.+)\|$", _sections()[heading], flags=re.MULTILINE)
    assert len({name for name, _ in rows}) == len(rows), f"a field stands twice under {heading!r}"
    return {name: [cell.strip() for cell in re.split(r"(?<!\\)\|", rest)] for name, rest in rows}


def _fields(value: type) -> set[str]:
    return {field.name for field in dataclasses.fields(value)}


#: Heading → the value whose fields stand below it.
VALUES: dict[str, type] = {
    "scenario.json": Experiment,
    "topic": ExperimentTopic,
    "observer": Observer,
    "floor": Floor,
    **TAGS,
    "input range": InputRange,
    "captures.json": QuiescentState,
    "end": PartitionEnd,
    "group offset": GroupOffset,
    "coordinator state": CoordinatorState,
    "open producer": OpenProducer,
    "transaction log header": LogHeader,
    "log range": LogRange,
    "log leader": LogLeader,
    "entry": Entry,
    "peer.jsonl.gz": PeerPartition,
    "topic state": TopicState,
    "verdicts.json": ScenarioVerdict,
    "circumstances": Circumstances,
    "witness": Witness,
    "witness place": WitnessPlace,
    "witness operation": WitnessOperation,
    "script.json": Script,
    "exchange": Exchange,
    "statement": Statement,
}


@pytest.mark.parametrize("heading", VALUES)
def test_every_field_is_documented(heading: str) -> None:
    """A section names exactly the fields that the code writes and reads."""
    assert set(_rows(heading)) == _fields(VALUES[heading])


SCRIPTED: dict[str, type] = {
    "script.json": Script,
    "exchange": Exchange,
    "statement": Statement,
    "transaction log header": LogHeader,
    "log range": LogRange,
    "log leader": LogLeader,
    "entry": Entry,
}


@pytest.mark.parametrize("tag", [*TAGS, *SCRIPTED])
def test_what_may_be_left_out_is_called_optional(tag: str) -> None:
    """A field of an entry is optional in the document exactly when it can be read without the field."""
    fields = dataclasses.fields({**TAGS, **SCRIPTED}[tag])
    missing = dataclasses.MISSING
    optional = {each.name for each in fields if each.default is not missing or each.default_factory is not missing}
    assert {name for name, cells in _rows(tag).items() if "optional" in cells[0]} == optional


def _minimal_scenario() -> dict[str, object]:
    """The format and all fields that the document does not call optional."""
    needed = [name for name, cells in _rows("scenario.json").items() if "optional" not in cells[0]]
    body: dict[str, object] = dict.fromkeys(needed, "x")
    lists = ("topics", "observers", "floors", "requirements", "control_expects", "schedule")
    return {**body, **{name: [] for name in lists}, "seed": 1, "format": experiment.FORMAT}


def test_a_scenario_of_the_required_fields_is_read(tmp_path: Path) -> None:
    """The required fields are enough for `scenario.json`, and none of them can be left out."""
    body = _minimal_scenario()
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    assert experiment.read(path).has_log
    for name in body:
        path.write_text(json.dumps({key: value for key, value in body.items() if key != name}), encoding="utf-8")
        with pytest.raises(experiment.UnfitExperimentError):
            experiment.read(path)


def test_header_and_footer_are_documented() -> None:
    """The first and the last line of a history have exactly the documented fields."""
    header = json.loads(history_file.header_line(run="r", wall_clock_anchor="t", anchor_ns=1))
    footer = json.loads(history_file.footer_line(0))
    assert set(_rows("header")) == header.keys() - {"type"}
    assert set(_rows("footer")) == footer.keys() - {"type"}


def test_what_the_recorder_writes_is_documented(tmp_path: Path) -> None:
    """Lines of acknowledgements and observations have exactly the documented fields."""
    directory = RunDirectory(tmp_path / "run")
    recorder = Recorder(directory, run="r")
    recorder.acknowledge(process=1, operation=2, acks=[[0, 0, 0, 5, "ok"]])
    recorder.observe(observer="o", poll=0, received_ns=1, records=[[0, 0, 5, ""]])
    recorder.seal()
    for heading, path in (
        ("acks/", directory.acks / "1.jsonl.gz"),
        ("observations/", directory.observations / "o.jsonl.gz"),
    ):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            (line,) = [json.loads(each) for each in lines]
        assert set(_rows(heading)) == line.keys()


def test_every_column_is_documented_in_its_order() -> None:
    """The table of the captures is the schema: names, order, types, and which captures have a column."""
    from verification.sources.schema import LOG as TYPED

    rows = _rows("log/, uncommitted/, committed/")
    assert tuple(rows) == LOG
    assert tuple(name for name, cells in rows.items() if cells[1] == "all") == DELIVERED
    assert {cells[1] for cells in rows.values()} == {"all", "log"}
    assert {name: cells[0] for name, cells in rows.items()} == {
        field.name: field.dataType.simpleString() for field in TYPED.fields
    }


def test_the_identity_is_documented() -> None:
    """Every field of a record's identity has its offset and width."""
    rows = _rows("Identity")
    assert [(name, int(cells[0]), int(cells[1])) for name, cells in rows.items()] == list(LAYOUT)


def test_every_path_is_documented() -> None:
    """Each path of a scenario's directory stands in the list of files."""
    directory = RunDirectory(Path("run"))
    names = {name for name in dir(RunDirectory) if isinstance(getattr(RunDirectory, name), property)}
    paths = {getattr(directory, name).name for name in names}
    assert {name.rstrip("/") for name in _rows("Files")} == paths


@pytest.mark.parametrize(
    ("heading", "name", "values"),
    [
        ("operation", "action", Action),
        ("operation", "outcome", Outcome),
        ("operation", "intent", Intent),
        ("topic", "role", TopicRole),
        ("observer", "isolation", IsolationLevel),
        ("verdicts.json", "verdict", [each.name for each in Verdict]),
        ("statement", "relation", Relation),
    ],
)
def test_every_choice_is_documented(heading: str, name: str, values: Iterable[str]) -> None:
    """Where a field has a fixed set of values, the document lists them all and no other."""
    cell = _rows(heading)[name]
    spelled = set(re.findall(r"`([^`]+)`", cell[0])) or set(re.findall(r"`([^`]+)`", cell[1]))
    assert {str(each) for each in values} == spelled


def test_every_measure_is_documented() -> None:
    """A floor can name exactly the measures that the document lists."""
    (measures,) = re.findall(r"^Measures: (.+?) \(", _sections()["floor"], flags=re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`([^`]+)`", measures)) == set(MEASURES)


@pytest.mark.parametrize(("name", "value"), [("findings", Finding), ("coverage", CoverageItem)])
def test_parts_of_a_verdict_are_documented(name: str, value: type) -> None:
    """Findings and coverage are written with exactly the documented fields."""
    assert set(re.findall(r"`([^`]+)`", _rows("verdicts.json")[name][1])) == _fields(value)


def test_requirements_of_a_verdict_are_documented() -> None:
    """The verdict on a requirement is written with exactly the documented fields."""
    assert set(re.findall(r"`([^`]+)`", _rows("verdicts.json")["requirements"][1])) == _fields(RequirementVerdict)


def test_the_version_is_that_of_the_code() -> None:
    """The document speaks about the version that this checkout writes and reads."""
    formats = {
        transaction_log_file.FORMAT,
        history_file.FORMAT,
        experiment.FORMAT,
        quiescent_state.FORMAT,
        verdict_file.FORMAT,
        script.FORMAT,
    }
    (version,) = re.findall(r"^\*\*Version (\d+)\.\*\*", DOCUMENT, flags=re.MULTILINE)
    assert formats == {int(version)}


def test_the_example_is_judged_as_the_guide_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The guide's harness runs as it is printed, and the judge's verdict on its evidence is the one in the guide."""
    program = tmp_path / "orders.py"
    program.write_text(re.findall(r"^```python\n(.+?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)[0], encoding="utf-8")
    command = [sys.executable, str(program), str(tmp_path / "orders")]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=EXAMPLE_S)
    (said,) = re.findall(r"^REFERENCE .+$", GUIDE, flags=re.MULTILINE)
    assert main(["--reference", str(tmp_path / "orders")]) == ExitCode.VIOLATION
    assert capsys.readouterr().out.strip() == said
