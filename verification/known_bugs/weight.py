"""The weight of a violation in the decision on a release: it decides, or it is a standing risk or a deviation.

A gate that is red on every release is switched off, so not every proven violation is a reason against this release. The
default rule asks two questions about a violation that has the name of a known bug. What does it put at risk, and can a
system get there by ordinary crashes, network faults and correct clients? A bug that every supported release has is no
reason for another release. It is shown, with every other violation that does not decide. A violation without a name
always decides: nothing is known about it. With `--strict` every violation decides. The verdicts stay the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from verification.known_bugs.catalogue import KnownBug, Reach, affects
from verification.requirements.catalogue import Protects
from verification.vocabulary import releases


class Weight(StrEnum):
    """The weight of a violation, the heaviest first; the values are words of the report."""

    DECIDES = "decides"
    RISK = "standing risk"
    DEVIATION = "deviation"


def weigh(bug: KnownBug | None, *, strict: bool = False) -> Weight:
    """The weight of one violation; `bug` is the known bug that names it, None where none does."""
    if strict or bug is None:
        return Weight.DECIDES
    if bug.impact is Protects.CONTRACT:
        return Weight.DEVIATION
    if bug.reach is Reach.ORDINARY and not is_everywhere(bug):
        return Weight.DECIDES
    return Weight.RISK


def heaviest(weights: Iterable[Weight]) -> Weight:
    """The heaviest of several weights; of none it decides, because a violation that names nothing is unknown."""
    order = tuple(Weight)
    return min(weights, key=order.index, default=Weight.DECIDES)


def is_everywhere(bug: KnownBug) -> bool:
    """Whether every supported release has the bug."""
    return all(affects(bug, release) for release in releases.SUPPORTED)
