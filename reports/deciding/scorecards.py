"""One card per guarantee that users ask about, and never one score for all of them.

A guarantee is a set of anomalies that must not occur. A scenario tested it when it decided a requirement that forbids
one of them. A finding refutes it. Otherwise it has the worst verdict of the scenarios that tested it; a scenario that
failed for another reason does not count. It passes only when each of its anomalies is forbidden by a requirement that
passed: an anomaly that no check looked for may be there. A pass says "no violation in N scenarios", because a run tries
only some of the moments at which a fault can occur. Recovery is measured and has no verdict, because Kafka promises no
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.model.findings import FindingReport
from reports.model.protocol_case import Tried
from reports.model.report import Report, ScenarioReport
from reports.model.timeline import Unavailability
from reports.model.vocabulary import Catalogue, catalogue
from reports.model.wording import counted, noun_of, seconds
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import Verdict

GUARANTEES: tuple[tuple[str, str, frozenset[Anomaly]], ...] = (
    (
        "No loss",
        "Every acknowledged record is in the log, at the offset that was acknowledged.",
        frozenset({Anomaly.LOST_WRITE, Anomaly.INCONSISTENT_OFFSET}),
    ),
    (
        "No duplicates",
        "No record is in the log twice, and every record was sent by a producer.",
        frozenset({Anomaly.DUPLICATE, Anomaly.PHANTOM_RECORD}),
    ),
    ("Atomicity", "Readers see all records of a transaction, or none.", frozenset({Anomaly.TORN_TRANSACTION})),
    (
        "Visibility",
        "read_committed readers receive all committed records, and no others.",
        frozenset({Anomaly.ABORTED_READ, Anomaly.EARLY_READ, Anomaly.HIDDEN_COMMITTED, Anomaly.POLL_SKIP}),
    ),
    ("Fencing", "A producer that a newer instance replaced cannot write.", frozenset({Anomaly.ZOMBIE_WRITE})),
    (
        "Producers survive",
        "A producer is never fenced for good, unless a newer instance replaced it.",
        frozenset({Anomaly.STRANDED_PRODUCER}),
    ),
    (
        "Order",
        "Records are stored and read in the order in which they were sent.",
        frozenset({Anomaly.REORDERED_WRITE, Anomaly.BROKEN_SEQUENCE, Anomaly.NONMONOTONIC_POLL}),
    ),
    (
        "Offsets with outputs",
        "A consume-transform-produce application commits its input offsets together with its outputs.",
        frozenset({Anomaly.OFFSET_WITHOUT_OUTPUT, Anomaly.OUTPUT_WITHOUT_OFFSET}),
    ),
    (
        "Coordination",
        "Transaction coordinators make only legal state transitions.",
        frozenset({Anomaly.ILLEGAL_TRANSITION}),
    ),
    (
        "LSO liveness",
        "The last stable offset (LSO) always moves on, so read_committed readers never wait for ever.",
        frozenset({Anomaly.HUNG_TRANSACTION, Anomaly.STUCK_LSO}),
    ),
)
RECOVERY = ("Recovery time", "The time without commits around a fault. Measured, without a verdict.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One guarantee: `verdict` is None where nothing tested it, or where it is only measured (`measured`).

    `refuted` are the findings with the key of their scenario; `fact` is one sentence of figures.
    """

    title: str
    about: str
    verdict: Verdict | None
    accepted: bool = False
    measured: bool = False
    fact: str = ""
    refuted: tuple[tuple[str, FindingReport], ...] = ()


def cards(report: Report) -> tuple[Card, ...]:
    """The cards in the order of the guarantees, recovery last."""
    known = catalogue()
    return (*(_card(*each, report.scenarios, known) for each in GUARANTEES), _recovery(report.scenarios))


def no_violation_in(tried: Iterable[Tried]) -> str:
    """The number of scenarios or cases that passed, with their seeds, as a phrase."""
    passed = tuple(tried)
    seeds = sorted({each.seed for each in passed if each.seed is not None})
    found = f"no violation in {counted(len(passed), noun_of(passed))}"
    return f"{found} (seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))})" if seeds else found


def _card(
    title: str, about: str, anomalies: frozenset[Anomaly], scenarios: Iterable[ScenarioReport], known: Catalogue
) -> Card:
    tried: list[tuple[ScenarioReport, Verdict]] = []
    refuted: list[tuple[str, FindingReport]] = []
    for scenario in scenarios:
        found = [each for each in scenario.findings if each.anomaly in anomalies]
        refuted += [(scenario.key, each) for each in found]
        said = [
            each.verdict
            for each in scenario.requirements
            if each.id in known and anomalies & set(known[each.id].forbids)
        ]
        if said and not found:
            tried.append((scenario, Verdict.worst(said)))
    counting = [
        (scenario, verdict) for scenario, verdict in tried if verdict not in (Verdict.FAIL, Verdict.NOT_APPLICABLE)
    ]
    passed = [scenario for scenario, verdict in counting if verdict is Verdict.PASS]
    verdict = Verdict.FAIL if refuted else Verdict.worst(each for _, each in counting) if counting else None
    untried = anomalies - _forbidden(passed, known) if verdict is Verdict.PASS else frozenset()
    if untried:
        verdict = Verdict.INCONCLUSIVE
    if verdict is None and any(each is Verdict.FAIL for _, each in tried):
        verdict = Verdict.INCONCLUSIVE
    return Card(
        title=title,
        about=about,
        verdict=verdict,
        accepted=bool(refuted) and all(each.accepted for _, each in refuted),
        fact=_fact(passed, len(counting) - len(passed), refuted=bool(refuted), untried=untried),
        refuted=tuple(refuted),
    )


def _forbidden(scenarios: Iterable[ScenarioReport], known: Catalogue) -> frozenset[Anomaly]:
    """The anomalies that are forbidden by requirements that passed."""
    rows = (row for each in scenarios for row in each.requirements if row.verdict is Verdict.PASS and row.id in known)
    return frozenset(anomaly for row in rows for anomaly in known[row.id].forbids)


def _fact(
    passed: list[ScenarioReport], undecided: int, *, refuted: bool, untried: frozenset[Anomaly] = frozenset()
) -> str:
    parts = []
    if untried:
        parts.append(f"Not tested: {', '.join(sorted(untried))}")
    if passed:
        parts.append(f"{'Otherwise n' if refuted else 'N'}{no_violation_in(passed)[1:]}")
    if undecided:
        parts.append(f"{counted(undecided, 'scenario')} could not decide it")
    return ". ".join(parts) + "." if parts else "" if refuted else "No scenario of this run tested it."


def _recovery(scenarios: Iterable[ScenarioReport]) -> Card:
    rows = [(each.key, fault) for each in scenarios if each.timeline for fault in each.timeline.unavailability]
    title, about = RECOVERY
    return Card(
        title=title,
        about=about,
        verdict=None,
        measured=bool(rows),
        fact=" ".join(_figures(rows)) or "No fault was measured.",
    )


def _figures(faults: list[tuple[str, Unavailability]]) -> Iterator[str]:
    if faults:
        key, worst = max(faults, key=lambda each: each[1].gap_s)
        yield f"Longest time without a commit: {seconds(worst.gap_s)} ({key})."
    recovered = [(key, fault.recovered_s) for key, fault in faults if fault.recovered_s is not None]
    if recovered:
        key, slowest = max(recovered, key=lambda each: each[1])
        yield f"Slowest first commit after a heal: {seconds(slowest)} ({key})."
