"""A deadline on the monotonic clock of this process."""

from __future__ import annotations

import time
from dataclasses import dataclass

from wire.errors import DeadlineError


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a wait; made once per task and handed down, so that its parts share one budget."""

    at_s: float
    allowed_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline that lies so many seconds ahead."""
        return cls(time.monotonic() + seconds, seconds)

    def remaining_s(self, what: str, seen: str = "nothing yet") -> float:
        """Seconds left, always positive; raises DeadlineError with the thing waited for and the last state seen."""
        left = self.at_s - time.monotonic()
        if left <= 0:
            raise DeadlineError(f"waited {self.allowed_s:g} s for {what}; seen: {seen}")
        return left

    def at_most(self, seconds: float) -> Deadline:
        """The earlier of this one and one that lies so many seconds ahead: the budget of a single attempt."""
        attempt = Deadline.after(seconds)
        return attempt if attempt.at_s < self.at_s else self

    @property
    def passed(self) -> bool:
        """Whether it lies in the past."""
        return time.monotonic() >= self.at_s
