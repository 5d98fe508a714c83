"""Operation by operation, whether what the log holds agrees with what was told and with what readers were given.

Everything is counted into one row per operation: the fragments of the log with their outcomes, the two captures, the
acknowledgements of records that no transaction binds, and the history. An operation is suspect when anything of it does
not agree; what an anomaly cannot agree with is listed in `verification.fingerprints`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.fingerprints.fold import CONTENT, OPERATION, SURE, half
from verification.frames import Frames
from verification.history import Outcome, Told

_COUNTED = ("n", "content", "content_sum")
#: Column of a row → its aggregate. `read_*` is the log against the uncommitted capture, `given_*` its committed part
#: against the committed capture, `kept_*` the indexes of that part, `acked_*` those that were acknowledged.
_SUMS = {
    **{f"{of}_{name}": "bit_xor" if name == "content" else "sum" for of in ("read", "given") for name in _COUNTED},
    **{f"{of}_{name}": how for of in ("kept", "acked") for name, how in (("indexes", "bit_xor"), ("sum", "sum"))},
    "found": "sum",
    "kept": "sum",
    "acked": "sum",
    "index_max": "max",
    "wrong": "max",
    "known": "max",
    "told": "max",
    "plain": "max",
    "size": "max",
    "superseded": "max",
}
_TYPES = {"index_max": "int", "told": "int", "size": "int"} | dict.fromkeys(
    ("wrong", "known", "plain", "superseded"), "boolean"
)
#: Told, as numbers: texts are not aggregated in place.
_TOLD = {Told.COMMITTED: 1, Told.UNKNOWN: 2, Told.ABORTED: 3}


def _row(frame: DataFrame, **values: str) -> DataFrame:
    """Rows in the columns that all counts share; null where a frame says nothing."""
    texts = [f"cast({values.get(name, 'null')} as {_TYPES.get(name, 'bigint')}) as {name}" for name in _SUMS]
    return frame.selectExpr(*OPERATION, *texts)


def _of_log(steps: DataFrame) -> DataFrame:
    kept = "outcome = 'commit'"
    return _row(
        steps.where("process is not null"),
        **{f"read_{name}": name for name in _COUNTED},
        **{f"given_{name}": f"case when {kept} then {name} end" for name in _COUNTED},
        kept_indexes=f"case when {kept} then indexes end",
        kept_sum=f"case when {kept} then indexes_sum end",
        kept=f"case when {kept} then n end",
        found="n",
        index_max="index_max",
        wrong="amiss or odd or outcome = 'open'",
    )


def _of_capture(capture: DataFrame, of: str) -> DataFrame:
    folded = (
        capture.where(SURE)
        .selectExpr(*OPERATION, f"{CONTENT} as hash")
        .groupBy(*OPERATION)
        .agg(
            F.expr("count(*) as n"),
            F.expr("bit_xor(hash) as content"),
            F.expr(f"sum({half('hash')}) as content_sum"),
        )
    )
    return _row(
        folded,
        found="n",
        **{f"{of}_n": "-n", f"{of}_content": "content", f"{of}_content_sum": "-content_sum"},
    )


def _of_acks(acks: DataFrame) -> DataFrame:
    return _row(
        acks.where(f"outcome = '{Outcome.OK}'"),
        acked="1",
        acked_indexes="xxhash64(index)",
        acked_sum=half("xxhash64(index)"),
    )


def _of_history(operations: DataFrame) -> DataFrame:
    told = " ".join(f"when told = '{told}' then {number}" for told, number in _TOLD.items())
    return _row(
        operations,
        known="true",
        told=f"case {told} end",
        plain="plain",
        size="size",
        superseded="superseded_ns is not null",
    )


def _promised(operations: DataFrame) -> DataFrame:
    """For every size up to the largest: XOR and sum of the hashes of the indexes 0 to size - 1."""
    largest = operations.agg(F.max("size").alias("largest")).where("largest > 0")
    running = Window.orderBy("size").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return largest.selectExpr("explode(sequence(1, largest)) as size").select(
        "size",
        F.expr("bit_xor(xxhash64(size - 1))").over(running).alias("promised_indexes"),
        F.expr(f"sum({half('xxhash64(size - 1)')})").over(running).alias("promised_sum"),
    )


def _suspect() -> str:
    """The rule, as SQL over one row per operation; null counts as no suspicion, so nothing in it may be null."""
    committed, unknown, aborted = (_TOLD[told] for told in (Told.COMMITTED, Told.UNKNOWN, Told.ABORTED))
    whole = "kept = size and kept_indexes = promised_indexes and kept_sum = promised_sum"
    differs = [f"{of}_{name} != 0" for of in ("read", "given") for name in _COUNTED]
    rules = [
        *differs,
        "wrong",
        "not known and found > 0",
        "found > 0 and size > 0 and index_max >= size",
        "superseded and kept > 0",
        f"told = {aborted} and kept > 0",
        f"told in ({committed}, {unknown}) and size <= 0 and found > 0",
        f"told = {committed} and size > 0 and not ({whole})",
        f"told = {unknown} and size > 0 and kept > 0 and not ({whole})",
        "plain and not (kept = acked and kept_indexes = acked_indexes and kept_sum = acked_sum)",
        "told = 0 and not plain and found > 0",
    ]
    return " or ".join(f"({rule})" for rule in rules)


def suspects(frames: Frames, steps: DataFrame, operations: DataFrame, acks: DataFrame) -> DataFrame:
    """The operations (run, process, operation) of which anything does not agree.

    `operations` is `checks.operations` of the frames, `acks` has at least the acknowledgements of all plain operations.
    """
    every = _of_log(steps)
    for other in (
        _of_capture(frames.uncommitted, "read"),
        _of_capture(frames.committed, "given"),
        _of_acks(acks),
        _of_history(operations),
    ):
        every = every.unionByName(other)
    counted = every.groupBy(*OPERATION).agg(*[F.expr(f"{how}({name}) as {name}") for name, how in _SUMS.items()])
    filled = {name: F.expr(f"coalesce({name}, {_nothing(name)})") for name in _SUMS}
    promised = {name: F.expr(f"coalesce({name}, 0L)") for name in ("promised_indexes", "promised_sum")}
    return (
        counted.withColumns(filled)
        .join(F.broadcast(_promised(operations)), "size", "left")
        .withColumns(promised)
        .where(_suspect())
        .select(*OPERATION)
    )


def _nothing(name: str) -> str:
    if _TYPES.get(name) == "boolean":
        return "false"
    return "-1" if name == "index_max" else "0"
