"""A claim that a repeated marker may have broken convicts only where no coordinator can have sent the marker again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.clusters.brokers.properties import REQUEST_TIMEOUT_S
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.inspector import Inspector
from runner.protocol.toolkit.script_recorder import ScriptRecorder, UnmetError
from tests.support.planted.log import ABORT, COMMIT, LogWriter
from tests.support.protocol_run_directories import VIOLATED
from tests.support.protocol_testbed import bare_runner, case_of
from tests.support.servers.log_broker import log_broker
from tests.support.wire_definitions import definitions
from verification.scripts.script import Relation, judge
from verification.vocabulary.verdict import Verdict
from wire.client import Client
from wire.transaction_versions import TransactionVersion

#: Data (`a`, `b` of another producer), commits (`C`, `D` of the other one) and an abort (`A`) in a partition's log.
ONCE, TWICE, BETWEEN, OTHERS, DIFFERENT = "aC", "aCC", "aCaC", "abCDaC", "aCA"
OLD_S, YOUNG_S = REQUEST_TIMEOUT_S + 1, REQUEST_TIMEOUT_S - 4


def _log(steps: str) -> bytes:
    writer = LogWriter()
    for step in steps:
        producer = 2 if step in "bD" else 1
        if step in "ab":
            writer.append(producer, 1)
        else:
            writer.end(producer, ABORT if step == "A" else COMMIT)
    return b"".join(writer.parts)


def _claimed(steps: str, *, age_s: float, topic: str = "case-1", api: str = "EndTxn", observed: int = 2) -> Verdict:
    """The verdict on a case that claims one marker and sees another number."""
    with log_broker({(topic, 0): _log(steps)}) as broker, Client(broker.bootstrap, definitions()) as client:
        case = object.__new__(CaseContext)
        case.name, case.client, case.inspect, case.recording = "case", client, Inspector(client), ScriptRecorder()
        begun = case.recording.begin(api, 4, "broker 1", {})
        case.recording.exchanges[0] = replace(begun, sent_ns=begun.sent_ns - round(age_s * 1e9))
        try:
            case.expect("the number of markers", observed, 1)
        except UnmetError:
            assert "sent again, before a claim on the number of markers" in str(case.recording.statements[-1])
        performed: Any = SimpleNamespace(
            recording=case.recording, client=client, transaction_version=TransactionVersion.TV1
        )
        runner = bare_runner(Path())
        return judge(runner._performed(case_of(VIOLATED), performed, "", 0.2)).verdict


@pytest.mark.parametrize("steps", [ONCE, BETWEEN, OTHERS, DIFFERENT])
def test_a_wrong_number_of_markers_convicts(steps: str) -> None:
    """Markers of several transactions, of other producers and of another kind are no repetitions, however old the case."""
    assert _claimed(steps, age_s=OLD_S) is Verdict.FAIL


def test_a_repeated_marker_convicts_a_case_that_no_timeout_can_have_met() -> None:
    """Within request.timeout.ms no coordinator sends a marker again: a broker that writes two is at fault."""
    assert _claimed(TWICE, age_s=YOUNG_S) is Verdict.FAIL


def test_a_repeated_marker_of_an_old_case_decides_nothing() -> None:
    """After a stall longer than request.timeout.ms the coordinator sends the marker again, and the leader appends it."""
    assert _claimed(TWICE, age_s=OLD_S) is Verdict.INCONCLUSIVE
    assert _claimed(TWICE, age_s=OLD_S, observed=1) is Verdict.PASS, "a claim that holds is not touched"


def test_only_markers_of_the_case_and_of_coordinators_excuse_it() -> None:
    """Another case's topic says nothing; a case that sends markers itself knows how many there must be."""
    assert _claimed(TWICE, age_s=OLD_S, topic="other-1") is Verdict.FAIL
    assert _claimed(TWICE, age_s=OLD_S, api="WriteTxnMarkers") is Verdict.FAIL


def test_a_log_that_cannot_be_read_excuses_nothing() -> None:
    """A broker that is gone takes no claim back."""
    with log_broker({("case-1", 0): _log(TWICE)}) as broker:
        client = Client(broker.bootstrap, definitions(), timeout_s=0.2)
    case = object.__new__(CaseContext)
    case.name, case.client, case.inspect, case.recording = "case", client, Inspector(client), ScriptRecorder()
    begun = case.recording.begin("EndTxn", 4, "broker 1", {})
    case.recording.exchanges[0] = replace(begun, sent_ns=begun.sent_ns - round(OLD_S * 1e9))
    case.expect("the number of markers", 2, 1)
    (statement,) = case.recording.statements
    assert (statement.required, statement.holds, statement.relation) == (False, False, Relation.EQUALS)
