"""A ratio of two things that one run measured by turns. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median


class Unit(StrEnum):
    """The unit of both sides of a ratio."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    RECORDS_PER_S = "records/s"
    KILOBYTES = "kB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """`subject` divided by `against`, for every pair of measurements (subject, against), each above zero.

    In times and kilobytes less is better, in records per second more. Raises ValueError without pairs, or with a pair
    that is not above zero: an average of nothing must not look like a figure.
    """

    subject: str
    against: str
    unit: Unit
    pairs: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ValueError(f"nothing was measured of {self.subject}")
        if any(value <= 0 for pair in self.pairs for value in pair):
            raise ValueError(f"{self.subject} : {self.against} was measured as {self.pairs}; time and rate are above 0")

    @property
    def values(self) -> tuple[float, ...]:
        """The quotient of each pair."""
        return tuple(subject / against for subject, against in self.pairs)

    @property
    def median(self) -> float:
        """The middle quotient. One disturbed pair does not move it."""
        return median(self.values)

    @property
    def least(self) -> float:
        """The smallest quotient."""
        return min(self.values)

    @property
    def most(self) -> float:
        """The greatest quotient."""
        return max(self.values)

    @property
    def seen(self) -> tuple[float, float]:
        """The median of each side, in `unit`."""
        return median(subject for subject, _ in self.pairs), median(against for _, against in self.pairs)
