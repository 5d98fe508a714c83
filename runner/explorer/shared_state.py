"""State that the walkers of one exploration share, besides its store."""

from __future__ import annotations

from threading import Event, RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.explorer.moves import WalkPlan
    from runner.explorer.walk import Recorded, Walk


class EndedError(Exception):
    """The exploration has ended during a walk, and nothing of the walk is kept."""


class SharedState:
    """`lock` guards the store and its page; `following` are the signatures and names that walkers follow up now.

    `postponed` are walks of other walkers with such signatures: the walker that is done follows them up next.
    `ended` says that no walker begins a walk, and that no walk under way is conclusive.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.ended = Event()
        self.following: set[str] = set()
        self.postponed: list[tuple[WalkPlan, Walk, Recorded, str]] = []
