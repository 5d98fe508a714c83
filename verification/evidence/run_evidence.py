"""Reads the evidence of one run and checks that it is complete, before a judgement.

Small files (experiment, history, captures) are read here in full, and acknowledgements are compared with the history.
Bulky ones (observations, captures of the log) are only checked for completeness; Spark
(`verification.spark.dataframes`) or the reference judge reads them. A directory that is incomplete, foreign or cut is
refused with one sentence that names the file: a judgement of half the evidence would pass the other half unseen.

Free of pyspark.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from verification.evidence import counts_file, history_file, peer_file, transaction_log_file
from verification.evidence.assumptions import check_clock, check_polls, check_topics, log_starts
from verification.evidence.capture_reader import CaptureReader, LocalCaptureReader
from verification.evidence.history_file import UnfitHistoryError
from verification.evidence.peer_file import PeerPartition
from verification.evidence.row_types import Row
from verification.evidence.run_directory import RunDirectory
from verification.evidence.transaction_log_file import TransactionLog
from verification.vocabulary import experiment as experiment_file
from verification.vocabulary import quiescent_state as captures_file
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.experiment import Experiment, TopicRole, UnfitExperimentError
from verification.vocabulary.history import History, Intent, Operation, Outcome
from verification.vocabulary.quiescent_state import QuiescentState
from verification.vocabulary.transaction_log import TOPIC, TOPIC_INDEX

if TYPE_CHECKING:
    from verification.evidence.acks_file import Operations

ACKS_SUFFIX = ".jsonl.gz"
#: Observers are bits of a long in the judge's frames, and the number of the earliest one is packed with its time.
OBSERVERS_MAX = 63
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvidence:
    """One run whose files are all there. `acks` maps processes, `observations` observers to their files.

    `transaction_log` is None in evidence without one: the records of coordinators are then unknown. `counts` are the rows
    of `counts_file`, and `peer` those of `peer_file`.
    """

    directory: RunDirectory
    capture_reader: CaptureReader
    experiment: Experiment
    history: History
    captures: QuiescentState
    acks: dict[int, Path]
    observations: dict[str, Path]
    transaction_log: TransactionLog | None = None
    counts: tuple[Row, ...] = ()
    peer: tuple[PeerPartition, ...] = ()

    @property
    def run(self) -> str:
        """The run's id, which every dataframe and every record has."""
        return self.experiment.run

    def topic(self, topic_index: int | None) -> str | None:
        """The name of a topic by its index; an index that the experiment does not know is shown as a number."""
        if topic_index is None:
            return None
        if topic_index == TOPIC_INDEX:
            return TOPIC
        topics = self.experiment.topics
        return topics[topic_index].name if 0 <= topic_index < len(topics) else f"topic #{topic_index}"

    def topic_index(self, topic: str) -> int | None:
        """The index of a topic by its name, None when the experiment does not know it."""
        names = [each.name for each in self.experiment.topics]
        return names.index(topic) if topic in names else None


def _named_files(folder: Path, read: Callable[[Path], Read]) -> dict[str, tuple[Path, Read]]:
    """The files of a folder by name, each with the result of `read`, which reads it to its end.

    Raises UnfitEvidenceError when one is cut. Inflating holds no lock, so several files are read at once.
    """

    def whole(path: Path) -> Read:
        try:
            return read(path)
        except (OSError, EOFError, zlib.error) as error:
            raise UnfitEvidenceError(f"{path} does not read to its end ({error}); the run was cut") from error

    paths = [path for path in sorted(folder.glob(f"*{ACKS_SUFFIX}")) if not path.name.startswith(".")]
    with ThreadPoolExecutor(thread_name_prefix="files") as pool:
        said = pool.map(whole, paths)
        return {path.name.removesuffix(ACKS_SUFFIX): (path, each) for path, each in zip(paths, said, strict=True)}


def _acks(folder: Path, history: History, starts: dict[tuple[int, int], int]) -> dict[int, Path]:
    """The files of acknowledgements by process. They must cover every operation that ended ok with records."""
    # NumPy and Arrow take as long to import as everything else of a command that judges scripts.
    from verification.evidence.acks_file import first_missing, operations

    def read(path: Path) -> Operations:
        if not path.name.removesuffix(ACKS_SUFFIX).isdecimal():
            raise UnfitEvidenceError(
                f"{path} is not named after a process; this is not a directory of acknowledgements"
            )
        return operations(path, starts)

    files = {int(name): each for name, each in _named_files(folder, read).items()}
    promised: dict[int, list[int]] = defaultdict(list)
    for each in history.of(Operation):
        if each.outcome is Outcome.OK and each.records > 0 and each.intent is not Intent.ABORT:
            promised[each.process].append(each.operation)
    for process, wanted in promised.items():
        operation = first_missing(wanted, files[process][1]) if process in files else min(wanted)
        if operation is not None:
            raise UnfitEvidenceError(
                f"{folder} has no acknowledgement of operation {operation} of process {process}, which ended "
                "ok; the evidence is incomplete"
            )
    return {process: path for process, (path, _) in files.items()}


def _observations(folder: Path, experiment: Experiment) -> dict[str, Path]:
    found = _named_files(folder, check_polls)
    for observer in experiment.observers:
        if observer.name not in found:
            raise UnfitEvidenceError(f"{folder / (observer.name + ACKS_SUFFIX)} is missing; the evidence is incomplete")
    return {observer.name: found[observer.name][0] for observer in experiment.observers}


def _check_capture(capture_reader: CaptureReader, folder: Path, rows: int | None) -> None:
    """Check that a capture is complete, by the marker that is written last, and that its columns are ours.

    A copy of a directory may have the marker before other files. So its rows are counted again where the run counted
    them.
    """
    from verification.evidence.columns import CAPTURED, LATER, TYPES

    if not capture_reader.present(folder.name):
        raise UnfitEvidenceError(f"{folder} is missing or was never completed; the evidence is incomplete")
    expected = CAPTURED[folder.name]
    schemas = list(capture_reader.schemas(folder.name))
    if not schemas:
        raise UnfitEvidenceError(f"{folder} holds no Parquet file, only its marker; the evidence is incomplete")
    for path, schema in schemas:
        # Spark writes `string`, other writers of the same data `large_string`.
        found = {field.name: str(field.type).removeprefix("large_") for field in schema}
        asked = tuple(name for name in expected if name in found or name not in LATER)
        if tuple(schema.names) != asked or found != {name: TYPES[name] for name in asked}:
            wrong = sorted(name for name in asked if found.get(name) != TYPES[name])
            fault = (
                f"lacks the columns {wrong}" if wrong else f"has the columns {sorted(found)} and not those of a capture"
            )
            raise UnfitEvidenceError(f"{path} {fault}; it was not captured by this version")
    if rows is not None and (held := capture_reader.count(folder.name)) != rows:
        raise UnfitEvidenceError(
            f"{folder} has {held} rows and not the {rows} that were captured; files of it were not copied, or copied twice"
        )


def _check_topics(experiment: Experiment, path: Path) -> None:
    inputs = [topic.name for topic in experiment.topics if topic.role is TopicRole.INPUT]
    if experiment.fan_out is not None and len(inputs) != 1:
        # A copy's identity names its source partition and offset, not the topic.
        raise UnfitEvidenceError(f"{path} speaks of copies from {len(inputs)} input topics; copies have exactly one")


def _check_ends(experiment: Experiment, captures: QuiescentState, path: Path) -> None:
    """Check that every partition's end was pinned: records beyond an unknown end would count as never delivered."""
    pinned = {(end.topic, end.partition) for end in captures.ends}
    for topic in experiment.topics:
        for partition in range(topic.partitions):
            if (topic.name, partition) not in pinned:
                raise UnfitEvidenceError(f"{path} has no end of {topic.name}-{partition}; the evidence is incomplete")


def read_run(directory: RunDirectory, capture_reader: CaptureReader | None = None) -> RunEvidence:
    """Read and check one scenario's directory; `capture_reader` reads its captures where they are elsewhere.

    Raises UnfitEvidenceError naming the first file that is missing, cut or foreign.
    """
    try:
        experiment = experiment_file.read(directory.experiment)
        history = history_file.read(directory.history)
        captures = captures_file.read(directory.captures)
        log = transaction_log_file.read(directory.transaction_log)
    except (UnfitExperimentError, UnfitHistoryError) as error:
        raise UnfitEvidenceError(str(error)) from error
    if experiment.run != history.run:
        raise UnfitEvidenceError(
            f"{directory.history} is of run {history.run}, {directory.experiment} of run {experiment.run}; "
            "the directory mixes two runs"
        )
    if log is not None and log.header.run != history.run:
        raise UnfitEvidenceError(f"{directory.transaction_log} is of run {log.header.run}, not {history.run}")
    _check_topics(experiment, directory.experiment)
    _check_ends(experiment, captures, directory.captures)
    check_topics(experiment, captures, directory.captures)
    check_clock(history, directory.history)
    if len(experiment.observers) > OBSERVERS_MAX:
        raise UnfitEvidenceError(
            f"{directory.experiment} has {len(experiment.observers)} observers; at most {OBSERVERS_MAX} can be judged"
        )
    held = capture_reader or LocalCaptureReader(directory)
    for folder in (directory.log, directory.uncommitted, directory.committed):
        if experiment.has_log or folder == directory.committed:
            _check_capture(held, folder, captures.rows.get(folder.name))
    return RunEvidence(
        directory=directory,
        capture_reader=held,
        experiment=experiment,
        history=history,
        captures=captures,
        acks=_acks(directory.acks, history, log_starts(experiment, captures)),
        observations=_observations(directory.observations, experiment),
        transaction_log=log,
        counts=counts_file.read(directory.counts, experiment),
        peer=peer_file.read(directory.peer),
    )


def check_distinct(runs: Iterable[RunEvidence]) -> None:
    """Raise UnfitEvidenceError when two directories hold the same run, because their records have the same identities."""
    seen: dict[str, RunEvidence] = {}
    for each in runs:
        other = seen.setdefault(each.run, each)
        if other is not each:
            raise UnfitEvidenceError(
                f"{each.directory.root} and {other.directory.root} both hold run {each.run}; judge them one by one"
            )
