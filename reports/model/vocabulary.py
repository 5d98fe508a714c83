"""Texts of `verification` that a report shows: requirements, anomaly definitions and known bugs."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache

from verification.known_bugs import catalogue as known_bugs
from verification.known_bugs.catalogue import KnownBug
from verification.known_bugs.measured import MeasuredRow, load_measured
from verification.requirements import catalogue as catalogues
from verification.requirements.catalogue import Family, Requirement
from verification.requirements.deciders import deciders, deciders_of
from verification.vocabulary import releases
from verification.vocabulary.anomalies import DEFINITIONS, Anomaly, AnomalyDefinition
from verification.vocabulary.errors import ReleaseError

Catalogue = Mapping[str, Requirement]


@cache
def _families() -> tuple[Family, ...]:
    """Load the catalogue once: it cannot change meanwhile, and parsing it costs more than rendering a scenario."""
    return catalogues.load_families()


_known_bugs = cache(known_bugs.load)
_measured = cache(load_measured)


def catalogue() -> Catalogue:
    """Every requirement by its id, in the order of the catalogue."""
    return {each.id: each for family in _families() for each in family.requirements}


def titles() -> dict[str, str]:
    """The title of each family, in the order of the catalogue."""
    return {family.name: family.title for family in _families()}


def definition_of(anomaly: str) -> AnomalyDefinition | None:
    """The definition of an anomaly and why it is illegal; None for one that this version does not know."""
    return DEFINITIONS[Anomaly(anomaly)] if anomaly in set(Anomaly) else None


def note_on(known_bug: str) -> str:
    """Two sentences on a known bug: title, JIRA issue, affected and fixed releases; empty for an unknown id.

    Both ends of a range were tried, but not every release between them, so the text does not say that it was seen.
    """
    bug = bugs().get(known_bug)
    if bug is None:
        return ""
    tracked = f" ({', '.join(bug.jira)})" if bug.jira else ""
    released = [each for each in bug.fixed_in if releases.is_released(each)]
    announced = [each for each in bug.fixed_in if each not in released]
    fixed = f"fixed in {', '.join(released)}" if released else "not fixed in any later release"
    if announced:
        fixed = f"{fixed if released else 'not fixed yet'}; a fix is announced for {', '.join(announced)}"
    bad_in = ", ".join(bad.first if bad.first == bad.last else f"{bad.first} to {bad.last}" for bad in bug.bad)
    return f"{bug.title}{tracked}. Found in {bad_in}; {fixed}."


def bugs() -> Mapping[str, KnownBug]:
    """Every known bug by its id."""
    return _known_bugs()


def measured() -> Mapping[str, tuple[MeasuredRow, ...]]:
    """The rows of the stored track record by the id of their known bug."""
    return _measured()


def family_of(requirement: str) -> str:
    """The family of an id such as `TXN-25`: everything before its last hyphen."""
    return requirement.rpartition("-")[0] or requirement


def applies_to(requirement: Requirement, release: str) -> bool:
    """Whether the requirement applies to a release; True for a release that cannot be parsed."""
    try:
        return releases.within(release, requirement.applies.since, requirement.applies.until)
    except ReleaseError:
        return True


def why_untested(requirement: Requirement, release: str, *, spoke_tv2: bool) -> str:
    """Why a run left a requirement untested, or the command that decides it. `release` may be unknown or no release."""
    if requirement.reason_untested:
        return requirement.reason_untested
    applies = requirement.applies
    if not applies_to(requirement, release):
        upto = f" up to {applies.until}" if applies.until else ""
        return f"It applies to releases from {applies.since}{upto}."
    decider = deciders_of().get(requirement.id)
    if decider is None:
        return "No test of this suite decides it."
    needs_tv2 = (applies.transaction_version or 0) >= 2 and not spoke_tv2
    client = ", with a client that speaks transaction version 2" if needs_tv2 else ""
    return f"This decides it{client}: `{decider.command(release)}`"


def how_to_test(requirements: Set[str], release: str) -> str:
    """The command of the most usual scenario that decides one of these requirements; empty where there is none."""
    found = (each for each in deciders() if each.scenario and requirements & set(each.requirements))
    return next((each.command(release) for each in found), "")
