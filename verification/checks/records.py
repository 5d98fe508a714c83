"""One row per record (run, process, operation, index) that was expected, acknowledged or found.

Expected are the records of transactions that were told committed or unknown, `size` of them; plain records are
expected when they were acknowledged. Columns besides the key:

    expected, acked      by its transaction; it was acknowledged ok
    at_topic_index, at_partition, at_offset    the acknowledged place, null when there is none
    copies               how many copies with outcome commit are in the log (without a log: were delivered)
    visible              such a copy is in the committed capture
    waiting              a copy with outcome commit or open lies at or above its partition's LSO
    open                 a copy is open in the log
    known, told, plain, size, has_log    of its operation; `size` falls back to the count that its records carry
    seen, waits, any_open    of its operation: how many records are visible, how many of the others wait, any is open
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.operations import OPERATION
from verification.spark.dataframes import Dataframes
from verification.vocabulary.history import Outcome, Told

RECORD = (*OPERATION, "index")

_FACTS = (
    "expected",
    "acked",
    "at_topic_index",
    "at_partition",
    "at_offset",
    "visible",
    "waiting",
    "open",
    "size",
)
#: The one fact that is counted rather than true or false.
_COPIES = "copies"


def _facts(frame: DataFrame, **values: str) -> DataFrame:
    """Rows with the columns that all kinds of facts share."""
    types = {"at_topic_index": "int", "at_partition": "int", "at_offset": "bigint", "size": "int"}
    defaults = {name: f"cast(null as {types[name]})" if name in types else "false" for name in _FACTS}
    defaults[_COPIES] = "0"
    return frame.selectExpr(*RECORD, *[f"{values.get(name, defaults[name])} as {name}" for name in (*_FACTS, _COPIES)])


def records(frames: Dataframes, places: DataFrame, operations: DataFrame) -> DataFrame:
    """The dataframe that the module's docstring describes, partitioned by (run, process, operation)."""
    above = "offset >= last_stable_offset"
    of_places = _facts(
        places.where("genuine and control is null"),
        copies="cast(coalesce(outcome = 'commit', false) as int)",
        visible="coalesce(outcome = 'commit', false) and committed > 0",
        waiting=f"coalesce(outcome in ('commit', 'open') and {above}, false)",
        open="coalesce(outcome = 'open', false)",
        size="count",
    )
    told_where = f"case when outcome = '{Outcome.OK}' and offset >= 0 then {{}} end"
    of_acks = _facts(
        frames.acks,
        acked=f"outcome = '{Outcome.OK}'",
        at_topic_index=told_where.format("topic_index"),
        at_partition=told_where.format("partition"),
        at_offset=told_where.format("offset"),
    )
    expected = _facts(
        frames.operations.where(f"told in ('{Told.COMMITTED}', '{Told.UNKNOWN}') and records > 0").selectExpr(
            *OPERATION, "explode(sequence(0, records - 1)) as index"
        ),
        expected="true",
    )
    every = of_places.unionByName(of_acks).unionByName(expected).repartition(*OPERATION)
    by_record = every.groupBy(*RECORD).agg(*[F.max(name).alias(name) for name in _FACTS], F.sum(_COPIES).alias(_COPIES))
    known = operations.select(*OPERATION, "known", "told", "plain", F.col("size").alias("records"))
    whole = Window.partitionBy(*OPERATION)
    counted = {
        "size": F.expr("case when records > 0 then records end"),
        "carried": F.max("size").over(whole),
        "seen": F.sum(F.expr("cast(visible as int)")).over(whole),
        "waits": F.sum(F.expr("cast(waiting and not visible as int)")).over(whole),
        "any_open": F.max("open").over(whole),
    }
    return (
        by_record.join(known, list(OPERATION))
        .join(F.broadcast(frames.runs.select("run", "has_log")), "run")
        .withColumns(counted)
        .withColumn("size", F.coalesce("size", "carried"))
        .drop("records", "carried")
    )
