"""The catalogue of requirements: complete, well written, consistent, and equal to the document made from it."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import pytest

from tests.support.checkout import tracked
from verification.known_bugs.catalogue import load as load_known_bugs
from verification.requirements import render
from verification.requirements.catalogue import (
    DIRECTORY,
    FAMILIES,
    Decidability,
    Level,
    Protects,
    Requirement,
    load,
    load_families,
)
from verification.vocabulary.anomalies import DEFINITIONS, Anomaly, severity

CATALOGUE = load()
EVERY = pytest.mark.parametrize("requirement", CATALOGUE.values(), ids=lambda each: each.id)

# Ids are permanent and cited from outside, so a family never shrinks. A new requirement raises the number.
ROWS = {
    "IDEMP": 29,
    "TXN": 31,
    "COORD": 19,
    "FENCE": 10,
    "ISO": 26,
    "GRP": 21,
    "TV2": 15,
    "REC": 15,
    "EXP": 12,
    "ADM": 9,
    "ERR": 6,
    "PERF": 7,
    "SHARE": 4,
    "2PC": 5,
    "SEC": 6,
}

# Kafka's error codes as org.apache.kafka.common.protocol.Errors numbers them; those that the catalogue speaks of.
CODES = {
    "UNKNOWN_SERVER_ERROR": -1,
    "NONE": 0,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "LEADER_NOT_AVAILABLE": 5,
    "NOT_LEADER_OR_FOLLOWER": 6,
    "OFFSET_METADATA_TOO_LARGE": 12,
    "NETWORK_EXCEPTION": 13,
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "NOT_COORDINATOR": 16,
    "REQUEST_TIMED_OUT": 7,
    "NOT_ENOUGH_REPLICAS": 19,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 20,
    "ILLEGAL_GENERATION": 22,
    "UNKNOWN_MEMBER_ID": 25,
    "REBALANCE_IN_PROGRESS": 27,
    "TOPIC_AUTHORIZATION_FAILED": 29,
    "GROUP_AUTHORIZATION_FAILED": 30,
    "CLUSTER_AUTHORIZATION_FAILED": 31,
    "UNSUPPORTED_VERSION": 35,
    "INVALID_REQUEST": 42,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": 45,
    "DUPLICATE_SEQUENCE_NUMBER": 46,
    "INVALID_PRODUCER_EPOCH": 47,
    "INVALID_TXN_STATE": 48,
    "INVALID_PRODUCER_ID_MAPPING": 49,
    "INVALID_TRANSACTION_TIMEOUT": 50,
    "CONCURRENT_TRANSACTIONS": 51,
    "TRANSACTION_COORDINATOR_FENCED": 52,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": 53,
    "OPERATION_NOT_ATTEMPTED": 55,
    "KAFKA_STORAGE_ERROR": 56,
    "UNKNOWN_PRODUCER_ID": 59,
    "GROUP_ID_NOT_FOUND": 69,
    "FENCED_LEADER_EPOCH": 74,
    "UNKNOWN_LEADER_EPOCH": 75,
    "OFFSET_NOT_AVAILABLE": 78,
    "FENCED_INSTANCE_ID": 82,
    "INVALID_RECORD": 87,
    "UNSTABLE_OFFSET_COMMIT": 88,
    "PRODUCER_FENCED": 90,
    "TRANSACTIONAL_ID_NOT_FOUND": 105,
    "STALE_MEMBER_EPOCH": 113,
    "TRANSACTION_ABORTABLE": 120,
}
# Names in the same spelling that are no error codes: operations of an access control list.
NOT_CODES = {"CLUSTER_ACTION", "IDEMPOTENT_WRITE", "TWO_PHASE_COMMIT"}

# Scenarios under faults rely on this: together, the ids on the left forbid the anomalies on the right.
COVERED = {
    "IDEMP-28": "lost-write duplicate reordered-write broken-sequence phantom-record",
    "IDEMP-17": "duplicate lost-write",
    "IDEMP-18": "duplicate lost-write",
    "IDEMP-20": "duplicate lost-write",
    "TXN-25": "torn-transaction lost-write hidden-committed aborted-read phantom-record",
    "ISO-01 ISO-02 ISO-05 ISO-09": (
        "aborted-read early-read nonmonotonic-poll poll-skip hidden-committed inconsistent-offset"
    ),
    "TXN-16": "decided-late",
    "FENCE-01 FENCE-02": "zombie-write aborted-read",
    "FENCE-08": "zombie-write aborted-read",
    "FENCE-09": "zombie-write aborted-read",
    "COORD-04": "hung-transaction decided-late stuck-lso torn-transaction",
    "COORD-05": "hung-transaction decided-late stuck-lso torn-transaction",
    "COORD-06": "hung-transaction decided-late stuck-lso torn-transaction",
    "COORD-11": "hung-transaction decided-late stuck-lso torn-transaction",
    "COORD-13": "hung-transaction decided-late stuck-lso torn-transaction",
    "EXP-01": "stuck-lso hung-transaction",
    "GRP-04": "offset-without-output output-without-offset duplicate state-divergence",
    "GRP-19": "offset-without-output output-without-offset duplicate",
    "REC-03": "lost-write duplicate inconsistent-offset",
    "REC-04": "lost-write duplicate inconsistent-offset",
    "REC-07": "lost-write duplicate inconsistent-offset",
    "REC-15": "lost-node",
    "GRP-21": "no-progress",
    "EXP-12": "no-progress",
    "ISO-25": "silent-metric",
    "ADM-04": "hung-transaction",
}


def _sentences(requirement: Requirement) -> list[str]:
    optional = (requirement.limitation, requirement.reason_untested)
    return [requirement.text, *(text for text in optional if text is not None)]


def test_every_row_of_every_family_is_there() -> None:
    """Each family holds its ids from 01 on without a gap, and there are 215 in all."""
    expected = [f"{family}-{number:02d}" for family, rows in ROWS.items() for number in range(1, rows + 1)]
    assert list(CATALOGUE) == expected
    assert tuple(ROWS) == FAMILIES
    assert len(CATALOGUE) == 215


def test_no_file_lies_beside_the_catalogue_unread() -> None:
    """Every TOML file in the directory is a family that is loaded."""
    assert {path.stem.upper() for path in DIRECTORY.glob("*.toml")} == set(FAMILIES)


@EVERY
def test_text_is_one_normative_sentence(requirement: Requirement) -> None:
    """A text is one sentence whose verb says how binding it is: must, should, or neither."""
    for sentence in _sentences(requirement):
        assert re.match(r"[A-Z]|transaction\.|offsets\.", sentence), sentence
        assert sentence.endswith("."), sentence
        assert not re.search(r"[.!?] [A-Z]", sentence), sentence
    assert len(requirement.text.split()) >= 8
    spoken = {
        Level.MUST: bool(re.search(r"\bmust\b", requirement.text)),
        Level.SHOULD: bool(re.search(r"\bshould\b", requirement.text)),
    }
    assert [level for level, used in spoken.items() if used] == (
        [] if requirement.level is Level.INFO else [requirement.level]
    )


@EVERY
def test_observable_names_codes_as_kafka_does(requirement: Requirement) -> None:
    """Every error code in an observable has Kafka's name, and its number where it stands in parentheses."""
    assert requirement.observable.endswith(".")
    for name, number in re.findall(r"\b([A-Z]+(?:_[A-Z]+)*) \((-?[0-9]+)\)", requirement.observable):
        assert CODES.get(name) == int(number), name
    spelled = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", requirement.observable + requirement.text))
    assert spelled <= CODES.keys() | NOT_CODES


@EVERY
def test_references_lead_somewhere(requirement: Requirement) -> None:
    """Requirements and known bugs that a requirement mentions exist."""
    prose = " ".join([requirement.observable, *_sentences(requirement)])
    assert set(re.findall(r"\bKB-[0-9]{2}\b", prose)) <= load_known_bugs().keys()
    families = "|".join(FAMILIES)
    assert set(re.findall(rf"\b(?:{families})-[0-9]{{2}}\b", prose)) <= CATALOGUE.keys() - {requirement.id}


@EVERY
def test_what_forbids_an_anomaly_of_records_protects_records(requirement: Requirement) -> None:
    """Only something that stands for ever, such as a transaction, or a wrong metric leaves the records as they are."""
    standing = {
        *(Anomaly.HUNG_TRANSACTION, Anomaly.STUCK_LSO, Anomaly.LOST_NODE, Anomaly.STRANDED_PRODUCER),
        *(Anomaly.NO_PROGRESS, Anomaly.SILENT_METRIC),
    }
    assert requirement.protects is Protects.RECORDS or set(requirement.forbids) <= standing


@pytest.mark.parametrize("anomaly", Anomaly)
def test_every_anomaly_is_forbidden(anomaly: Anomaly) -> None:
    """No anomaly is without a binding requirement that forbids it."""
    assert any(each.level is Level.MUST and anomaly in each.forbids for each in CATALOGUE.values())


@pytest.mark.parametrize(("ids", "anomalies"), COVERED.items())
def test_scenarios_can_rely_on_what_is_forbidden(ids: str, anomalies: str) -> None:
    """The requirements that the fault scenarios claim forbid what those scenarios look for."""
    forbidden = {anomaly for name in ids.split() for anomaly in CATALOGUE[name].forbids}
    assert {Anomaly(name) for name in anomalies.split()} <= forbidden


def test_no_scenario_relies_on_an_untested_requirement() -> None:
    """The claims of fault scenarios can be decided, so that a report never calls one both untested and tried."""
    undecided = {each.id for each in CATALOGUE.values() if each.decided is Decidability.UNTESTED}
    assert undecided.isdisjoint(name for ids in COVERED for name in ids.split())


def test_an_experiment_decides_every_requirement_that_is_not_untested() -> None:
    """The requirements that no scenario and no protocol case names are those with a reason why they are untested."""
    named = {
        identity
        for path in tracked("suites/*.py")
        for identity in re.findall(rf'"((?:{"|".join(FAMILIES)})-[0-9]{{2}})"', path.read_text(encoding="utf-8"))
    }
    assert named <= CATALOGUE.keys()
    undecided = {each.id for each in CATALOGUE.values() if each.decided is Decidability.UNTESTED}
    assert CATALOGUE.keys() - named == undecided


def test_documented_weaknesses_are_limitations() -> None:
    """The weaknesses that Kafka has by design are limitations, not hidden in observables."""
    by_design = {"IDEMP-05", "IDEMP-24", "TXN-27", "GRP-07", "ISO-22", "GRP-20", "REC-08", "TV2-11", "TV2-08"}
    assert all(CATALOGUE[name].limitation for name in by_design)


def test_severities_rank_all_anomalies() -> None:
    """Severities are the ranks 1 to 24, loss before standstill, and each definition is one sentence."""
    assert sorted(map(severity, Anomaly)) == list(range(1, 25))
    assert severity(Anomaly.LOST_WRITE) < severity(Anomaly.DUPLICATE) < severity(Anomaly.STUCK_LSO)
    for defined in DEFINITIONS.values():
        for sentence in (defined.definition, defined.why_illegal):
            assert re.fullmatch(r"[A-Z][^.]*(\.[a-z0-9][^.]*)*\.", sentence), sentence


def test_an_aborted_read_outranks_an_early_one() -> None:
    """Where two definitions describe one defect the winner has the higher rank."""
    assert severity(Anomaly.ABORTED_READ) < severity(Anomaly.EARLY_READ)
    assert severity(Anomaly.HUNG_TRANSACTION) < severity(Anomaly.STUCK_LSO) < severity(Anomaly.DECIDED_LATE)


def test_requirements_are_values() -> None:
    """A loaded requirement cannot be changed."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        CATALOGUE["TXN-25"].level = Level.INFO  # type: ignore[misc]


def test_the_document_equals_the_data() -> None:
    """docs/semantics.md is rendered from the data; run `python -m verification.requirements.render`."""
    assert render.DOCUMENT.read_text(encoding="utf-8") == render.render(load_families())


def test_links_within_the_document_lead_somewhere() -> None:
    """Every internal link of the rendered document has a heading or an anchor."""
    document = render.render(load_families())
    headings = re.findall(r"^#+ (.+)$", document, flags=re.MULTILINE)
    targets = {re.sub(r"[^a-z0-9 _-]", "", each.lower()).replace(" ", "-") for each in headings}
    targets |= set(re.findall(r'<a id="([^"]+)"', document))
    assert set(re.findall(r"\]\(#([^)]+)\)", document)) <= targets


def test_the_vocabulary_needs_no_spark() -> None:
    """Reports can load the catalogue, the anomalies and the known bugs without Spark."""
    code = (
        "import sys; import verification.requirements.render, verification.known_bugs.catalogue;"
        "sys.exit(sorted({'pyspark', 'pyarrow'} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=DIRECTORY.parents[1], timeout=60)
