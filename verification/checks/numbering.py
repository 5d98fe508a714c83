"""Which number a producer's next record has to have in a partition (KIP-98), by the rule of the leaders that number it.

Read in `ProducerAppendInfo.checkSequence` and `ProducerStateManager` of 2.8.2, 3.9.0 and 4.3.1, which agree in this:

* after a record of the same epoch: the next number, and 0 after 2147483647, also within one batch;
* of a new epoch: 0. What a leader knows of a producer is its highest epoch, told by records and by control records
  (transaction.version 2 raises the epoch with them); a record of a lower epoch is a `zombie-write`, and neither judged nor
  followed here;
* of a producer that the leader does not know: any number. So nothing is said of the first record of a producer in a log. A
  control record of the same epoch before it makes it known and begins the epoch, but only in a log that begins at
  offset 0: else the records before that control record may have been deleted;
* of a producer whose state expired, any number again; see `broken_sequence`.

Followers and recovering brokers take numbers as they stand and learn the producer's state from them, so that a new leader
goes on where the log ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

#: The highest number, after which comes 0; as a mask it makes numbers go round.
NUMBER_MAX = (1 << 31) - 1
#: What `numbered` adds.
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

    `sequence_due` is the number that a record should have, null where it has it and where nothing can be said;
    `sequence_known` whether that stands whatever was deleted before. All earlier rows of the producer have to be there.
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
