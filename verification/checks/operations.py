"""Operations for the checks: the answer to each, and whether its instance was a zombie by then.

`superseded_ns` is the time at which another instance of the transactional id completed its `init` before this operation
decided, otherwise null. The instance that last completed `init` before that decision owns the id. When it is another
process, the operation's own instance is a zombie. Equal times count in favour of the operation.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.spark.dataframes import Dataframes
from verification.vocabulary.history import Action, Outcome

OPERATION = ("run", "process", "operation")


def operations(frames: Dataframes) -> DataFrame:
    """One row per operation: its key, `known` (true), told, plain, size (records), decided_ns, superseded_ns."""
    columns = {
        "is_init": f"action = '{Action.INIT}'",
        "at_ns": f"case when action = '{Action.INIT}' then completed_ns else decided_ns end",
        "owner": f"case when action = '{Action.INIT}' and outcome = '{Outcome.OK}' then process end",
        "owned_ns": f"case when action = '{Action.INIT}' and outcome = '{Outcome.OK}' then completed_ns end",
    }
    in_time = Window.partitionBy("run", "transactional_id").orderBy("at_ns", "is_init")
    before = in_time.rowsBetween(Window.unboundedPreceding, -1)
    last = {name: F.last(name, ignorenulls=True).over(before) for name in ("owner", "owned_ns")}
    return (
        frames.operations.withColumns({name: F.expr(text) for name, text in columns.items()})
        .withColumns(last)
        .selectExpr(
            *OPERATION,
            "true as known",
            "told",
            "plain",
            "records as size",
            "decided_ns",
            "case when transactional_id is not null and decided_ns is not null and owner != process"
            " then owned_ns end as superseded_ns",
        )
    )
