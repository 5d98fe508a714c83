"""A wrong read is the reader's where it alone shows it, and the release's where the committed capture shows it too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.planted.busy import A0, busy
from tests.support.planted.files import write
from tests.support.planted.histories import Plant
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.judge.primary_findings import attribute
from verification.judge.readers import reader_of
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Intent, ProcessRecord

GO = "kafka-go 0.4.51"


def read(directory: Path, plant: Plant) -> RunEvidence:
    """The evidence of a plant as files."""
    return read_run(write(plant, directory))


def aborted(*, library: str | None = GO, client: str = "own", captured: bool = False) -> Plant:
    """A live reader of that library received an aborted record under read_committed; the capture perhaps, too."""
    planted = busy("readers")
    _, rows = planted.transaction(planted.client("tx-9"), (A0,), intent=Intent.ABORT, decision="abort")
    for process in (90, 91):
        planted.entries.append(
            ProcessRecord(
                process=process,
                role="observer",
                client=client,
                site="observer",
                started_ns=0,
                ended_ns=1,
                end="stopped",
                library=library,
            )
        )
    plant = planted.finish()
    uncommitted = next(
        each
        for each in plant.rows["observations"]
        if not each["committed_reader"]
        and each["offset"] == rows[0]["offset"]
        and (each["topic_index"], each["partition"]) == A0
    )
    careful = next(each for each in plant.rows["observations"] if each["committed_reader"])
    own = {name: careful[name] for name in ("observer_index", "committed_reader")}
    plant.rows["observations"].append({**uncommitted, **own, "poll": 99, "position": 0})
    if captured:
        given = plant.at("uncommitted", *A0, rows[0]["offset"])
        plant.rows["committed"].append(given)
    return plant


@pytest.mark.parametrize(
    ("plant", "whose"),
    [
        (aborted(), GO),
        (aborted(captured=True), ""),
        (aborted(library=None, client="confluent"), ""),
        (aborted(library="own-client 1 (librdkafka 2.16.0)"), ""),
        (aborted(library=None, client="own"), "own"),
    ],
    ids=["the reader alone", "the capture too", "the library of the capture", "built on that library", "no version"],
)
def test_a_wrong_read_is_the_readers_where_no_independent_client_has_it(
    plant: Plant, whose: str, tmp_path: Path
) -> None:
    """An aborted record that a live reader received: the committed capture decides whose fault that is."""
    evidence = read(tmp_path / "run", plant)
    violations = attribute(judge_rows(plant.rows)).primary[Anomaly.ABORTED_READ]
    assert [each.observer for each in violations] == ["careful"]
    assert reader_of(evidence, violations) == whose


def test_a_violation_that_the_log_proves_is_never_a_readers(tmp_path: Path) -> None:
    """A lost record next to the wrong read stays the release's."""
    plant = aborted()
    lost = next(each for each in plant.rows["log"] if each["process"] is not None and each["transactional"])
    plant.drop("log", lost["topic_index"], lost["partition"], lost["offset"])
    evidence = read(tmp_path / "run", plant)
    primary = attribute(judge_rows(plant.rows)).primary
    assert Anomaly.ABORTED_READ in primary
    assert reader_of(evidence, primary[Anomaly.ABORTED_READ]) == GO
    others = [violations for anomaly, violations in primary.items() if anomaly is not Anomaly.ABORTED_READ]
    assert others
    assert not any(reader_of(evidence, each) for each in others)
