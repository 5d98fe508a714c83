"""Makes the result of a check: rows of `verification.sources.schema.VIOLATIONS`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.sources.schema import VIOLATIONS
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Told

#: Columns that a violation takes from its dataframe, unless the check gives others.
WHERE = ("process", "operation", "index", "topic_index", "partition", "offset")
#: Of a place: a read_committed reader received it; its record was promised to the client, and none received it; its outcome
#: is not the one that the client was told.
GIVEN = "(committed > 0 or first_received_ns is not null)"
UNREAD = f"(not {GIVEN} and coalesce(told = '{Told.COMMITTED}' or plain, false))"
_OTHERWISE = {Told.COMMITTED: "abort", Told.ABORTED: "commit"}
CONTRADICTED = " or ".join(
    f"coalesce(told = '{told}' and outcome = '{end}', false)" for told, end in _OTHERWISE.items()
)


def violations(frame: DataFrame, anomaly: Anomaly, *, detail: str, **columns: str) -> DataFrame:
    """Rows of `frame` as violations of one kind; `detail` and `columns` are SQL expressions over its columns.

    Columns of `WHERE` are taken from the dataframe if it has them, unless `columns` gives others.
    """
    chosen = {"run": "run", "anomaly": f"'{anomaly}'", "detail": detail, "harm": "0", "live": "false"}
    chosen |= {name: name for name in WHERE if name in frame.columns}
    chosen |= columns
    return frame.selectExpr(
        *[
            f"cast({chosen.get(field.name, 'null')} as {field.dataType.simpleString()}) as {field.name}"
            for field in VIOLATIONS.fields
        ]
    )


def named_observer(frame: DataFrame, observers: DataFrame, number: str) -> DataFrame:
    """The dataframe with a column `observer`: the name of the observer whose number the expression gives, or null."""
    names = observers.selectExpr("run", "observer_index as number", "observer")
    numbered = frame.withColumn("number", F.expr(f"cast({number} as int)"))
    return numbered.join(F.broadcast(names), ["run", "number"], "left")
