"""`captures.json`: the cluster's own state at quiescence, after every producer was closed or fenced.

Ends are pinned once per partition, for the isolation level of the capture: the high watermark for `log/` and
`uncommitted/`, the last stable offset for `committed/`. The two must be equal by then; a difference is a finding and no
reason to wait.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from verification.vocabulary import strict_json
from verification.vocabulary.experiment import UnfitExperimentError
from verification.vocabulary.strict_json import Int64

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEnd:
    """ListOffsets answers of a partition's leader: earliest, latest under read_uncommitted and read_committed."""

    topic: str
    partition: Int64
    start: Int64
    high_watermark: Int64
    last_stable_offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """A committed offset of the copiers' group as the cluster has it; -1 when there is none."""

    group: str
    topic: str
    partition: Int64
    offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorState:
    """DescribeTransactions of one transactional id (KIP-664); state is Empty, Ongoing, PrepareCommit and so on."""

    transactional_id: str
    state: str
    producer_id: Int64
    producer_epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenProducer:
    """DescribeProducers: a producer with an open transaction on a partition (current_txn_start_offset ≥ 0)."""

    topic: str
    partition: Int64
    producer_id: Int64
    producer_epoch: Int64
    first_offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic at the start of the run and at quiescence: its id at both times, and its partitions at quiescence.

    Ids are empty where the cluster knows none (before 2.8). `cleanup_policy` is the topic's `cleanup.policy`.
    """

    topic: str
    partitions: Int64
    first_id: str = ""
    last_id: str = ""
    cleanup_policy: str = "delete"


class KeptIn(StrEnum):
    """Where the state of a pipeline is kept: by its instances, or in a topic from which they restore it."""

    STORE = "store"
    CHANGELOG = "changelog"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCount:
    """The count of a key in the state of a pipeline that counts; `place` is an instance, or the topic of the changelog."""

    origin: KeptIn
    place: str
    key: str
    count: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class QuiescentState:
    """Everything in captures.json. `topics` is empty where they were not queried, `kept_counts` where no state was read.

    `rows` counts the rows written into `log`, `uncommitted` and `committed`, as far as they were counted.
    """

    ends: tuple[PartitionEnd, ...] = ()
    group_offsets: tuple[GroupOffset, ...] = ()
    coordinator_states: tuple[CoordinatorState, ...] = ()
    open_producers: tuple[OpenProducer, ...] = ()
    topics: tuple[TopicState, ...] = ()
    kept_counts: tuple[KeptCount, ...] = ()
    rows: Mapping[str, Int64] = field(default_factory=dict, hash=False)

    def write(self, path: Path) -> None:
        """Write captures.json."""
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> QuiescentState:
    """Read captures.json; raises UnfitExperimentError when it is missing or foreign."""
    return strict_json.read(
        path,
        QuiescentState,
        of="captures",
        format_=FORMAT,
        error=UnfitExperimentError,
        missing="the run ended before its capture",
        required=("ends", "group_offsets", "coordinator_states", "open_producers"),
    )
