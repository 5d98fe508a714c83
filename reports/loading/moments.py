"""The attack on a scenario as a short timeline.

It has what struck, when it took effect, what was acknowledged meanwhile, when it was healed, and when commits went on.
The description of a fault is written for repeating it, and can be a long sentence. Here its first clause is enough,
because the times say the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reports.loading.examples import Context
from reports.loading.timeline_builder import NS_PER_S
from reports.model.report import FaultRow
from reports.model.timeline import Timeline
from reports.model.wording import counted, seconds
from verification.vocabulary.history import Outcome
from verification.vocabulary.verdict import Finding

Moments = tuple[tuple[float, str], ...]


def moments(
    faults: Iterable[FaultRow], findings: Iterable[Finding], known: Context, timeline: Timeline | None
) -> Moments:
    """The moments in the order of time, in seconds from the start; none without a fault."""
    struck = tuple(faults)
    if not struck:
        return ()
    found = [*_struck(struck), *_acknowledged(findings, known), *_recovered(struck, timeline)]
    return tuple(sorted(found, key=lambda each: each[0]))


def clause_of(description: str) -> str:
    """The first clause of a fault's description: what happens, without when and for how long."""
    return description.rpartition(": ")[2].partition(", ")[0]


def _struck(faults: Iterable[FaultRow]) -> Iterator[tuple[float, str]]:
    for each in faults:
        yield (
            each.began_s,
            f"step {each.step}: {clause_of(each.description or each.fault)}{f' ({each.target})' if each.target else ''}",
        )
        if each.confirmed_s is not None:
            yield each.confirmed_s, f"step {each.step} took effect: {each.proof or 'no text recorded'}"
        if each.healed_s is not None:
            yield each.healed_s, f"step {each.step} was healed"


def _acknowledged(findings: Iterable[Finding], known: Context) -> Iterator[tuple[float, str]]:
    """The operations that were hit, when the first of them was acknowledged."""
    hit = {(each.process, each.operation) for finding in findings for each in finding.examples}
    ends = sorted(
        each.completed_ns
        for key, each in known.operations.items()
        if key in hit and each.outcome is Outcome.OK and each.completed_ns is not None
    )
    if ends:
        first, last = ((each - known.origin_ns) / NS_PER_S for each in (ends[0], ends[-1]))
        until = f", the last at {seconds(last)}" if len(ends) > 1 else ""
        yield first, f"{counted(len(ends), 'operation')} of the findings acknowledged to the client{until}"


def _recovered(faults: Iterable[FaultRow], timeline: Timeline | None) -> Iterator[tuple[float, str]]:
    healed = {each.step: each.healed_s for each in faults}
    for each in timeline.unavailability if timeline else ():
        at = healed.get(each.step)
        if at is not None and each.recovered_s is not None:
            yield at + each.recovered_s, f"first commit after step {each.step} was healed"
