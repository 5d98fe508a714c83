"""The state of an upgrade at a moment: its stage, the release of each node, the feature levels, and who led a partition.

Everything follows from the experiment, which has the releases and levels of the beginning, and from the history. A step
that gives a node another release takes it down when it strikes and has it back when it is confirmed. A level is final
once its step is confirmed. Leaders are those of the samples; a leader that changed since the last look is not known yet.

Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.experiment import FEATURE
from verification.vocabulary.history import FaultRecord, Phase, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeState:
    """The phase, the release of each node that runs (by its id as text), and the level of each final feature.

    A node that was taken down and is not back is not in `releases`. Where only levels change, there are none.
    """

    stage: str
    releases: Mapping[str, str]
    levels: Mapping[str, int]


def is_upgrade(evidence: RunEvidence) -> bool:
    """Whether the run changes releases or levels; all others have no stages."""
    return bool(evidence.experiment.nodes or stages(evidence))


def steps(evidence: RunEvidence) -> tuple[FaultRecord, ...]:
    """All steps of the schedule, in order of time."""
    return tuple(sorted(evidence.history.of(FaultRecord), key=lambda each: each.began_ns))


def stages(evidence: RunEvidence) -> tuple[Phase, ...]:
    """The stages in order: the phases in which the steps with a stage were taken."""
    named = {each.stage for each in steps(evidence)} - {""}
    return tuple(each for each in evidence.history.of(Phase) if each.name in named)


def state_at(evidence: RunEvidence, at_ns: int) -> UpgradeState:
    """The state at a time of the run's clock."""
    releases = dict(evidence.experiment.nodes)
    levels = {
        name.removeprefix(FEATURE): int(level)
        for name, level in evidence.experiment.versions.items()
        if name.startswith(FEATURE) and level.isdecimal()
    }
    for each in steps(evidence):
        if each.confirmed_ns is not None and each.confirmed_ns <= at_ns:
            releases |= each.releases if evidence.experiment.nodes else {}
            levels |= each.levels
        elif each.struck_ns is not None and each.struck_ns <= at_ns:
            releases = {node: release for node, release in releases.items() if node not in each.releases}
    phases = evidence.history.of(Phase)
    return UpgradeState(
        stage=next((each.name for each in phases if each.began_ns <= at_ns <= each.ended_ns), ""),
        releases=dict(sorted(releases.items())),
        levels={name: level for name, level in sorted(levels.items()) if level},
    )


def leader_at(evidence: RunEvidence, topic: str, partition: int, at_ns: int) -> int | None:
    """The node that led a partition by the last look before a time; None where no look names one."""
    seen = [
        each
        for each in evidence.history.of(Sample)
        if (each.topic, each.partition) == (topic, partition) and each.at_ns <= at_ns and each.leader >= 0
    ]
    return max(seen, key=lambda each: each.at_ns).leader if seen else None
