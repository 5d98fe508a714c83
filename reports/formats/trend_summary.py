"""`trend.md`: the trend for the page of a CI step, always below 50 kB: violations, flaky cases, the last runs."""

from __future__ import annotations

from collections.abc import Iterator

from reports.formats.markdown import NAME_MAX, REASON_MAX, bounded, literal, strong
from reports.model.clock import moment
from reports.model.trend import Trend, ViolationTrend
from reports.model.wording import DECISION_SIGN, seconds

#: The last runs; trend.html has more and trend.json all of them.
RUNS_SHOWN = 14
VIOLATIONS_SHOWN = 40
FLAKY_SHOWN = 20


def render(trend: Trend) -> str:
    """The whole file."""
    return bounded(_lines(trend), page="trend.json")


def _lines(trend: Trend) -> Iterator[str]:
    last = trend.last
    yield f"## Trend over {len(trend.runs)} runs: {DECISION_SIGN[last.decision]} {last.decision} in the last one"
    yield from ("", f"Last run: {literal(last.title, REASON_MAX)}. {literal(trend.sentence, REASON_MAX)}")
    yield from _violations(trend)
    yield from _flaky(trend)
    yield from _runs(trend)
    if trend.unread:
        yield from ("", "### Not in the trend", "")
        for each in trend.unread:
            yield f"- {literal(each.source, REASON_MAX)} {literal(each.why, 300)}"


def _violations(trend: Trend) -> Iterator[str]:
    if not trend.violations:
        return
    yield from ("", "### Violations", "", "| state | violation | release, profile | first bad | last bad | bad runs |")
    yield "|---|---|---|---|---|---|"
    for each in trend.violations[:VIOLATIONS_SHOWN]:
        accepted = ", accepted" if each.accepted else ""
        where = literal(f"{each.release}, {each.profile}", NAME_MAX)
        bad = f"{each.bad} of {each.decided}"
        yield f"| {each.state}{accepted} | {_name(each)} | {where} | {each.first_bad} | {each.last_bad} | {bad} |"
    yield from _rest(len(trend.violations), VIOLATIONS_SHOWN)


def _name(each: ViolationTrend) -> str:
    bug = f" ({literal(each.known_bug, NAME_MAX)})" if each.known_bug else ""
    return f"{strong(each.found or 'violation', NAME_MAX)}{bug} in {literal(each.case, NAME_MAX)}"


def _flaky(trend: Trend) -> Iterator[str]:
    if not trend.flaky:
        return
    yield from ("", "### Flaky cases", "", "| rate | case | release, client, seed | results |", "|---|---|---|---|")
    for each in trend.flaky[:FLAKY_SHOWN]:
        seed = "" if each.seed is None else f"seed {each.seed}"
        equal = ", ".join(one for one in (each.release, each.client, seed) if one)
        results = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in each.results)
        yield f"| {each.rate:.0%} | {literal(each.case, NAME_MAX)} | {literal(equal, REASON_MAX)} | {results} |"
    yield from _rest(len(trend.flaky), FLAKY_SHOWN)


def _runs(trend: Trend) -> Iterator[str]:
    yield from (
        "",
        "### Last runs",
        "",
        "| run | started | subject | profile, seed | decision | standing risks | deviations | time | tried | tested |",
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for each in reversed(trend.runs[-RUNS_SHOWN:]):
        subject = literal(f"{each.release} ({each.runtime})", NAME_MAX)
        seed = "" if each.seed is None else f", seed {each.seed}"
        row = (
            str(each.number),
            literal(moment(each.started) or "unknown", NAME_MAX),
            subject,
            literal(f"{each.profile}{seed}", NAME_MAX),
            f"{DECISION_SIGN[each.decision]} {each.decision}",
            *("–" if count is None else str(count) for count in (each.standing_risks, each.deviations)),
            seconds(each.duration_s),
            f"{each.tried} of {each.planned}",
            str(each.tested),
        )
        yield f"| {' | '.join(row)} |"


def _rest(count: int, shown: int) -> Iterator[str]:
    if count > shown:
        yield from ("", f"and {count - shown} more in trend.json")
