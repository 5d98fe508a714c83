"""Directories of protocol runs from planted scripts, so that their reports can be tested without a cluster.

The scripts are those of a real protocol run on Kafka 4.3.1, reduced to the deciding part. `make_protocol_run` writes a
directory with the real writers of run.json and script.json: two calls with the same arguments write the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.report import Report
from reports.model.run_record import Ended, Planned, RunRecord, RunState
from verification.scripts.script import Exchange, Relation, Script, Statement

STARTED = "20261121T093000Z"
SENT_NS = 28_000_000_000_000
STEP_NS = 4_000_000
#: The header of a batch: base offset, length, leader epoch, magic, checksum, attributes, last offset delta, first and
#: last timestamp, producer id, epoch, base sequence, count.
HEADER = struct.Struct(">qiibIhiqqqhii")


def batch(sequence: int, *, transactional: bool = False) -> dict[str, Any]:
    """A batch of one record of producer 26 as a script shows it: 64 bytes of 77."""
    attributes = 0x10 if transactional else 0
    head = HEADER.pack(
        0, 65, -1, 2, 0xA7863593, attributes, 0, 1_795_285_000_000, 1_795_285_000_000, 26, 0, sequence, 1
    )
    return {"bytes": 77, "hex": (head + bytes(3)).hex()}


def exchange(number: int, api: str, version: int, request: Any, response: Any, **more: Any) -> Exchange:
    """One exchange; each is sent 4 ms after the one before and answered within 1.5 ms."""
    sent = SENT_NS + number * STEP_NS
    body: dict[str, Any] = {"to": "broker 1", "sent_ns": sent, "answered_ns": sent + 1_500_000, **more}
    return Exchange(number=number, api=api, version=version, request=request, response=response, **body)


def initialised(number: int, name: str | None = None) -> Exchange:
    """InitProducerId that hands out producer 26."""
    request = {"TransactionalId": name, "TransactionTimeoutMs": 60000}
    response = {"ThrottleTimeMs": 0, "ErrorCode": 0, "ProducerId": 26, "ProducerEpoch": 0}
    return exchange(number, "InitProducerId", 5, request, response)


def produced(number: int, sequence: int, code: int, topic: str = "be36195a-1") -> Exchange:
    """Produce with one batch, and its answer's code."""
    records = [{"Index": 0, "Records": batch(sequence)}]
    request = {"TransactionalId": None, "Acks": -1, "TimeoutMs": 10000}
    answers = [{"Index": 0, "ErrorCode": code, "BaseOffset": 0, "LogStartOffset": 0, "ErrorMessage": None}]
    return exchange(
        number,
        "Produce",
        12,
        {**request, "TopicData": [{"Name": topic, "PartitionData": records}]},
        {"Responses": [{"Name": topic, "PartitionResponses": answers}], "ThrottleTimeMs": 0},
    )


def said(after: int, what: str, expected: Any, observed: Any, **more: Any) -> Statement:
    """One statement, a claim unless `required` says otherwise."""
    body: dict[str, Any] = {"relation": Relation.EQUALS, **more}
    return Statement(after=after, what=what, expected=expected, observed=observed, **body)


def _script(case: str, claim: str, *requirements: str, **more: Any) -> Script:
    body: dict[str, Any] = {
        "generation": "TV2",
        "release": "4.3.1",
        "cluster": "1 broker",
        "features": {"metadata.version": 29, "transaction.version": 2},
        "seconds": 0.4,
        "replay": f'tox -e protocol -- --kafka 4.3.1 -k "{case}"',
        **more,
    }
    return Script(case=case, claim=claim, requirements=requirements, **body)


NONE, GAP = "NONE (0)", "OUT_OF_ORDER_SEQUENCE_NUMBER (45)"
PASSED = _script(
    "idempotence-a-gap-is-refused",
    "A batch beyond the next sequence is refused, and the right one is still taken.",
    "IDEMP-07",
    exchanges=(initialised(1), produced(2, 0, 0), produced(3, 2, 45), produced(4, 1, 0)),
    statements=(
        said(2, "a batch", NONE, NONE, required=True),
        said(3, "one beyond", GAP, GAP),
        said(4, "the next one", NONE, NONE),
        said(4, "the log", ["a", "b"], ["a", "b"]),
    ),
)
#: KB-05 names this case, and 4.3.1 is in its range.
VIOLATED = _script(
    "idempotence-a-partition-begins-at-sequence-0",
    "On a partition that never held a record a first batch above sequence 0 is refused, and the one at 0 is taken.",
    "IDEMP-10",
    exchanges=(initialised(1), produced(2, 17, 0), produced(3, 0, 45)),
    statements=(
        said(1, "the producer is initialised", NONE, NONE, required=True),
        said(2, "sequence 17, first of all", GAP, NONE),
        said(3, "sequence 0", NONE, GAP),
    ),
)
#: No known bug names this one, but the catalogue documents a limitation of its requirement.
UNNAMED = _script(
    "transaction-version-a-replayed-end-is-refused-tv2",
    "An EndTxn that arrives twice decides nothing the second time.",
    "TXN-27",
    exchanges=(
        initialised(1, "be36195a-owner"),
        exchange(2, "EndTxn", 5, {"TransactionalId": "be36195a-owner", "Committed": True}, {"ErrorCode": 0}),
    ),
    statements=(said(2, "the replay", ["INVALID_TXN_STATE (48)"], NONE, relation=Relation.ONE_OF),),
)
UNDECIDED = _script(
    "fencing-a-forgotten-zombie-is-refused-tv1",
    "When the partition has forgotten an old epoch, its batch is still refused and not appended.",
    "FENCE-05",
    generation="TV1",
    exchanges=(initialised(1),),
    statements=(said(1, "the producers that the leader remembers", [], [0], required=True),),
)
BROKEN = _script(
    "coordinator-a-marker-that-is-sent-twice-changes-nothing",
    "A marker that arrives twice writes one control record.",
    "COORD-02",
    exchanges=(exchange(1, "WriteTxnMarkers", 1, {"Markers": []}, None, error="broker 1 closed the connection"),),
    broke="ConnectionLostError: broker 1 closed the connection",
)
INAPPLICABLE = _script(
    "two-phase-commit-a-prepared-transaction-waits",
    "A prepared transaction waits for its owner.",
    "2PC-01",
    inapplicable="nothing of it applies to 4.3.1",
    exchanges=(),
    generation="",
    features={},
    seconds=0.0,
)
EVERY_SCRIPT = (PASSED, VIOLATED, UNNAMED, UNDECIDED, BROKEN, INAPPLICABLE)


def protocol_run_record(scripts: Sequence[Script], **changes: Any) -> RunRecord:
    """run.json of a protocol run of these cases; `changes` are fields of RunRecord."""
    full = RunRecord(
        started=STARTED,
        seed=None,
        profile="protocol",
        command="tox -e protocol -- --kafka 4.3.1 --runtime local",
        release="4.3.1",
        runtime="local",
        clients=(),
        state=RunState.FINISHED,
        suite="onceproof 0.1.0",
        planned=tuple(
            Planned(
                key=each.case,
                scenario=each.case,
                claim=each.claim,
                requirements=each.requirements,
                case=True,
                replay=each.replay,
            )
            for each in scripts
        ),
        ended=tuple(Ended(key=each.case, seconds=each.seconds) for each in scripts),
        machine={"processors": "2", "memory": "7.8 GB", "system": "Linux x86_64"},
        versions={"kafka": "4.3.1"},
        duration_s=68.2,
    )
    return replace(full, **changes)


def make_case(directory: Path, script: Script) -> Path:
    """Write one case's directory and return it."""
    directory.mkdir(parents=True)
    script.write(directory / "script.json")
    return directory


def make_protocol_run(directory: Path, scripts: Sequence[Script], **changes: Any) -> Path:
    """Write the directory of a protocol run and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    protocol_run_record(scripts, **changes).write(directory / "run.json")
    for each in scripts:
        make_case(directory / "runs" / each.case, each)
    return directory


def protocol_report(
    tmp_path: Path, scripts: tuple[Script, ...] = EVERY_SCRIPT, **changes: object
) -> tuple[Report, Path]:
    """A planted protocol run and the directory of its output files."""
    run = make_protocol_run(tmp_path / "run", scripts, **changes)
    report = load_run(run)
    write_all(report, run)
    return report, run
