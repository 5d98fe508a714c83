"""The experiment of a run, kept as `scenario.json`: the part of a scenario that the judge and the reports need.

It holds everything that decides a verdict besides the evidence itself: the claimed requirements, the topics, the
observers and their isolation levels, the promised order, and the floors for a pass. Judging a run again therefore needs
no code of the suite that made it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from verification.vocabulary import strict_json
from verification.vocabulary.input_reference import VALUE, finder
from verification.vocabulary.strict_json import Float64, Int64

FORMAT = 1
#: Begins the names of finalized feature levels (KIP-584) among `Experiment.versions`.
FEATURE = "feature "
#: The shape of an output that also says how many inputs of its key there were: a key and a running count.
COUNTED = "counted"
#: The shape of rows of a database. They are no topic of the cluster: their place is partition 0, and their offset a number.
EFFECT = "effect"
SHAPES = ("each", COUNTED, EFFECT)
#: The promise of a pipeline about its outputs: each input once, or each input once and perhaps again.
EXACTLY_ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"
SEMANTICS = (EXACTLY_ONCE, AT_LEAST_ONCE)


class IsolationLevel(StrEnum):
    """A consumer's isolation level."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


class TopicRole(StrEnum):
    """The use of a topic: clients write into outputs; copiers consume inputs, which are filled during the run."""

    OUTPUT = "output"
    INPUT = "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentTopic:
    """A topic of the run. Its position in `Experiment.topics` is the topic index inside record identities.

    `reference` says where a record names its input if a program wrote it that knows no identities (`input_reference`).
    `shape` says what the outputs of such a program are (`SHAPES`): one for each input, that with a running count, or a row
    of a database for each input. `unclean_election` says whether a replica that is not in sync may lead; None: not recorded.
    """

    name: str
    partitions: Int64
    replication: Int64
    min_in_sync: Int64
    role: TopicRole = TopicRole.OUTPUT
    reference: str = ""
    shape: str = "each"
    unclean_election: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """A live consumer. `isolation` is the level that it *declares*, and by which it is judged."""

    name: str
    isolation: IsolationLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A coverage floor: fewer than `need` of `name` makes a pass inconclusive (see `verification.coverage.coverage`)."""

    name: str
    need: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One execution of one scenario, as planned.

    `order_claimed`: the subject promises that one process's records in one partition stand in send order.
    `survival_claimed`: nothing in the schedule may end a transactional producer for good.
    `group` and `fan_out` describe copies: the consumer group, and how many outputs each input must have.
    `pipeline` is the process whose operation 0 stands for all outputs of topics with a reference
    (`verification.evidence.references`). Raises ValueError for references that cannot be resolved, and for a wrong shape.
    `semantics` is the promise about copies (`SEMANTICS`): with at-least-once an input may be copied again. Others are a
    ValueError, too.
    `control_expects` is empty for a subject; for a control it names the anomalies that must be found, exactly.
    `has_log` is False for an external subject that writes no control records. Delivered records are then compared with
    the answers to producers, without a log.
    `nodes` names the release of each node at the beginning where a run changes releases; `release` is then the target.
    In a migration from ZooKeeper a release also names the mode of the node, such as `3.9.2 KRaft`.
    `producer_expiration_s` is the brokers' producer.id.expiration.ms, in seconds; 0 is Kafka's default of a day.
    """

    run: str
    scenario: str
    claim: str
    requirements: tuple[str, ...]
    seed: Int64
    started: str
    release: str
    runtime: str
    client: str
    topics: tuple[ExperimentTopic, ...]
    observers: tuple[Observer, ...] = ()
    floors: tuple[Floor, ...] = ()
    order_claimed: bool = False
    survival_claimed: bool = False
    group: str | None = None
    fan_out: Int64 | None = None
    pipeline: Int64 | None = None
    semantics: str = EXACTLY_ONCE
    control_expects: tuple[str, ...] = ()
    has_log: bool = True
    workload: str = ""
    schedule: tuple[str, ...] = ()
    cluster: str = ""
    transaction_timeout_s: Float64 = 0.0
    producer_expiration_s: Float64 = 0.0
    replay: str = ""
    nodes: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    configuration: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse references that cannot be resolved, and shapes and semantics that cannot be judged."""
        if self.semantics not in SEMANTICS:
            raise ValueError(f"semantics is {self.semantics!r} and must be one of {', '.join(SEMANTICS)}")
        inputs = sum(topic.role is TopicRole.INPUT for topic in self.topics)
        for topic in self.topics:
            if topic.reference:
                finder(topic.reference)
            fitting = topic.role is TopicRole.OUTPUT and inputs == 1 and self.pipeline is not None and self.has_log
            if topic.reference and not fitting:
                raise ValueError(
                    f"topic {topic.name} has a reference, which only an output may have, in a run with a log, a pipeline"
                    " and exactly one input topic"
                )
            if topic.shape not in SHAPES or (topic.shape != "each" and topic.reference != VALUE):
                raise ValueError(
                    f"topic {topic.name} has the shape {topic.shape!r}, which is not known or needs the reference {VALUE!r}"
                )

    @property
    def is_control(self) -> bool:
        """Whether this is a known-bad subject, which must be detected."""
        return bool(self.control_expects)

    def write(self, path: Path) -> None:
        """Write `scenario.json`."""
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n", encoding="utf-8")


class UnfitExperimentError(Exception):
    """`scenario.json` is missing, foreign or of a newer format; the message says which."""


def read(path: Path) -> Experiment:
    """Read `scenario.json`; raises UnfitExperimentError."""
    return strict_json.read(
        path,
        Experiment,
        of="scenario",
        format_=FORMAT,
        error=UnfitExperimentError,
        missing="this is not a scenario's run directory",
        required=("observers", "floors", "control_expects", "schedule"),
    )
