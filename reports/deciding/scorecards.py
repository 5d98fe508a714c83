"""One card per guarantee that users ask about, and never one score for all of them.

A guarantee is a set of anomalies that must not occur. A scenario tested it when it decided a requirement that forbids
one of them. A guarantee is refuted by

* a finding of one of its anomalies;
* a consequence of another finding, where readers suffer from it: a hung transaction that lets readers see a part of
  another transaction refutes *Atomicity*;
* the damage of any finding: an acknowledged record that was lost refutes *No loss*, whatever anomaly names it;
* a failed requirement of its own family;
* a protocol case that can have shown nothing but its anomalies.

Otherwise it has the worst verdict of the scenarios that tested it; a scenario in which another guarantee failed does
not count. It passes only when each of its anomalies is forbidden by a requirement that passed: an anomaly that no check
looked for may be there. A pass says "no violation in N scenarios", because a run tries only some of the moments at which
a fault can occur. Recovery is measured and has no verdict, because Kafka promises no time.

A violation that does not decide refutes a guarantee too: the card is a FAIL and names the known bugs behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.deciding.effort import effort_together
from reports.model.protocol_case import ACCEPTED, ScriptCase, Tried, aside_of, word_aside
from reports.model.report import Report, ScenarioReport
from reports.model.timeline import Unavailability
from reports.model.vocabulary import Catalogue, catalogue, family_of, how_to_test
from reports.model.vocabulary import bugs as known_bugs
from reports.model.wording import counted, noun_of, number, seconds
from verification.known_bugs.weight import Weight
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import Verdict

GUARANTEES: tuple[tuple[str, str, frozenset[Anomaly]], ...] = (
    (
        "No loss",
        "Every acknowledged record is in the log, at the offset that was acknowledged, and what was committed stays so.",
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
    (
        "Fencing",
        "A producer that a newer instance replaced can neither write nor end a transaction.",
        frozenset({Anomaly.ZOMBIE_WRITE}),
    ),
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
        "A consume-transform-produce application commits its input offsets and its state together with its outputs.",
        frozenset({Anomaly.OFFSET_WITHOUT_OUTPUT, Anomaly.OUTPUT_WITHOUT_OFFSET, Anomaly.STATE_DIVERGENCE}),
    ),
    (
        "Coordination",
        "Transaction coordinators complete what they decided, through failures too, and make only legal state transitions.",
        frozenset({Anomaly.ILLEGAL_TRANSITION}),
    ),
    (
        "LSO liveness",
        "The last stable offset (LSO) always moves on, so read_committed readers never wait for ever.",
        frozenset({Anomaly.HUNG_TRANSACTION, Anomaly.STUCK_LSO, Anomaly.DECIDED_LATE}),
    ),
)
#: The damage that refutes a guarantee, with its words.
DAMAGE = {
    "No loss": ("all_lost", "acknowledged records lost"),
    "Visibility": ("hidden", "acknowledged records that no reader receives"),
}
#: The family of requirements that a guarantee stands for as a whole.
FAMILY = {"Coordination": "COORD", "Fencing": "FENCE"}
#: Consequences of other findings that are wrongs of their own for a reader. The others only repeat their cause.
SUFFERED = frozenset({Anomaly.TORN_TRANSACTION, Anomaly.HIDDEN_COMMITTED})
RECOVERY = ("Recovery time", "The time without commits around a fault. Measured, without a verdict.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """What refutes a guarantee: the scenario or case, and what was found there.

    `bugs` are the known bugs that explain it, any one of them where there are several. `aside` is the word for a violation
    that does not decide.
    """

    key: str
    what: str
    bugs: tuple[str, ...]
    aside: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One guarantee: `verdict` is None where nothing tested it, or where it is only measured (`measured`).

    `fact` is one sentence of figures. `aside` is the word for its violations where none of them decides.
    """

    title: str
    about: str
    verdict: Verdict | None
    aside: str = ""
    measured: bool = False
    fact: str = ""
    refuted: tuple[Refutation, ...] = ()

    @property
    def why_aside(self) -> str:
        """Why a FAIL does not decide, in a sentence; empty where it decides, and for another verdict."""
        if not self.aside:
            return ""
        found = {each.aside for each in self.refuted}
        kinds = [f"{word}s" for word in map(str, Weight) if word in found]
        kinds += ["accepted violations"] if ACCEPTED in found else []
        bugs = ", ".join(sorted({bug for each in self.refuted for bug in each.bugs}))
        return f"By {' and '.join(kinds)} only, which do not decide" + (f": {bugs}." if bugs else ".")


def cards(report: Report) -> tuple[Card, ...]:
    """The cards in the order of the guarantees, recovery last."""
    known = catalogue()
    return (*(_card(*each, report, known) for each in GUARANTEES), _recovery(report.scenarios))


def no_violation_in(tried: Iterable[Tried]) -> str:
    """The number of scenarios or cases that passed, with the effort behind them, as a phrase."""
    passed = tuple(tried)
    found = f"no violation in {counted(len(passed), noun_of(passed))}"
    behind = effort_together(passed)
    return f"{found} ({behind})" if behind else found


def _card(title: str, about: str, anomalies: frozenset[Anomaly], report: Report, known: Catalogue) -> Card:
    refuted: list[Refutation] = []
    tried: list[tuple[ScenarioReport, Verdict]] = []
    for scenario in report.scenarios:
        found = [*_found(scenario, title, anomalies), *_failed(scenario, title)]
        said = [each.verdict for each in scenario.requirements if is_about(each.id, title, anomalies, known)]
        refuted += found
        if found or said:
            tried.append((scenario, Verdict.FAIL if found else Verdict.worst(said)))
    for case in report.cases:
        refuted += [*_failed(case, title), *_shown(case, title, anomalies, known)]
    refuting = {each.key for each in refuted}
    counting = [each for each in tried if each[1] is not Verdict.NOT_APPLICABLE and each[0].key not in refuting]
    passed = [scenario for scenario, verdict in counting if verdict is Verdict.PASS]
    other = [scenario for scenario, verdict in counting if verdict is Verdict.FAIL]
    decided = [verdict for _, verdict in counting if verdict is not Verdict.FAIL]
    verdict = Verdict.FAIL if refuted else Verdict.worst(decided) if decided else None
    untried = anomalies - _forbidden(passed, known) if verdict is Verdict.PASS else frozenset()
    if untried or (verdict is None and other):
        verdict = Verdict.INCONCLUSIVE
    violating = sum(scenario.key in refuting for scenario, _ in tried)
    undecided = len(counting) - len(passed) - len(other)
    fact = _fact(passed, violating, undecided, len(other), untried=untried, cases=_cases(report, refuting))
    if verdict is None:
        about_it = {each for each in known if is_about(each, title, anomalies, known)}
        fact = f"This tests it: `{how_to_test(about_it, report.subject.release)}`"
    return Card(
        title=title,
        about=about,
        verdict=verdict,
        aside=aside_of(each.aside for each in refuted),
        fact=fact,
        refuted=tuple(refuted),
    )


def _found(scenario: ScenarioReport, title: str, anomalies: frozenset[Anomaly]) -> Iterator[Refutation]:
    """The findings of a scenario that refute a guarantee; if there are none, the damage of its other findings."""
    own = [each for each in scenario.findings if each.anomaly in anomalies]
    for each in own:
        what = f"{each.anomaly} × {number(each.count)}"
        aside = word_aside(scenario.verdict, each.weight, accepted=each.accepted)
        yield Refutation(key=scenario.key, what=what, bugs=(each.known_bug,) if each.known_bug else (), aside=aside)
    suffered = [
        (each, *pair) for each in scenario.findings for pair in each.explains if pair[0] in anomalies & SUFFERED
    ]
    for cause, anomaly, count in suffered:
        what = f"{anomaly} × {number(count)}, by {cause.anomaly}"
        aside = word_aside(scenario.verdict, cause.weight, accepted=cause.accepted)
        yield Refutation(key=scenario.key, what=what, bugs=(cause.known_bug,) if cause.known_bug else (), aside=aside)
    field, words = DAMAGE.get(title, ("", ""))
    count = getattr(scenario.damage, field) if field and scenario.damage is not None else 0
    if count and not own and not suffered:
        what = f"{number(count)} {words}"
        yield Refutation(key=scenario.key, what=what, bugs=_bugs(scenario), aside=scenario.aside)


def _failed(tried: Tried, title: str) -> Iterator[Refutation]:
    """The failed requirements of a guarantee's own family."""
    for each in tried.requirements:
        if title in FAMILY and family_of(each.id) == FAMILY[title] and each.verdict is Verdict.FAIL:
            what = f"{each.id} failed"
            yield Refutation(key=tried.key, what=what, bugs=_bugs(tried), aside=tried.aside)


def _shown(case: ScriptCase, title: str, anomalies: frozenset[Anomaly], known: Catalogue) -> Iterator[Refutation]:
    """The failed requirements of a case that can stand only for anomalies of this guarantee.

    A case names no anomaly. It shows those that its requirement forbids, and of them only those of its known bug.
    """
    named = [known_bugs()[each.id].anomalies for each in case.known if each.named and each.id in known_bugs()]
    for each in case.requirements:
        if each.verdict is not Verdict.FAIL or each.id not in known or family_of(each.id) == FAMILY.get(title):
            continue
        can_be = set(known[each.id].forbids).intersection(*([set().union(*named)] if named else []))
        if can_be and can_be <= anomalies:
            yield Refutation(key=case.key, what=f"{each.id} failed", bugs=_bugs(case), aside=case.aside)


def _bugs(tried: Tried) -> tuple[str, ...]:
    """The known bugs that explain everything that was found there; empty where something has no name."""
    bugs = {bug for bug, _ in tried.proven}
    return () if "" in bugs else tuple(sorted(bugs))


def is_about(requirement: str, title: str, anomalies: frozenset[Anomaly], known: Catalogue) -> bool:
    """Whether a requirement decides a guarantee: it forbids one of its anomalies, or is of its own family."""
    if title in FAMILY and family_of(requirement) == FAMILY[title]:
        return True
    return requirement in known and bool(anomalies & set(known[requirement].forbids))


def _forbidden(scenarios: Iterable[ScenarioReport], known: Catalogue) -> frozenset[Anomaly]:
    """The anomalies that are forbidden by requirements that passed."""
    rows = (row for each in scenarios for row in each.requirements if row.verdict is Verdict.PASS and row.id in known)
    return frozenset(anomaly for row in rows for anomaly in known[row.id].forbids)


def _fact(
    passed: list[ScenarioReport],
    violating: int,
    undecided: int,
    other: int,
    *,
    untried: frozenset[Anomaly],
    cases: int,
) -> str:
    """One sentence, in which the scenarios add up to all that tested the guarantee; a second one about protocol cases."""
    whole = len(passed) + violating + undecided + other
    also = f" {counted(cases, 'protocol case')} violated it." if cases else ""
    if not whole:
        return f"No scenario of this run tested it.{also}"
    parts = [
        no_violation_in(passed) if passed else "",
        f"a violation in {violating}" if violating else "",
        f"{undecided} could not decide it" if undecided else "",
        f"{other} could not be counted, because another guarantee failed there" if other else "",
    ]
    fact = f"{counted(whole, 'scenario')} tested it: {', '.join(each for each in parts if each)}."
    return f"Not tested: {', '.join(sorted(untried))}. {fact}{also}" if untried else f"{fact}{also}"


def _cases(report: Report, refuting: set[str]) -> int:
    """The number of protocol cases that refute a guarantee."""
    return sum(case.key in refuting for case in report.cases)


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
