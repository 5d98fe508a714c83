"""An upgrade as values: the nodes with their releases, the feature levels, and the stages with what they cost.

Every time is in seconds since the first entry of the scenario's history.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.model.timeline import Latency
from verification.vocabulary.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSpan:
    """A time span in which a node ran one release; `release` is empty while the node was down."""

    release: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBand:
    """A node with its releases, in order."""

    node: str
    spans: tuple[ReleaseSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSpan:
    """A time span in which one level of a feature was final; 0 is a feature that is not final."""

    level: int
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureTrack:
    """A feature whose level was changed, with its levels in order."""

    feature: str
    spans: tuple[LevelSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCount:
    """How many operations ended with an error; `code` is that of the client library, None where it has none."""

    name: str
    code: int | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """What a stage cost one client; `reports.loading.stage_figures` defines each figure.

    `committed` and `latency` are of commits that the client was told of. `gap_s` is the longest time in which one producer
    committed nothing, `gap_of_all_s` that in which none did; None without a producer. `fenced` and `replaced` count
    producer instances. `aborted_on_purpose`, `aborted` (a commit was meant) and `unknown` count transactions.
    """

    committed: int
    committed_per_s: float
    gap_s: float | None
    gap_began_s: float | None
    gap_of_all_s: float | None
    latency: Latency
    errors: tuple[ErrorCount, ...]
    fenced: int
    aborted_on_purpose: int
    aborted: int
    unknown: int
    replaced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageClient:
    """The figures of one client in one stage, and those of the baseline in the stage of the same name, if it has one."""

    client: str
    figures: StageFigures
    baseline: StageFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStep:
    """A step of a stage: an operation or a probe. `verdict` is PASS when it was proven to take effect."""

    step: int
    what: str
    target: str
    began_s: float
    proven_s: float | None
    proof: str
    error: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeStage:
    """A stage. `violations` are the anomalies with the number of their examples whose operation began in the stage."""

    name: str
    began_s: float
    ended_s: float
    steps: tuple[StageStep, ...]
    clients: tuple[StageClient, ...]
    verdict: Verdict
    violations: tuple[tuple[str, int], ...] = ()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended_s - self.began_s


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport:
    """An upgrade from the release `source` to `target`; equal releases are the control: the same restarts, no change.

    `operations` are the numbers of the steps that bands and tracks show. `unplaced` counts the violations that no stage
    shows. `baseline` names the run whose figures stand next to each figure, empty without one, and `baseline_word` says
    whether that is a control.
    """

    source: str
    target: str
    nodes: tuple[NodeBand, ...]
    features: tuple[FeatureTrack, ...]
    stages: tuple[UpgradeStage, ...]
    operations: frozenset[int] = frozenset()
    unplaced: int = 0
    baseline: str = ""
    baseline_word: str = ""

    @property
    def title(self) -> str:
        """The upgrade in a few words; a scenario without `nodes` changes feature levels alone."""
        return title_of(self.source, self.target) if self.nodes else f"Stages on Kafka {self.target}"


def title_of(source: str, target: str) -> str:
    """An upgrade in a few words; equal releases are restarts alone."""
    if source == target:
        return f"Restarts of Kafka {target}, the control of an upgrade"
    return f"Upgrade of Kafka {source} → {target}"
