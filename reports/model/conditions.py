"""The conditions of a proof: the replication of the topics, elections, and who was taken away and when.

A violation on a topic with one replica says less to a user with three. So each proof says on what it was made, and what
the evidence does not have is `not recorded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NOT_RECORDED = "not recorded"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Replication:
    """Replication factor and min.insync.replicas of some topics; None where the setting is not known."""

    factor: int
    min_in_sync: int | None

    def __str__(self) -> str:
        return f"replication factor {self.factor}, min ISR {NOT_RECORDED if self.min_in_sync is None else self.min_in_sync}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Brokers that were taken away: `broker 2, the leader,`, `was killed`, `before the commit`, and how long that took.

    `when` and `span` may be empty.
    """

    who: str
    how: str
    when: str = ""
    span: str = ""

    @property
    def brief(self) -> str:
        """One clause: `broker 2, the leader, was killed before the commit`."""
        return " ".join(each for each in (self.who, self.how, self.when) if each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of one scenario or case.

    `topics` has the topics of each replication, the fewest replicas first. `unclean` says whether a replica that is not in
    sync may lead. `topics`, `unclean` and `stopped` are None where the evidence does not say it. `settings` are those of the
    brokers that the proof changes, as `name=value`; with Kafka's defaults it may not show.
    """

    topics: tuple[tuple[Replication, tuple[str, ...]], ...] | None
    unclean: bool | None
    stopped: tuple[Stopped, ...] | None
    settings: tuple[str, ...] = ()

    def among(self, topics: Sequence[str]) -> tuple[Replication, ...]:
        """The replications of these topics, or of all if none of them is known."""
        known = self.topics or ()
        return tuple(each for each, names in known if set(names) & set(topics)) or tuple(each for each, _ in known)

    def __str__(self) -> str:
        parts = [self._replication(), self._elections()]
        if self.stopped is None:
            parts.append(f"outages {NOT_RECORDED}")
        else:
            parts += [f"{each.brief}{f', {each.span}' if each.span else ''}" for each in self.stopped]
        if self.settings:
            parts.append(f"with {', '.join(self.settings)}")
        return "; ".join(each for each in parts if each)

    def _replication(self) -> str:
        if self.topics is None:
            return f"replication {NOT_RECORDED}"
        if len(self.topics) == 1:
            return str(self.topics[0][0])
        return "; ".join(f"{', '.join(names)}: {each}" for each, names in self.topics)

    def _elections(self) -> str:
        if not self.topics:
            return ""
        if self.unclean is None:
            return f"unclean elections {NOT_RECORDED}"
        return f"unclean elections {'on' if self.unclean else 'off'}"
