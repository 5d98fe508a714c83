"""What the walkers of one exploration share besides its store."""

from __future__ import annotations

from threading import Event, RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.explorer.moves import WalkPlan
    from runner.explorer.walk import Recorded, Walk


class EndedError(Exception):
    """The exploration was ended during a walk, of which nothing is kept."""


class SharedState:
    """`lock` guards the store and its page; `following` holds the signatures, and their names, that a walker follows up.

    `left` are walks of such signatures by others, as `Explorer` follows them up: whoever is done looks at them.
    `ended` says that nobody begins a walk, and that what is being walked says nothing.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.ended = Event()
        self.following: set[str] = set()
        self.left: list[tuple[WalkPlan, Walk, Recorded, str]] = []
