"""The guarantees that people ask about, one card each, and never one score for all of them.

A guarantee is a set of anomalies that must not occur. A scenario has tried it when it decides a requirement that
forbids one of them. It is refuted by a finding, and otherwise as good as the worst of the scenarios that tried it; a
scenario that failed for another reason has no say. It passes only when each of its anomalies was forbidden by a
requirement that passed: what nobody looked for is not absent. A pass is "not refuted in so many runs": faults strike at
moments that nobody can enumerate. Recovery is measured and has no verdict, because no sentence of Kafka promises a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.model.findings import FindingReport
from reports.model.protocol_case import Tried
from reports.model.report import Report, ScenarioReport
from reports.model.timeline import Unavailability
from reports.model.vocabulary import Catalogue, catalogue
from reports.model.wording import seconds
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import Verdict

GUARANTEES: tuple[tuple[str, str, frozenset[Anomaly]], ...] = (
    ("No loss", "What was acknowledged is there.", frozenset({Anomaly.LOST_WRITE, Anomaly.INCONSISTENT_OFFSET})),
    (
        "No duplicates",
        "Nothing is there twice, or without a sender.",
        frozenset({Anomaly.DUPLICATE, Anomaly.PHANTOM_RECORD}),
    ),
    ("Atomicity", "A transaction shows as a whole or not at all.", frozenset({Anomaly.TORN_TRANSACTION})),
    (
        "Visibility",
        "read_committed shows what was committed, and nothing else.",
        frozenset({Anomaly.ABORTED_READ, Anomaly.EARLY_READ, Anomaly.HIDDEN_COMMITTED, Anomaly.POLL_SKIP}),
    ),
    ("Fencing", "A superseded producer writes nothing.", frozenset({Anomaly.ZOMBIE_WRITE})),
    (
        "Producers survive",
        "A producer that nobody superseded is never turned away for good.",
        frozenset({Anomaly.STRANDED_PRODUCER}),
    ),
    (
        "Order",
        "Records stand and are read in the order of sending.",
        frozenset({Anomaly.REORDERED_WRITE, Anomaly.BROKEN_SEQUENCE, Anomaly.NONMONOTONIC_POLL}),
    ),
    (
        "Offsets with outputs",
        "A copier's offsets and outputs commit together.",
        frozenset({Anomaly.OFFSET_WITHOUT_OUTPUT, Anomaly.OUTPUT_WITHOUT_OFFSET}),
    ),
    ("Coordination", "Coordinators take only steps that there are.", frozenset({Anomaly.ILLEGAL_TRANSITION})),
    ("LSO liveness", "Readers are never held back for ever.", frozenset({Anomaly.HUNG_TRANSACTION, Anomaly.STUCK_LSO})),
)
RECOVERY = ("Recovery time", "How long commits stood still. A measurement, no verdict.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One guarantee: `verdict` is None where nothing tried it, or where there is none to give (`measured`).

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


def not_refuted(tried: Iterable[Tried]) -> str:
    """What a pass of these says: in how many runs nothing was found, and with which seeds."""
    passed = tuple(tried)
    seeds = sorted({each.seed for each in passed if each.seed is not None})
    runs = f"not refuted in {len(passed)} run{'' if len(passed) == 1 else 's'}"
    return f"{runs} (seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))})" if seeds else runs


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
    told = [(scenario, verdict) for scenario, verdict in tried if verdict not in (Verdict.FAIL, Verdict.NOT_APPLICABLE)]
    passed = [scenario for scenario, verdict in told if verdict is Verdict.PASS]
    verdict = Verdict.FAIL if refuted else Verdict.worst(each for _, each in told) if told else None
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
        fact=_fact(passed, len(told) - len(passed), refuted=bool(refuted), untried=untried),
        refuted=tuple(refuted),
    )


def _forbidden(scenarios: Iterable[ScenarioReport], known: Catalogue) -> frozenset[Anomaly]:
    """The anomalies of which requirements that passed say that they did not occur."""
    rows = (row for each in scenarios for row in each.requirements if row.verdict is Verdict.PASS and row.id in known)
    return frozenset(anomaly for row in rows for anomaly in known[row.id].forbids)


def _fact(
    passed: list[ScenarioReport], undecided: int, *, refuted: bool, untried: frozenset[Anomaly] = frozenset()
) -> str:
    parts = []
    if untried:
        parts.append(f"Nothing tried {', '.join(sorted(untried))}")
    if passed:
        parts.append(f"{'Otherwise n' if refuted else 'N'}{not_refuted(passed)[1:]}")
    if undecided:
        parts.append(f"{undecided} could not decide it")
    return "; ".join(parts) + "." if parts else "" if refuted else "No scenario of this run tried it."


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
