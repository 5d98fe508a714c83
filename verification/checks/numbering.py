"""The sequence number that a producer's next record must have in a partition (KIP-98), by the rule of leaders.

The rule is from `ProducerAppendInfo.checkSequence` and `ProducerStateManager` of 2.8.2, 3.9.0 and 4.3.1, which agree:

* after a record of the same epoch: the next number, and 0 after 2147483647, also within one batch;
* of a new epoch: 0. A leader knows a producer's highest epoch, from records and from control records (transaction.version
  2 raises the epoch with them). A record of a lower epoch is a `zombie-write`, which is ignored here;
* of a producer that the leader does not know: any number. So the first record of a producer in a log is not judged. A
  control record of the same epoch before it makes the producer known and begins the epoch, but only in a log that begins
  at offset 0: otherwise the records before that control record may have been deleted;
* of a producer whose state expired: any number again; see `broken_sequence`.

Followers and recovering brokers accept any number and learn the producer's state from it. So a new leader continues where
the log ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

#: The highest number, followed by 0; also the mask with which numbers wrap.
NUMBER_MAX = (1 << 31) - 1
#: The columns that `numbered` adds, and their input.
NUMBERING = ("sequence", "sequence_due", "sequence_known")
_TELLS = "(control is null or control in ('commit', 'abort'))"
_NEXT = f"cast((cast(latest.sequence as bigint) + 1) & {NUMBER_MAX} as int)"
_DUE = f"""case
    when control is not null or producer_id < 0 or coalesce(sequence, -1) < 0 then null
    when epoch_highest is null or producer_epoch < epoch_highest then null
    when latest.producer_epoch = producer_epoch then case when latest.sequence >= 0 then {_NEXT} end
    else 0
end"""


def numbered(rows: DataFrame, producer: Sequence[str]) -> DataFrame:
    """Rows of a log with two more columns; `producer` are the columns that name a producer in a partition.

    `sequence_due` is the number that a record should have; null where it has that number, and where the rule does not
    say. `sequence_known`: it holds even if earlier records were deleted. All earlier rows of the producer must be there.
    """
    earlier = Window.partitionBy(*producer).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    around = {
        "epoch_highest": F.max(F.expr(f"case when {_TELLS} then producer_epoch end")),
        "epoch_lowest": F.min(F.expr(f"case when {_TELLS} then producer_epoch end")),
        "latest": F.max(F.expr("case when control is null then struct(producer_epoch, offset, sequence) end")),
    }
    derived = {
        "sequence_due": f"nullif({_DUE}, sequence)",
        "sequence_known": "coalesce(latest.producer_epoch = producer_epoch or epoch_lowest < producer_epoch, false)",
    }
    return (
        rows.withColumns({name: found.over(earlier) for name, found in around.items()})
        .withColumns({name: F.expr(text) for name, text in derived.items()})
        .drop(*around)
    )
