"""Assembles the verdict on one run: its findings with examples and witnesses, its coverage, and the steps that failed.

Much of this reads the evidence again, and remote evidence can vanish in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from verification.checks.examples import examples as chosen
from verification.coverage.coverage import coverage
from verification.evidence import transaction_log_rows
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.stalls import late_completions, lost_nodes, unserved_clients
from verification.judge.circumstances import shown
from verification.judge.decision import VerdictInputs, decide
from verification.judge.readers import reader_of
from verification.judge.witness import witness
from verification.known_bugs.signatures.recognise import recognise
from verification.spark.errors import in_a_line
from verification.vocabulary.experiment import TopicRole
from verification.vocabulary.verdict import Finding, ScenarioVerdict
from verification.vocabulary.violations import Attributed

if TYPE_CHECKING:
    from verification.vocabulary.anomalies import Anomaly

CAPTURES = ("log", "uncommitted", "committed")
#: The places around the examples of a finding, by (run, anomaly).
Around = Mapping[tuple[str, str], list[dict[str, Any]]]
_Answer = TypeVar("_Answer")


def tried(what: str, ask: Callable[[], _Answer]) -> tuple[_Answer | None, tuple[str, ...]]:
    """The result of `ask` and no error, or no result and the error as text: a failure must not hide findings."""
    try:
        return ask(), ()
    except Exception as error:  # noqa: BLE001 - as above
        return None, (f"{what}: {in_a_line(error)}",)


def _known(evidence: RunEvidence, attributed: Attributed) -> Mapping[Anomaly, str | None]:
    """The known bug of each finding that has one. For remote evidence this can take a Spark job."""
    return {anomaly: recognise(evidence, found) for anomaly, found in attributed.primary.items()}


def _findings(
    evidence: RunEvidence, attributed: Attributed, around: Around, known: Mapping[Anomaly, str | None]
) -> tuple[Finding, ...]:
    examples = {
        anomaly: tuple(late_completions.with_operation(evidence, each) for each in chosen(violations))
        for anomaly, violations in attributed.primary.items()
    }
    return tuple(
        Finding(
            anomaly=str(anomaly),
            count=len(violations),
            examples=tuple(shown(evidence, each) for each in examples[anomaly]),
            consequences=len(attributed.consequences.get(anomaly, ())),
            explains=attributed.explained(anomaly),
            known_bug=known.get(anomaly),
            witness=witness(evidence, examples[anomaly][0], around.get((evidence.run, str(anomaly)), ())),
            reader="" if known.get(anomaly) else reader_of(evidence, violations),
        )
        for anomaly, violations in attributed.primary.items()
    )


def _counts(evidence: RunEvidence) -> tuple[tuple[str, int], ...]:
    """The amounts of evidence, from the footers of the files; those of a pipeline also by the role of the topic."""
    from verification.vocabulary.history import Operation

    counted = [("operations", len(evidence.history.of(Operation)))]
    counted += [
        (name, evidence.capture_reader.count(name)) for name in CAPTURES if evidence.capture_reader.present(name)
    ]
    if evidence.experiment.pipeline is not None and evidence.capture_reader.present("committed"):
        counted += _committed_by_role(evidence)
    if evidence.transaction_log is not None:
        counted.append(("transaction log", len(evidence.transaction_log.entries)))
    return tuple(counted)


def _committed_by_role(evidence: RunEvidence) -> list[tuple[str, int]]:
    """The committed inputs and outputs of a pipeline; a row of its database is an output."""
    rows, topics = evidence.capture_reader.topic_rows("committed"), enumerate(evidence.experiment.topics)
    inputs = sum(rows.get(index, 0) for index, topic in topics if topic.role is TopicRole.INPUT)
    return [("committed inputs", inputs), ("committed outputs", sum(rows.values()) - inputs)]


def conclude(
    evidence: RunEvidence, attributed: Attributed, around: Around, crashed: tuple[str, ...]
) -> ScenarioVerdict:
    """The verdict on a run, given its findings and the errors so far."""
    covered, uncounted = tried("coverage could not be counted", lambda: coverage(evidence))
    known, unknown = tried("known bugs could not be looked for", lambda: _known(evidence, attributed))
    return decide(
        VerdictInputs(
            experiment=evidence.experiment,
            findings=_findings(evidence, attributed, around, known or {}),
            coverage=covered or (),
            crashed=(
                *crashed,
                *uncounted,
                *unknown,
                *lost_nodes.excused(evidence),
                *unserved_clients.excused(evidence),
            ),
            counts=_counts(evidence),
            log_unjudged=transaction_log_rows.unjudged(evidence),
            allowed=attributed.allowed,
        )
    )
