"""A schedule: which faults, when, for how long. A value that is checked when it is built."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.clients import SyncPoint
from chaos.errors import FutileFaultError
from chaos.faults.fault import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One fault: it strikes `after_s` seconds after the previous step healed, the first one once clients are steady.

    The proof that it took hold is waited for, at most `confirm_within_s`; from then on it lasts `hold_s` seconds,
    so that clients meet the fault itself and not only the way to it. `while_held` makes every transactional producer
    wait at that point, transaction open, from before the fault strikes until it is confirmed; `leaving` of them end
    after that operation and nobody takes their place, as a job ends after its last commit.
    """

    fault: Fault
    after_s: float = 0.0
    hold_s: float = 5.0
    confirm_within_s: float = 20.0
    while_held: SyncPoint | None = None
    leaving: int = 0

    def __post_init__(self) -> None:
        reason = self.fault.futility()
        if reason is not None:
            raise FutileFaultError(f"{self.fault.describe()} is refused: {reason}")
        if min(self.after_s, self.hold_s) < 0 or self.confirm_within_s <= 0:
            raise FutileFaultError(f"{self.fault.describe()} has a negative time")

    def describe(self) -> str:
        """The step in words."""
        held = "" if self.while_held is None else f", while every producer waits at {self.while_held.value}"
        leaving = f"; {self.leaving} of them leave after it" if self.leaving else ""
        after = f"after {self.after_s:g} s: " if self.after_s else ""
        return f"{after}{self.fault.describe()}{held}{leaving}, for {self.hold_s:g} s once it shows"


Schedule = tuple[Step, ...]


def duration_s(schedule: Schedule) -> float:
    """The least time that a schedule takes."""
    return sum(step.after_s + step.hold_s for step in schedule)
