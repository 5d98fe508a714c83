"""Advice on a known bug: whom it concerns, how to avoid it, what to alert on, and how to repair what it left.

A report that proves a bug must also say what to do about it. Each part has its sources, because an operator acts on it.
What no source says is `not known`, which is a fact too.

Parts of a text in backticks are commands, metrics or log lines, to be copied as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from verification.requirements.toml_table import Table

#: The only point of a part about which no source says anything.
NOT_KNOWN = "not known"
_SOURCE = re.compile(r"KIP-[0-9]+|KAFKA-[0-9]+|librdkafka#[0-9]+|(measured|documentation): \S.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePart:
    """One part of the advice: its points, each of one or more sentences, and where they come from.

    A source is a KIP, a JIRA issue, an issue of librdkafka, `measured: …` for what Onceproof saw, or `documentation: …`
    of Kafka.
    """

    points: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether any source says something."""
        return self.points != (NOT_KNOWN,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The advice on one bug.

    `concerns` is the condition in Kafka's terms: replication, client, protocol, settings. `avoid` names a release,
    setting or client. `alert` names the log line, metric or answer to watch. `repair` says how to end what hangs, and
    what that costs.
    """

    concerns: AdvicePart
    avoid: AdvicePart
    alert: AdvicePart
    repair: AdvicePart


def read_advice(entry: Table) -> Advice:
    """The advice of a catalogue entry. Raises the exception of the table for anything that does not fit."""
    advice = Advice(**{each.name: _part(entry.table(each.name)) for each in fields(Advice)})
    entry.finish()
    return advice


def _part(entry: Table) -> AdvicePart:
    part = AdvicePart(
        points=tuple(" ".join(each.split()) for each in entry.strings("points")), sources=entry.strings("sources")
    )
    entry.finish()
    if not part.points or not all(part.points):
        raise entry.error(f"says nothing; what no source says is {NOT_KNOWN!r}")
    foreign = [each for each in part.sources if not _SOURCE.fullmatch(each)]
    if foreign:
        raise entry.error(f"source {foreign} is of no known kind (KIP-n, KAFKA-n, measured, documentation)")
    if part.known != bool(part.sources):
        raise entry.error("has sources but nothing is known" if part.sources else "has no source")
    uneven = [each for each in part.points if each.count("`") % 2]
    if uneven:
        raise entry.error(f"{uneven[0]!r} opens a backtick that is not closed")
    return part
