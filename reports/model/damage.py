"""The damage that a scenario proves, in counts: acknowledged operations, records, and what is held back behind them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPartition:
    """A partition whose readers stand still at quiescence: last stable offset and high watermark."""

    place: str
    last_stable_offset: int
    high_watermark: int

    @property
    def offsets(self) -> int:
        """The offsets that read_committed readers cannot reach."""
        return self.high_watermark - self.last_stable_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Counts over the findings of one scenario, or of several.

    `operations` were acknowledged and hit; `during_fault` of them, of `acknowledged_during_fault`, overlapped a fault.
    `lost` records were acknowledged and are not in the log, `aborted` ones are there, but were aborted after their commit
    was acknowledged. `hidden` ones are committed or open, and no reader receives them; with `hidden_at_least` the hidden
    records of other transactions that are visible in part are not among them. `doubled` are further copies. `torn`
    transactions are visible in part.
    `shown` reached a reader and must not; `readers` are the libraries that alone received all of these. `held` is None
    where the ends of the partitions are unknown. `at_least` is True where the judge kept only a part of the examples.
    """

    operations: int = 0
    during_fault: int = 0
    acknowledged_during_fault: int = 0
    lost: int = 0
    aborted: int = 0
    hidden: int = 0
    hidden_at_least: bool = False
    doubled: int = 0
    shown: int = 0
    readers: tuple[str, ...] = ()
    torn: int = 0
    held: tuple[HeldPartition, ...] | None = None
    at_least: bool = False

    @property
    def any(self) -> bool:
        """Whether anything was hit."""
        return bool(
            self.operations or self.all_lost or self.hidden or self.doubled or self.shown or self.torn or self.held
        )

    @property
    def all_lost(self) -> int:
        """The acknowledged records that no reader will ever receive: a commit that ended as an abort is a loss too."""
        return self.lost + self.aborted
