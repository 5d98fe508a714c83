"""The figures of a stage as cells of a table, the same on the page, in the summary and on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reports.model.upgrade import ErrorCount, StageFigures, UpgradeReport, UpgradeStage
from reports.model.wording import number, seconds, verdict_sign, verdict_word

#: The columns of the whole table.
COLUMNS = (
    "Commits per second",
    "Longest stop of one producer / of all",
    "Commit p50 / p99",
    "Errors",
    "Fenced",
    "Aborted on purpose / not / unknown",
    "Replaced",
)


def cells(figures: StageFigures | None) -> tuple[str, ...]:
    """A text for each of `COLUMNS`; dashes where there are no figures."""
    if figures is None:
        return ("–",) * len(COLUMNS)
    return (
        f"{figures.committed_per_s:.1f}",
        f"{seconds(figures.gap_s)} / {seconds(figures.gap_of_all_s)}",
        "–" if figures.latency.p50_ms is None else f"{figures.latency.p50_ms} / {figures.latency.p99_ms} ms",
        _errors(figures.errors),
        number(figures.fenced),
        " / ".join(map(number, (figures.aborted_on_purpose, figures.aborted, figures.unknown))),
        number(figures.replaced),
    )


def _errors(errors: Iterable[ErrorCount]) -> str:
    return ", ".join(f"{each.name} × {number(each.count)}" for each in errors) or "–"


#: The columns of the short table, which has one row for all clients of a stage.
SHORT_COLUMNS = ("stage", "verdict", "commits per second", "longest stop", "p99 of a commit", "errors", "replaced")


def short_rows(upgrade: UpgradeReport) -> Iterator[tuple[str, ...]]:
    """A row for each stage: its number and name, its verdict, and the worst figures of all clients together."""
    for place, stage in enumerate(upgrade.stages, start=1):
        verdict = f"{verdict_sign(stage.verdict)} {verdict_word(stage.verdict)}"
        yield f"{place} {stage.name}", verdict, *_with_baseline(upgrade, stage)


def _with_baseline(upgrade: UpgradeReport, stage: UpgradeStage) -> tuple[str, ...]:
    """The figures, each with that of the baseline in brackets if there is one."""
    own = _short([each.figures for each in stage.clients])
    if not upgrade.baseline:
        return own
    others = _short([each.baseline for each in stage.clients if each.baseline is not None])
    return tuple(f"{mine} ({other})" for mine, other in zip(own, others, strict=True))


def _short(figures: list[StageFigures]) -> tuple[str, ...]:
    if not figures:
        return ("–",) * (len(SHORT_COLUMNS) - 2)
    p99s = [each.latency.p99_ms for each in figures if each.latency.p99_ms is not None]
    return (
        f"{sum(each.committed_per_s for each in figures):.1f}",
        seconds(max((each.gap_s for each in figures if each.gap_s is not None), default=None)),
        f"{max(p99s):.0f} ms" if p99s else "–",
        number(sum(one.count for each in figures for one in each.errors)),
        number(sum(each.replaced for each in figures)),
    )
