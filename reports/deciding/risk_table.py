"""The table of risks: every known bug that the release under test has, or that this run showed, the gravest first.

A reader asks of each: what is at risk, how likely is it, does it concern my client and my replication, and do I have it
already? Reasons and advice are elsewhere; this table only compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.deciding.reasons import Reason, reasons
from reports.model.report import Report
from reports.model.vocabulary import bugs, measured
from verification.known_bugs.catalogue import BugKind, KnownBug, Reach, affects
from verification.known_bugs.exposure import Exposure, Library, ReplicationNeed, TransactionUse
from verification.known_bugs.weight import Weight, heaviest
from verification.requirements.catalogue import Protects
from verification.vocabulary.errors import ReleaseError
from verification.vocabulary.releases import parse, within

_NEEDS = {
    ReplicationNeed.ANY: "any",
    ReplicationNeed.NO_REPLICA_LEFT: "any: with 1 replica each crash of its broker, with 3 the loss of all in-sync ones",
    ReplicationNeed.SEVERAL: "2 or more",
}
_PRODUCERS = {TransactionUse.NONE: "no transactions"}
#: The choices of the filter: id, group, words, and the class of rows that a choice hides.
CHOICES = (
    ("any-client", "client", "any client", ""),
    ("java", "client", "Java", "not-java"),
    ("librdkafka", "client", "librdkafka", "not-librdkafka"),
    ("any-tv", "tv", "any transactions", ""),
    ("none", "tv", "no transactions", "not-none"),
    ("tv1", "tv", "TV1", "not-tv1"),
    ("tv2", "tv", "TV2", "not-tv2"),
    ("any-rf", "rf", "any replication", ""),
    ("rf1", "rf", "replication 1", "not-rf1"),
    ("rf3", "rf", "replication 3", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """One row. `today` says whether the release that the user runs now has the bug; empty where that is not known."""

    id: str
    title: str
    at_risk: str
    likely: str
    clients: str
    transactions: str
    needs: str
    today: str
    seen: str
    place: str
    hidden_by: tuple[str, ...]


def risks(report: Report) -> tuple[Risk, ...]:
    """The rows by harm: what is at risk, then how likely it is. Of equal ones those that decide, then others of this run."""
    shown: dict[str, list[Reason]] = {}
    for reason in reasons(report):
        if reason.name in bugs():
            shown.setdefault(reason.name, []).append(reason)
    traced = {trace.bug: each.key for each in report.tried for trace in each.traces}
    concerned = [
        each
        for each in bugs().values()
        if each.kind is not BugKind.CONTROL
        and (each.id in shown or each.id in traced or _has(each, report.subject.release))
    ]
    impacts, reaches = tuple(Protects), tuple(Reach)
    concerned.sort(
        key=lambda each: (
            impacts.index(each.impact),
            reaches.index(each.reach),
            _weight(shown.get(each.id, [])) != Weight.DECIDES,
            each.id not in shown,
            each.id,
        )
    )
    today = release_of_today(report)
    return tuple(_risk(each, shown.get(each.id, []), traced.get(each.id, ""), today) for each in concerned)


def release_of_today(report: Report) -> str:
    """The release that the user runs today: where an upgrade begins, or of the baseline; empty if neither was given."""
    baseline = report.comparison.baseline.release if report.comparison is not None else ""
    return report.subject.upgraded_from or baseline


def _weight(shown: Sequence[Reason]) -> str:
    """The heaviest weight of the violations by one bug; accepted if the user accepted all, empty if there is none."""
    counted = [each.weight for each in shown if not each.accepted]
    return heaviest(counted) if counted else "accepted" if shown else ""


def _risk(bug: KnownBug, shown: Sequence[Reason], traced: str, today: str) -> Risk:
    places = [place for each in shown for place in each.places]
    seen = "not seen"
    if places:
        seen = f"{_weight(shown)}: {len(places)} {'tests fail' if len(places) > 1 else 'test fails'}"
    elif traced:
        seen = "in a test that passed"
    exposure = bug.exposure
    return Risk(
        id=bug.id,
        title=bug.title,
        at_risk=str(bug.impact),
        likely=str(bug.reach),
        clients=", ".join(exposure.libraries) or "no released client",
        transactions=", ".join(_PRODUCERS.get(each, str(each)) for each in exposure.transactions),
        needs=_NEEDS[exposure.replication],
        today=_today(bug, today) if today else "",
        seen=seen,
        place=places[0].key if places else traced,
        hidden_by=tuple(_hidden_by(exposure)),
    )


def _hidden_by(exposure: Exposure) -> Iterator[str]:
    """The classes by which the filter hides a row."""
    yield from (f"not-{each.lower()}" for each in Library if each not in exposure.libraries)
    yield from (f"not-{each.lower()}" for each in TransactionUse if each not in exposure.transactions)
    if exposure.replication is ReplicationNeed.SEVERAL:
        yield "not-rf1"


def _has(bug: KnownBug, release: str) -> bool:
    try:
        return affects(bug, release)
    except ReleaseError:
        return False


def _today(bug: KnownBug, release: str) -> str:
    """Whether a release has a bug, as far as it was measured or the bug is known to be fixed."""
    if _has(bug, release):
        return "yes"
    rows = [each for each in measured().get(bug.id, ()) if not each.variant]
    if any(release in each.clean for each in rows):
        return "no, measured"
    return "no, by its fix" if _is_fixed(bug, release) else "not run"


def _is_fixed(bug: KnownBug, release: str) -> bool:
    """Whether a release is at or after the first one with the fix, on its own line or on the last line that got it."""
    try:
        fixes = sorted(bug.fixed_in, key=parse)
        return any(within(release, each, each.rpartition(".")[0]) for each in fixes) or (
            bool(fixes) and within(release, fixes[-1], None)
        )
    except ReleaseError:
        return False
