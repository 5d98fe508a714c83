"""The schedule of a scenario: which faults, when, for how long. A value that is checked when it is built."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from chaos.clients import PRODUCER, SyncPoint
from chaos.errors import FutileFaultError
from chaos.faults.fault import Fault, HeldAt, HoldsClients


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One fault: it strikes `after_s` seconds after the previous step healed, the first one once clients are steady.

    The nemesis waits at most `confirm_within_s` for the proof that it took hold. From then on the fault lasts `hold_s`
    seconds, so that clients meet it in full force. `while_held` makes every transactional producer wait at that point,
    transaction open, from before the fault strikes until it is confirmed. With `holding` only so many of them wait, for a
    bounded time, and the others go on; one that does not get there in time is passed over. `leaving` of them end after that
    operation without a successor, as a job ends after its last commit. `let_go_first` releases them one by one
    before the fault strikes, with slow links between the brokers: it strikes when the last one has requested the end of its
    transaction. `once_whole` first waits until every broker is back and every replica in sync, as in a rolling restart.
    Consecutive steps with the same `stage` form one named phase of the history.
    """

    fault: Fault
    after_s: float = 0.0
    hold_s: float = 5.0
    confirm_within_s: float = 20.0
    while_held: SyncPoint | None = None
    holding: int = 0
    leaving: int = 0
    let_go_first: bool = False
    once_whole: bool = False
    stage: str = ""

    def __post_init__(self) -> None:
        reason = self.fault.futility()
        if reason is not None:
            raise FutileFaultError(f"{self.fault.describe()} is refused: {reason}")
        if min(self.after_s, self.hold_s) < 0 or self.confirm_within_s <= 0:
            raise FutileFaultError(f"{self.fault.describe()} has a negative time")
        if self.let_go_first and self.while_held is not SyncPoint.BEFORE_COMMIT:
            raise FutileFaultError(f"{self.fault.describe()} releases producers that are not held before a commit")

    @property
    def holds(self) -> tuple[HeldAt, ...]:
        """Roles and sync points at which clients must be able to wait."""
        own = () if self.while_held is None else ((PRODUCER, self.while_held),)
        return (*own, *(self.fault.holds if isinstance(self.fault, HoldsClients) else ()))

    def describe(self) -> str:
        """The step in words."""
        who = f"{self.holding} of the producers" if self.holding else "every producer"
        slowly = "with slow links between the brokers, as every producer goes on from"
        point = "" if self.while_held is None else self.while_held.value.replace("-", " ")
        when = f"{slowly} {point}" if self.let_go_first else f"while {who} waits {point}"
        held = f", {when}" if point else ""
        leaving = f"; {self.leaving} of them stop after that commit" if self.leaving else ""
        after = f"after {self.after_s:g} s: " if self.after_s else ""
        after = f"once every replica is in sync{', ' + after if after else ': '}" if self.once_whole else after
        return f"{after}{self.fault.describe()}{held}{leaving}, for {self.hold_s:g} s"


Schedule = tuple[Step, ...]


def stages(schedule: Schedule) -> tuple[tuple[str, Schedule], ...]:
    """The schedule in named parts: consecutive steps with the same stage, in order."""
    return tuple((stage, tuple(steps)) for stage, steps in groupby(schedule, key=attrgetter("stage")))


def duration_s(schedule: Schedule) -> float:
    """The least time that a schedule takes."""
    return sum(step.after_s + step.hold_s for step in schedule)
