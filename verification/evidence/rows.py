"""Evidence → plain rows, by dataframe: the small evidence for all judges, and all of it for the reference judge.

Names and columns are those of `verification.sources.schema`. Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from verification.evidence import lso_samples, transaction_log_rows
from verification.evidence.row_types import Columns, Row, Rows
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.stalls import lost_nodes, silences, standstills, unserved_clients
from verification.vocabulary.experiment import AT_LEAST_ONCE, IsolationLevel
from verification.vocabulary.history import Action, Operation, Settled
from verification.vocabulary.identity import decode, text_digest

#: For so long a broker remembers an idle producer (the default of producer.id.expiration.ms; up to 3.3 seven times as long).
FORGOTTEN_NS = 24 * 3_600 * 10**9
NS_PER_S = 10**9

#: Fields of an operation that its row has unchanged.
_TAKEN = ("transactional_id", "records", "invoked_ns", "decided_ns", "completed_ns", "fatal")
_WRITING = (Action.APPEND, Action.COPY)


def _bound(operation: Operation) -> bool:
    """Whether a transaction binds its records."""
    return operation.action is Action.TRANSACTION or (
        operation.action is Action.COPY and operation.transactional_id is not None
    )


def is_plain(operation: Operation) -> bool:
    """Whether it writes records outside transactions: an append, or a copy by a copier without transactional id."""
    return operation.action in _WRITING and not _bound(operation)


def operation_columns(run: str, operations: Sequence[Operation]) -> Columns:
    """Operations in the columns of `sources.schema.OPERATIONS`; as columns, because a soak has millions of them."""
    return {
        "run": [run] * len(operations),
        **{name: [getattr(each, name) for each in operations] for name in ("process", "operation")},
        **{name: [str(getattr(each, name)) for each in operations] for name in ("action", "outcome")},
        "told": [str(each.told) if _bound(each) else None for each in operations],
        "plain": [is_plain(each) for each in operations],
        **{name: [getattr(each, name) for each in operations] for name in _TAKEN},
    }


def operation_rows(run: str, operations: Sequence[Operation]) -> list[Row]:
    """The same, row by row."""
    columns = operation_columns(run, operations)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _placed(run: RunEvidence, topic: str, partition: int, **values: Any) -> Iterator[Row]:
    """A row about a partition of the experiment; no row for other topics."""
    topic_index = run.topic_index(topic)
    if topic_index is not None:
        yield {"run": run.run, "topic_index": topic_index, "partition": partition, **values}


def _ends(run: RunEvidence) -> Iterator[Row]:
    for each in run.captures.ends:
        watermarks = {"high_watermark": each.high_watermark, "last_stable_offset": each.last_stable_offset}
        yield from _placed(run, each.topic, each.partition, start=each.start, **watermarks)


def _settled(run: RunEvidence) -> Iterator[Row]:
    """Waits for the LSO: those that the run recorded, and those for abandoned transactions, from its samples."""
    for each in run.history.of(Settled):
        watermarks = {"high_watermark": each.high_watermark, "last_stable_offset": each.last_stable_offset}
        yield from _placed(run, each.topic, each.partition, before_fencing=each.before_fencing, **watermarks)
    for late in lso_samples.overdue(run):
        topic_index, partition = late.place
        watermarks = {"high_watermark": late.high_watermark, "last_stable_offset": late.last_stable_offset}
        yield {"run": run.run, "topic_index": topic_index, "partition": partition, "before_fencing": True, **watermarks}


def _open_producers(run: RunEvidence) -> Iterator[Row]:
    for each in run.captures.open_producers:
        yield from _placed(run, each.topic, each.partition, producer_id=each.producer_id, offset=each.first_offset)


def group_offset_rows(run: RunEvidence) -> Iterator[Row]:
    """The offsets that the run's group committed, as rows of `sources.schema.GROUP_OFFSETS`."""
    for each in run.captures.group_offsets:
        if each.group == run.experiment.group:
            yield from _placed(run, each.topic, each.partition, offset=each.offset)


def _observers(run: RunEvidence) -> Iterator[Row]:
    for index, observer in enumerate(run.experiment.observers):
        yield {
            "run": run.run,
            "observer_index": index,
            "observer": observer.name,
            "committed_reader": observer.isolation is IsolationLevel.COMMITTED,
        }


def _forgetful(run: RunEvidence) -> bool:
    """Whether the operations lasted so long that brokers may have forgotten a producer in between."""
    operations = run.history.of(Operation)
    forgotten_ns = round(run.experiment.producer_expiration_s * NS_PER_S) or FORGOTTEN_NS
    ends = (each.completed_ns if each.completed_ns is not None else each.invoked_ns for each in operations)
    return max(ends, default=0) - min((each.invoked_ns for each in operations), default=0) >= forgotten_ns


def rows_without_operations(run: RunEvidence) -> Rows:
    """The small evidence without the operations, by dataframe."""
    experiment = run.experiment
    columns = ("run", "has_log", "order_claimed", "survival_claimed", "fan_out")
    kept = {name: getattr(experiment, name) for name in columns}
    kept["at_least_once"] = experiment.semantics == AT_LEAST_ONCE
    timeout_ns = round((experiment.transaction_timeout_s or transaction_log_rows.TIMEOUT_S) * NS_PER_S)
    return {
        "runs": [{**kept, "forgetful": _forgetful(run), "transaction_timeout_ns": timeout_ns}],
        "observers": list(_observers(run)),
        "ends": list(_ends(run)),
        "settled": list(_settled(run)),
        "open_producers": list(_open_producers(run)),
        "coordinator_states": [
            {"run": run.run, "producer_id": each.producer_id, "state": each.state}
            for each in run.captures.coordinator_states
        ],
        "group_offsets": list(group_offset_rows(run)),
    }


def small_rows(run: RunEvidence) -> Rows:
    """The small evidence, by dataframe."""
    return {"operations": operation_rows(run.run, run.history.of(Operation)), **rows_without_operations(run)}


def _kept_counts(run: RunEvidence) -> list[Row]:
    """The state of a pipeline; none of one that was stopped at work, because its last outputs may not be there yet."""
    kept = run.captures.kept_counts if run.experiment.fan_out is not None else ()
    return [{name: getattr(each, name) for name in ("origin", "place", "key", "count")} for each in kept]


def walked_rows(run: RunEvidence) -> Rows:
    """The rows of the checks without dataframes."""
    return {
        "transaction_log": transaction_log_rows.rows(run),
        "lost_nodes": lost_nodes.rows(run),
        "standstills": standstills.rows(run),
        "unserved_clients": unserved_clients.rows(run),
        "silences": silences.rows(run),
        "counts": list(run.counts),
        "kept_counts": _kept_counts(run),
    }


def _json_lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _acks(run: RunEvidence) -> Iterator[Row]:
    names = ("index", "topic_index", "partition", "offset", "outcome")
    for process, path in run.acks.items():
        for line in _json_lines(path):
            for ack in line["acks"]:
                key = {"run": run.run, "process": process, "operation": line["operation"]}
                yield {**key, **dict(zip(names, ack, strict=True))}


def identity_row(value: bytes | None) -> Row:
    """Identity columns, `valid` and `identity_digest` of a value."""
    identity = decode(value)
    columns: Row = {"valid": identity is not None, "identity_digest": zlib.crc32((value or b"")[:96])}
    if identity is not None:
        columns |= {
            "identity_run": identity.run,
            "process": identity.process,
            "operation": identity.operation,
            "kind": str(identity.kind),
            "index": identity.index,
            "count": identity.count,
            "intended_topic_index": identity.topic_index,
            "intended_partition": identity.intended_partition,
            "send_order": identity.send_order,
            "source_partition": identity.source_partition,
            "source_offset": identity.source_offset,
        }
    return columns


def _observations(run: RunEvidence) -> Iterator[Row]:
    for observer in _observers(run):
        for line in _json_lines(run.observations[observer["observer"]]):
            for position, (topic_index, partition, offset, text) in enumerate(line["records"]):
                yield {
                    "run": run.run,
                    "observer_index": observer["observer_index"],
                    "committed_reader": observer["committed_reader"],
                    "poll": line["poll"],
                    "position": position,
                    "received_ns": line["received_ns"],
                    "topic_index": topic_index,
                    "partition": partition,
                    "offset": offset,
                    **identity_row(text.encode()),
                    "identity_digest": text_digest(text) or None,
                }


def _captured(folder: Path) -> list[Row]:
    import pyarrow.dataset as ds

    if not folder.is_dir():
        return []
    rows: list[Row] = ds.dataset(folder, format="parquet").to_table().to_pylist()
    return rows


def all_rows(run: RunEvidence) -> Rows:
    """All evidence, by dataframe; it must fit into memory."""
    directory = run.directory
    folders: Iterable[tuple[str, Path]] = (
        ("log", directory.log),
        ("uncommitted", directory.uncommitted),
        ("committed", directory.committed),
    )
    return {
        **small_rows(run),
        **walked_rows(run),
        "acks": list(_acks(run)),
        "observations": list(_observations(run)),
        **{name: _captured(folder) for name, folder in folders},
    }
