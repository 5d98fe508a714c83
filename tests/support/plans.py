"""Plans of planted scenarios: a scenario in a few words (`Plan`), its findings, and one plan for every verdict."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from verification.vocabulary.verdict import (
    Finding,
    Verdict,
    Violation,
    Witness,
    WitnessOperation,
    WitnessPlace,
)

#: The start of a run, in the form of run.json.
STARTED = "20261121T090000Z"
#: The same moment in a history.
WALL_CLOCK = "2026-11-21T09:00:00.000000+00:00"
SECOND = 1_000_000_000
ANCHOR = 5_000 * SECOND
FAULT_BEGAN_S, FAULT_HELD_S, FAULT_HEALED_S, END_S = 6, 7, 14, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One scenario to plant; `verdict` None leaves verdicts.json out, `present` False the whole directory."""

    key: str
    verdict: Verdict | None = Verdict.PASS
    reason: str = "every floor was reached and no violation was found"
    claim: str = "Once the cluster has recovered, no transaction is visible in part."
    requirements: tuple[str, ...] = ("TXN-25", "ISO-01")
    findings: tuple[Finding, ...] = ()
    expects: tuple[str, ...] = ()
    convicted: bool | None = None
    topic: str = "billing-events"
    fault: str = "Crash the leader of billing-events-0 (SIGKILL), restart it after 8 s"
    coverage_have: int = 180
    present: bool = True
    ended: bool = True
    error: str = ""
    crashed: tuple[str, ...] = ()
    seed: int = 7
    release: str = "4.3.1"
    started: str = STARTED
    #: The anomalies that its claim of at-least-once allows.
    allowed: tuple[tuple[str, int], ...] = ()
    #: Whether the evidence has the coordinators' own log.
    coordinated: bool = False
    #: Whether it is the planted upgrade (`tests.support.planted.upgrade`).
    upgrade: bool = False
    #: In the place of every name that a broker, a client or the environment chose.
    noise: str = ""
    #: The command that repeats the scenario; empty for the usual one.
    replay: str = ""

    @property
    def run(self) -> str:
        """The run id inside the evidence, different for each run."""
        told = f"{self.key} {self.release} {self.seed} {self.started}"
        return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:12]


def found(
    anomaly: str = "torn-transaction", *, count: int = 3, known_bug: str | None = None, **over: object
) -> Finding:
    """A finding with min(count, 32) examples that point at operations of the planted history."""
    topic = str(over.get("topic", "billing-events"))
    detail = str(over.get("detail", "41 of 50 records visible; the 9 in billing-events-0 are not"))
    examples = tuple(
        Violation(
            anomaly=anomaly,
            process=(60 + number) % 4,
            operation=60 + number,
            index=number,
            topic=topic,
            partition=0,
            offset=1042 + number,
            observer="witness-committed",
            detail=detail,
        )
        for number in range(min(count, 32))
    )
    shown = _shown(examples[0]) if examples else None
    return Finding(anomaly=anomaly, count=count, examples=examples, consequences=12, known_bug=known_bug, witness=shown)


def _shown(of: Violation) -> Witness:
    """The minimal witness of a planted violation: its record, the marker after it, its transaction."""
    at = WitnessPlace(topic=of.topic or "", partition=0, offset=of.offset or 0, holds="record", outcome="commit")
    who = replace(at, process=of.process, operation=of.operation, index=of.index, producer_id=1000, producer_epoch=3)
    invoked = ANCHOR + FAULT_BEGAN_S * SECOND
    told = WitnessOperation(
        process=of.process or 0,
        operation=of.operation or 0,
        action="transaction",
        outcome="info",
        told="unknown",
        transactional_id=of.topic,
        records=50,
        invoked_ns=invoked,
        decided_ns=invoked + SECOND // 10,
        error_name=of.observer,
    )
    places = (
        replace(who, given_to=("uncommitted capture", str(of.topic))),
        replace(at, offset=1043, holds="commit marker"),
    )
    return Witness(why=of.detail, places=places, operations=(told,))


CONTROL = Plan(
    key="control-retries-without-idempotence",
    verdict=Verdict.FAIL,
    reason="exactly the expected anomaly was found",
    claim="A producer that retries without idempotence writes duplicates when responses are lost.",
    requirements=(),
    findings=(found("duplicate", count=17, detail="one identity at two offsets"),),
    expects=("duplicate",),
    convicted=True,
)
FAILED = Plan(
    key="commit-without-leader",
    verdict=Verdict.FAIL,
    reason="1 acknowledged transaction is not visible",
    claim="A commit while a partition of the transaction has no leader is complete once the leader is back.",
    findings=(found("hidden-committed", count=40, known_bug="KB-16"),),
    coordinated=True,
)
UNDECIDED = Plan(
    key="paused-zombie",
    verdict=Verdict.INCONCLUSIVE,
    reason="12 of 50 operations were attempted during the fault",
    claim="A producer that was paused past its transaction timeout cannot write after its successor has started.",
    requirements=("FENCE-01",),
    coverage_have=12,
)
BROKEN = Plan(
    key="controller-crash",
    verdict=Verdict.ERROR,
    reason="broker 2 did not start within 30 s",
    claim="A crash of the active controller in mid-commit loses nothing.",
)
SMOKE = Plan(key="no-fault", claim="Without any fault every answer is true.", requirements=("TXN-25",))
INAPPLICABLE = Plan(
    key="transaction-version-2",
    verdict=Verdict.NOT_APPLICABLE,
    reason="the release does not know transaction.version 2",
    requirements=("TV2-01",),
)
EVERY_VERDICT = (SMOKE, FAILED, UNDECIDED, BROKEN, INAPPLICABLE, CONTROL)
