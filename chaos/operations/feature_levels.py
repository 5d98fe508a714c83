"""Raises and lowers finalized feature levels (KIP-584) of a running cluster.

The request is UpdateFeatures to the active controller. Version 2 (4.0 and later) answers with one code for all features,
versions 0 and 1 with a code per feature. A broker of 4.x cannot forward version 2 to a controller of 3.9 and closes the
connection, so nothing is finalized before every node runs the new release.

A controller that was just elected refuses a level of `kraft.version` because it does not know yet which levels the other
voters support. They report it once in each fetch timeout (UpdateRaftVoter), so an operator asks again.

The proof is the level in the answer of every broker (ApiVersions). Level 0 takes a feature from that answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from chaos.arena import Arena, admin_of
from chaos.errors import InjectionError
from chaos.faults.fault import Injection
from wire.client import Client
from wire.codes import code_name
from wire.errors import WireError

#: A level is finalized in 35 to 170 ms; an election in between takes seconds.
UPDATE_WITHIN_MS = 10_000
#: What a controller says when a voter has not reported yet, and how long that may last: twice the fetch timeout (2 s) of a
#: voter that is just back, several times on a busy machine. Seen 1.3 s after the last of three restarts.
VOTERS_UNKNOWN, VOTERS_KNOWN_WITHIN_S = "not all of the voters support it", 15.0
_ASK_EVERY_S = 0.5


class LevelChange(IntEnum):
    """The UpgradeType of UpdateFeatures: raise a level, or lower it by one of two promises."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @property
    def words(self) -> str:
        """The change as people call it."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class SetFeatureLevel:
    """Finalize a level of a feature."""

    feature: str
    level: int
    change: LevelChange = LevelChange.UPGRADE

    def describe(self) -> str:
        """The operation in words."""
        how = "" if self.change is LevelChange.UPGRADE else f" ({self.change.words})"
        return f"{self.feature} set to {self.level}{how}"

    def futility(self) -> str | None:
        """A level always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Ask the controller. Raises InjectionError when it refuses."""
        admin = admin_of(arena)
        deadline = time.monotonic() + VOTERS_KNOWN_WITHIN_S
        while refusal := update(admin, self.feature, self.level, self.change):
            if VOTERS_UNKNOWN not in refusal or time.monotonic() > deadline:
                break
            time.sleep(_ASK_EVERY_S)
        if refusal is not None:
            raise InjectionError(f"{self.describe()} was refused: {refusal}")
        return Injection(
            target=f"{self.feature} {self.level}",
            confirm=lambda: self._everywhere(arena, admin),
            heal=lambda: None,
            levels={self.feature: self.level},
            lasts=False,
        )

    def _everywhere(self, arena: Arena, admin: Client) -> str | None:
        for broker in arena.cluster.brokers:
            if finalized(admin, broker).get(self.feature, 0) != self.level:
                return None
        return f"every broker answers {self.feature} {self.level}"


def finalized(admin: Client, broker: int) -> Mapping[str, int]:
    """The finalized levels in a fresh answer of a broker; empty when it does not answer."""
    try:
        return admin.features(broker).finalized
    except WireError:
        return {}


def update(admin: Client, feature: str, level: int, change: LevelChange, *, validate_only: bool = False) -> str | None:
    """Ask for a level; returns the refusal (code and message), None when it was accepted.

    Raises InjectionError when there is no answer.
    """
    update_of = {"Feature": feature, "MaxVersionLevel": level, "UpgradeType": int(change)}
    body = {"TimeoutMs": UPDATE_WITHIN_MS, "FeatureUpdates": [update_of], "ValidateOnly": validate_only}
    # A level that is set twice is set: a connection that a restarted broker has closed may be used once more.
    try:
        answer = admin.until("UpdateFeatures", lambda attempt: admin.call("UpdateFeatures", body, deadline=attempt))
    except WireError as error:
        raise InjectionError(f"{feature} {level}: no answer to UpdateFeatures: {error}") from error
    for each in (answer, *answer.get("Results", ())):
        if each["ErrorCode"]:
            return f"{code_name(each['ErrorCode'])}: {each['ErrorMessage']}"
    return None
