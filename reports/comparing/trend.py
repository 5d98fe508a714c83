"""Make a trend from the results of many runs: order, requirements, violations, flaky cases.

Controls are subjects that are known to be bad, so their findings are no violations here; a control that is detected in
one run and missed in another one is flaky. Every result is looked at once: the time grows with the number of results.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from reports.comparing.baseline import stem_and_seed
from reports.comparing.run_outcomes import ResultsCase, ResultsScenario, RunOutcomes
from reports.model.clock import instant
from reports.model.conditions import NOT_RECORDED
from reports.model.trend import (
    FlakyCase,
    RequirementTrend,
    Trend,
    TrendRun,
    UnreadRun,
    ViolationState,
    ViolationTrend,
)
from reports.model.wording import UNTESTED
from verification.vocabulary.verdict import Verdict

#: Before every run with a start time.
_UNKNOWN = datetime.min.replace(tzinfo=UTC)
_TRIED = frozenset({"PASS", "FAIL", "INCONCLUSIVE"})
_DECIDED = frozenset({"PASS", "FAIL"})
_ORDER = {state: place for place, state in enumerate(ViolationState)}
_SEED = re.compile(r"-?[0-9]{1,18}")
#: Release and profile: only such runs are compared.
Stream = tuple[str, str]
#: Anomaly or requirements, known bug, case without its seed.
ViolationName = tuple[str, str, str]
#: Case, release, runtime, client, seed.
_Repeated = tuple[str, str, str, str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRun:
    """One file of results: where it was found, the reference to its page or nothing, its content."""

    source: str
    report: str
    outcomes: RunOutcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The violations of one run with their acceptance, and its cases that decided."""

    violations: Mapping[ViolationName, bool]
    decided: frozenset[str]


def trend(found: Sequence[ReadRun], unread: Sequence[UnreadRun]) -> Trend:
    """The trend of at least one run; the order in which they were found has no influence."""
    ordered = sorted(found, key=lambda each: (instant(each.outcomes.run.started) or _UNKNOWN, each.source))
    runs = tuple(_run(number, each) for number, each in enumerate(ordered, start=1))
    outcomes = [each.outcomes for each in ordered]
    return Trend(
        runs=runs,
        requirements=tuple(_requirements(outcomes)),
        violations=tuple(sorted(_violations(runs, outcomes), key=_by_state)),
        flaky=tuple(sorted(_flaky(outcomes), key=_by_rate)),
        unread=tuple(unread),
    )


def _run(number: int, given: ReadRun) -> TrendRun:
    outcomes = given.outcomes
    verdicts = [each.verdict for each in outcomes.scenarios] + [each.verdict for each in outcomes.cases]
    return TrendRun(
        number=number,
        source=given.source,
        report=given.report,
        started=outcomes.run.started,
        release=outcomes.subject.release,
        runtime=outcomes.subject.runtime,
        clients=tuple(_client(outcomes, each.name) for each in outcomes.subject.clients),
        seed=outcomes.run.seed,
        profile=outcomes.run.profile,
        decision=outcomes.decision,
        partial=bool(outcomes.partial),
        duration_s=outcomes.run.duration_s,
        tried=sum(each in _TRIED for each in verdicts),
        planned=len(verdicts),
        tested=sum(each.verdict != UNTESTED for each in outcomes.requirements),
        standing_risks=_count(outcomes.standing_risks),
        deviations=_count(outcomes.deviations),
    )


def _count(bugs: Sequence[str] | None) -> int | None:
    """The number of known bugs; None where the results do not say it."""
    return None if bugs is None else len(bugs)


def _client(outcomes: RunOutcomes, name: str) -> str:
    """The library of a client with its version, or else its name."""
    libraries = (each.library for each in outcomes.subject.clients if each.name == name)
    library = next(libraries, "")
    return library if library not in ("", NOT_RECORDED) else name


def _requirements(outcomes: Sequence[RunOutcomes]) -> Iterator[RequirementTrend]:
    """The requirements that some run tested, in the order of the newest catalogue; others come after it."""
    ids = dict.fromkeys(row.id for each in reversed(outcomes) for row in each.requirements)
    verdicts = [
        {row.id: Verdict[row.verdict] for row in each.requirements if row.verdict != UNTESTED} for each in outcomes
    ]
    for id_ in ids:
        row = tuple(each.get(id_) for each in verdicts)
        if any(each is not None for each in row):
            yield RequirementTrend(id=id_, verdicts=row)


def _violations(runs: Sequence[TrendRun], outcomes: Sequence[RunOutcomes]) -> Iterator[ViolationTrend]:
    last: dict[Stream, int] = {}
    bad: dict[tuple[Stream, ViolationName], dict[int, bool]] = defaultdict(dict)
    decided: dict[tuple[Stream, str], list[int]] = defaultdict(list)
    for run, each in zip(runs, outcomes, strict=True):
        stream, seen = (run.release, run.profile), _seen(each)
        last[stream] = run.number
        for name, accepted in seen.violations.items():
            bad[stream, name][run.number] = accepted
        for case in seen.decided:
            decided[stream, case].append(run.number)
    for (stream, name), numbers in bad.items():
        compared = sorted({*numbers, *decided[stream, name[2]]})
        yield _violation(stream, name, numbers, compared, last[stream])


def _violation(
    stream: Stream, name: ViolationName, bad: Mapping[int, bool], compared: Sequence[int], last: int
) -> ViolationTrend:
    found, known_bug, case = name
    last_bad = max(bad)
    return ViolationTrend(
        found=found,
        known_bug=known_bug,
        case=case,
        release=stream[0],
        profile=stream[1],
        state=_state(bad, compared, last),
        first_bad=min(bad),
        last_bad=last_bad,
        gone_since=next((number for number in compared if number > last_bad), None),
        bad=len(bad),
        decided=len(compared),
        accepted=bad[last_bad],
    )


def _state(bad: Mapping[int, bool], compared: Sequence[int], last: int) -> ViolationState:
    """The state of a violation; `compared` are the runs in which its case decided, `last` is the newest run."""
    if compared[-1] not in bad:
        return ViolationState.GONE
    if compared[-1] != last:
        return ViolationState.NOT_DECIDED_SINCE
    if len(compared) == 1:
        return ViolationState.NO_EARLIER_RUN
    return ViolationState.STILL_THERE if compared[-2] in bad else ViolationState.NEW


def _seen(outcomes: RunOutcomes) -> _Seen:
    violations: dict[ViolationName, bool] = {}
    verdicts: dict[str, set[str]] = defaultdict(set)
    for scenario in outcomes.scenarios:
        case = _stem_of(scenario)[0]
        verdicts[case].add(scenario.verdict)
        for each in scenario.findings:
            name = (each.anomaly, each.known_bug or "", case)
            # With several seeds, one finding that is not accepted counts.
            violations[name] = each.accepted and violations.get(name, True)
    for script in outcomes.cases:
        verdicts[script.id].add(script.verdict)
        if script.verdict == "FAIL":
            violations[_violated(script)] = script.accepted
    applied = {case: each - {"NOT_APPLICABLE"} for case, each in verdicts.items()}
    return _Seen(
        violations=violations, decided=frozenset(case for case, each in applied.items() if each and each <= _DECIDED)
    )


def _violated(script: ResultsCase) -> ViolationName:
    requirements = ", ".join(each.id for each in script.requirements if each.verdict == "FAIL")
    return requirements, ", ".join(each.id for each in script.known if each.named), script.id


def _stem_of(scenario: ResultsScenario) -> tuple[str, int | None]:
    """The id of a scenario without its seed, and the seed."""
    at = f"@{scenario.part}" if scenario.part else ""
    stem, seed = stem_and_seed(scenario.id.removesuffix(at), scenario.seed, scenario.client)
    return stem + at, int(seed) if _SEED.fullmatch(seed) else None


def _flaky(outcomes: Sequence[RunOutcomes]) -> Iterator[FlakyCase]:
    results: dict[_Repeated, Counter[str]] = defaultdict(Counter)
    for key, word in chain.from_iterable(_repeated(each) for each in outcomes):
        results[key][word] += 1
    for (case, release, runtime, client, seed), counted in results.items():
        if len(counted) > 1:
            yield FlakyCase(
                case=case,
                release=release,
                runtime=runtime,
                client=client,
                seed=seed,
                results=tuple(sorted(counted.items(), key=lambda each: (-each[1], each[0]))),
            )


def _repeated(outcomes: RunOutcomes) -> Iterator[tuple[_Repeated, str]]:
    """Each result of a run, with everything that must be equal in another run to expect the same result."""
    release, runtime = outcomes.subject.release, outcomes.subject.runtime
    libraries = {each.name: _client(outcomes, each.name) for each in outcomes.subject.clients}
    for scenario in (*outcomes.scenarios, *outcomes.controls):
        case, seed = _stem_of(scenario)
        word = scenario.verdict if scenario.convicted is None else "DETECTED" if scenario.convicted else scenario.result
        yield (case, release, runtime, libraries.get(scenario.client, scenario.client), seed), word
    for script in outcomes.cases:
        yield (script.id, release, runtime, "", outcomes.run.seed), script.verdict


def _by_state(each: ViolationTrend) -> tuple[int, int, str, str, str, str, str]:
    return (_ORDER[each.state], -each.last_bad, each.case, each.found, each.known_bug, each.release, each.profile)


def _by_rate(each: FlakyCase) -> tuple[float, str, str, str, str, str]:
    return (-each.rate, each.case, each.release, each.runtime, each.client, str(each.seed))
