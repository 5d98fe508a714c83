"""Name what looks wrong in the evidence of a scenario that was not judged.

They are no verdict: a reader needs them to decide whether to judge the evidence now, which needs no cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from reports.model.timeline import Timeline
from reports.model.wording import counted, number
from verification.vocabulary.history import History, Operation, Outcome

#: Partitions named per sign.
NAMED_MAX = 3


def warning_signs(history: History | None, timeline: Timeline | None) -> tuple[str, ...]:
    """The signs, each a phrase; none where there is no history, or where nothing looks wrong."""
    return () if history is None or timeline is None else tuple(_signs(history, timeline))


def _signs(history: History, timeline: Timeline) -> Iterator[str]:
    for stuck in timeline.stuck_lsos[:NAMED_MAX]:
        yield (
            f"the last stable offset of {stuck.place} stood still at {stuck.last_stable_offset}, below the high "
            f"watermark {stuck.high_watermark}"
        )
    last = timeline.lags[-1].records if timeline.lags else 0
    if last and not timeline.stuck_lsos:
        yield f"{counted(last, 'record')} stood above the last stable offset at the last look"
    leaderless = [each.place for each in timeline.curves if any(leader < 0 for leader in each.leaders)]
    if leaderless:
        yield f"no leader was seen for {', '.join(leaderless[:NAMED_MAX])}"
    unknown = sum(each.outcome is Outcome.INFO for each in history.of(Operation))
    if unknown:
        yield f"{number(unknown)} operations have an unknown outcome"
