"""Build the upgrade of a scenario from its experiment, its history and its findings.

A stage is a phase that steps of the schedule name. The workload runs already before the first stage, and after the last
one: these times are the stages `before` and `after`, with which the others are compared.

A stage fails when an example of a finding is in it. Else it is undecided when a step was not proven, when clients ended
fewer transactions in it than the judge asks for, when the scenario was not judged, or when a violation is not among the
examples: it may be in any stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import TypeVar

from reports.loading import stage_figures
from reports.loading.moments import clause_of
from reports.loading.process_lanes import Clock
from reports.loading.scenario_files import ScenarioFiles
from reports.loading.stage_figures import StageSpan
from reports.loading.timeline_builder import clock_from, origin_ns
from reports.model.findings import Example, FindingReport
from reports.model.upgrade import (
    FeatureTrack,
    LevelSpan,
    NodeBand,
    ReleaseSpan,
    StageClient,
    StageFigures,
    StageStep,
    UpgradeReport,
    UpgradeStage,
)
from verification.vocabulary.experiment import FEATURE
from verification.vocabulary.history import FaultRecord, History, Operation, Phase
from verification.vocabulary.verdict import ScenarioVerdict, Verdict

#: Phases of every scenario (`runner.scenarios.phases`): clients start, and the workload ends.
STARTING, LAST = "start the workload", "after-window"
BEFORE, AFTER = "before", "after"
#: The floor of the judge for each stage (`verification.coverage.coverage`).
EACH_STAGE = "transactions_each_stage"
Value = TypeVar("Value")


def upgrade_of(files: ScenarioFiles, findings: Sequence[FindingReport]) -> UpgradeReport | None:
    """The upgrade of a scenario, None where no step has a stage. Controls of this suite are shown like other faults."""
    experiment, history, judged = files.experiment, files.history, files.judged
    if experiment is None or history is None or experiment.is_control:
        return None
    if not experiment.nodes and not any(each.stage for each in history.of(FaultRecord)):
        return None
    clock = clock_from(origin_ns(history))
    faults = sorted(history.of(FaultRecord), key=lambda each: (each.began_ns, each.step))
    named = _stages(history, {each.stage for each in faults if each.stage})
    end_ns = named[-1][1].ended_ns if named else _last_ns(history)
    # Nodes that the cluster did not have at first.
    added = dict.fromkeys((node for each in faults for node in each.releases if experiment.nodes), "")
    violations = [_struck_in(span, findings, clock) for _, span in named]
    unplaced = sum(each.count for each in findings) - sum(count for each in violations for _, count in each)
    costs = stage_figures.figures(history, [span for _, span in named], clock)
    return UpgradeReport(
        source=", ".join(dict.fromkeys(experiment.nodes.values())) or experiment.release,
        target=experiment.release,
        nodes=tuple(
            _band(node, first, faults, clock, end_ns) for node, first in sorted({**added, **experiment.nodes}.items())
        ),
        features=tuple(_features(experiment.versions, faults, clock, end_ns)),
        stages=tuple(
            _stage(
                name, span, faults, cost, found, clock, needed=None if judged is None or unplaced else _floor(judged)
            )
            for (name, span), cost, found in zip(named, costs, violations, strict=True)
        ),
        operations=frozenset(each.step for each in faults if each.releases or each.levels),
        unplaced=unplaced,
    )


def _stages(history: History, names: Set[str]) -> tuple[tuple[str, StageSpan], ...]:
    """The stages without a pause between them; none when the history ends before the first one."""
    phases = sorted(history.of(Phase), key=lambda each: each.began_ns)
    staged = [each for each in phases if each.name in names]
    if not staged:
        return ()
    starts = {each.began_ns: each.name for each in staged}
    began_ns = next((each.ended_ns for each in phases if each.name == STARTING), staged[0].began_ns)
    ended_ns = next((each.ended_ns for each in phases if each.name == LAST), _last_ns(history))
    edges = [(began_ns, BEFORE), *starts.items(), (staged[-1].ended_ns, AFTER), (ended_ns, "")]
    return tuple(
        (name, StageSpan(began_ns=began, ended_ns=ended))
        for (began, name), (ended, _) in pairwise(edges)
        if ended > began
    )


def _last_ns(history: History) -> int:
    """The last sign of a client."""
    signs = (each.completed_ns or each.decided_ns or each.invoked_ns for each in history.of(Operation))
    return max(signs, default=history.anchor_ns)


def _band(node: str, release: str, faults: Iterable[FaultRecord], clock: Clock, end_ns: int) -> NodeBand:
    """The releases of a node, which is down from the start of a step until that is proven."""
    edges = [(0, release)]
    for each in faults:
        if node in each.releases:
            edges.append((each.struck_ns or each.began_ns, ""))
            if each.confirmed_ns is not None:
                edges.append((each.confirmed_ns, each.releases[node]))
    spans = _spans(edges, end_ns)
    return NodeBand(
        node=node,
        spans=tuple(ReleaseSpan(release=text, began_s=_at(a, clock), ended_s=clock(b)) for text, a, b in spans),
    )


def _features(
    versions: Mapping[str, str], faults: Sequence[FaultRecord], clock: Clock, end_ns: int
) -> Iterator[FeatureTrack]:
    """The features whose level was changed, in the order of the first change."""
    for name in dict.fromkeys(name for each in faults for name in each.levels):
        first = versions.get(f"{FEATURE}{name}", "0")
        edges = [(0, int(first) if first.isdecimal() else 0)]
        edges += [
            (each.confirmed_ns or each.applied_ns or each.began_ns, each.levels[name])
            for each in faults
            if name in each.levels
        ]
        spans = _spans(edges, end_ns)
        yield FeatureTrack(
            feature=name,
            spans=tuple(LevelSpan(level=level, began_s=_at(a, clock), ended_s=clock(b)) for level, a, b in spans),
        )


def _spans(edges: Sequence[tuple[int, Value]], end_ns: int) -> Iterator[tuple[Value, int, int]]:
    """(value, begin, end) of each time span; a value holds until the next edge, the last one until the end."""
    for (began_ns, value), (ended_ns, _) in pairwise([*edges, (max(end_ns, edges[-1][0]), edges[-1][1])]):
        if ended_ns > began_ns:
            yield value, began_ns, ended_ns


def _at(at_ns: int, clock: Clock) -> float:
    """A begin in seconds; 0 is the begin of the history."""
    return clock(at_ns) if at_ns else 0.0


def _stage(
    name: str,
    span: StageSpan,
    faults: Iterable[FaultRecord],
    cost: Mapping[str, StageFigures],
    violations: tuple[tuple[str, int], ...],
    clock: Clock,
    *,
    needed: int | None,
) -> UpgradeStage:
    """One stage, in which clients must end `needed` transactions; None where it cannot pass."""
    steps = tuple(_step(each, clock) for each in faults if span.began_ns <= each.began_ns < span.ended_ns)
    ended = sum(each.committed + each.aborted_on_purpose for each in cost.values())
    tried = needed is not None and ended >= needed
    unclear = Verdict.worst([*(each.verdict for each in steps), Verdict.PASS if tried else Verdict.INCONCLUSIVE])
    return UpgradeStage(
        name=name,
        began_s=clock(span.began_ns),
        ended_s=clock(span.ended_ns),
        steps=steps,
        clients=tuple(StageClient(client=client, figures=each) for client, each in cost.items()),
        verdict=Verdict.FAIL if violations else unclear,
        violations=violations,
    )


def _floor(judged: ScenarioVerdict) -> int:
    """The transactions that each stage needs."""
    return next((each.need for each in judged.coverage if each.name == EACH_STAGE), 1)


def _step(fault: FaultRecord, clock: Clock) -> StageStep:
    proven = fault.confirmed_ns is not None
    return StageStep(
        step=fault.step,
        what=clause_of(fault.description or fault.fault),
        target=fault.target,
        began_s=clock(fault.began_ns),
        proven_s=None if fault.confirmed_ns is None else clock(fault.confirmed_ns),
        proof=fault.proof or "",
        error=fault.error or "",
        verdict=Verdict.ERROR if fault.error else Verdict.PASS if proven else Verdict.INCONCLUSIVE,
    )


def _struck_in(span: StageSpan, findings: Iterable[FindingReport], clock: Clock) -> tuple[tuple[str, int], ...]:
    """The anomalies with the number of their examples in a stage, by the judge's moment or the begin of the operation."""
    began_s, ended_s = clock(span.began_ns), clock(span.ended_ns)

    def holds(example: Example) -> bool:
        moment = example.circumstances
        at_s = example.at_s if moment is None else clock(moment.at_ns)
        return at_s is not None and began_s <= at_s < ended_s

    counts = {each.anomaly: sum(map(holds, each.witnesses)) for each in findings}
    return tuple((anomaly, count) for anomaly, count in counts.items() if count)
