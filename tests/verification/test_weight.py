"""The default rule of the decision: which known bugs decide, on which releases, and the data that it depends on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.clusters.locks.releases import supported_releases
from verification.known_bugs import render
from verification.known_bugs.catalogue import BugKind, KnownBug, Reach, ReleaseRange, affects, load
from verification.known_bugs.weight import Weight, heaviest, is_everywhere, weigh
from verification.requirements.catalogue import Protects
from verification.vocabulary import releases

BUGS = load()


def bug(impact: Protects, reach: Reach, *, everywhere: bool) -> KnownBug:
    """A bug that every supported release has, or that the newest one alone is without."""
    newest = releases.SUPPORTED[-1]
    last = newest if everywhere else releases.SUPPORTED[-2]
    bad = (ReleaseRange(first=releases.SUPPORTED[0], last=last),)
    return replace(BUGS["KB-16"], impact=impact, reach=reach, bad=bad)


def test_the_supported_releases_are_those_with_a_lock_file() -> None:
    """They are the last patches of their lines, the oldest first."""
    assert tuple(map(str, supported_releases())) == releases.SUPPORTED


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("reach", Reach)
@pytest.mark.parametrize("impact", Protects)
def test_only_an_ordinary_risk_that_some_release_is_without_decides(
    impact: Protects, reach: Reach, everywhere: bool
) -> None:
    """The whole table of the rule; with --strict each bug decides."""
    expected = Weight.RISK
    if impact is Protects.CONTRACT:
        expected = Weight.DEVIATION
    elif reach is Reach.ORDINARY and not everywhere:
        expected = Weight.DECIDES
    assert weigh(bug(impact, reach, everywhere=everywhere)) is expected
    assert weigh(bug(impact, reach, everywhere=everywhere), strict=True) is Weight.DECIDES


def test_a_violation_without_a_name_decides() -> None:
    """Nothing is known about it, whatever else is known in the same place."""
    assert weigh(None) is Weight.DECIDES
    assert heaviest([]) is Weight.DECIDES
    assert heaviest([Weight.DEVIATION, Weight.DECIDES, Weight.RISK]) is Weight.DECIDES
    assert heaviest([Weight.DEVIATION, Weight.RISK]) is Weight.RISK


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("3.5.2", {"KB-08", "KB-15", "KB-31"}),
        ("3.9.2", {"KB-31"}),
        ("4.0.0", {"KB-11", "KB-35", "KB-36"}),
        ("4.0.2", {"KB-11"}),
        ("4.1.2", set()),
        ("4.2.0", {"KB-10"}),
        ("4.2.1", set()),
        ("4.3.1", {"KB-16"}),
        ("4.4.0", {"KB-16"}),
    ],
)
def test_the_bugs_that_decide_on_a_release(release: str, expected: set[str]) -> None:
    """A release without one of them ends GO, and still has standing risks and deviations."""
    present = [each for each in BUGS.values() if each.kind is not BugKind.CONTROL and affects(each, release)]
    by_weight = {weight: {each.id for each in present if weigh(each) is weight} for weight in Weight}
    assert by_weight[Weight.DECIDES] == expected
    assert by_weight[Weight.RISK]
    assert by_weight[Weight.DEVIATION]


def test_a_bug_on_every_release_is_no_reason_for_another_one() -> None:
    """KB-05 loses records under ordinary faults, on every supported release; KB-16 on two of them."""
    assert is_everywhere(BUGS["KB-05"])
    assert not is_everywhere(BUGS["KB-16"])


def test_the_document_equals_the_data() -> None:
    """docs/decision.md is rendered from the data; run `python -m verification.known_bugs.render`."""
    assert render.DOCUMENT.read_text(encoding="utf-8") == render.render(BUGS.values())


def test_the_document_has_each_bug_once() -> None:
    """With impact, reach, exposure and reason; a control is not in it."""
    text = render.render(BUGS.values())
    for each in BUGS.values():
        rows = [line for line in text.splitlines() if line.startswith(f"| {each.id} ")]
        assert len(rows) == (each.kind is not BugKind.CONTROL)
        exposure = each.exposure
        concerned = (
            f"{', '.join(exposure.libraries) or '–'} | {', '.join(exposure.transactions)} | {exposure.replication}"
        )
        assert all(line.endswith(f"| {each.impact} | {each.reach} | {concerned} | {each.reason} |") for line in rows)
