"""The measured ratios, their bounds, and the page `docs/generated/reading.md`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

from benchmarks.measuring.bound import Bound, promised
from benchmarks.measuring.ratio import Ratio, Unit
from benchmarks.measuring.table import number, render
from benchmarks.reading.filling import PARTITIONS, RECORDS_PER_TRANSACTION, VALUE_BYTES
from benchmarks.reading.prebuilt import PREBUILT
from benchmarks.reading.reading import Took
from verification.sources.source import SourceName

#: The least ratio of `wire` to each of the others.
LEAST = {SourceName.CONNECTOR: 3.0, SourceName.CLIENT: 5.0}
NAMES = {
    SourceName.CONNECTOR: "Spark's own connector",
    SourceName.CLIENT: "confluent-kafka (source `client`)",
}
SUBJECTS = {SourceName.WIRE: "source `wire`", PREBUILT: "the ceiling of Python data sources"}
BY_PROCESSOR = ", per second of one processor"


def ratios(records: int, took: Mapping[str, Sequence[Took]]) -> tuple[Ratio, ...]:
    """Records per second of `wire` and of the ceiling, compared with those of the others, turn by turn.

    First by the clock, then per processor second.
    """
    many = f"{records:,}".replace(",", " ")

    def ratio(subject: str, other: SourceName, how: str, seconds: Callable[[Took], float]) -> Ratio:
        both = zip(took[subject], took[other], strict=True)
        return Ratio(
            subject=f"{SUBJECTS[subject]}, {many} records{how}",
            against=NAMES[other],
            unit=Unit.RECORDS_PER_S,
            pairs=tuple((records / seconds(mine), records / seconds(theirs)) for mine, theirs in both),
        )

    pairs = [(subject, other) for subject in SUBJECTS for other in NAMES]
    clock = [ratio(*pair, "", lambda each: each.seconds) for pair in pairs]
    return (*clock, *(ratio(*pair, BY_PROCESSOR, lambda each: each.processor_s) for pair in pairs))


def bounds(found: Sequence[Ratio]) -> tuple[Bound, ...]:
    """The bounds of `wire`'s ratios by the clock; the ceiling has none."""
    least = {NAMES[name]: value for name, value in LEAST.items()}
    return tuple(
        Bound(
            text=f"wire reads at least {number(least[each.against])} times as fast as {each.against}",
            seen=each.median,
            holds=each.median >= least[each.against],
        )
        for each in found
        if not each.subject.endswith(BY_PROCESSOR) and each.subject.startswith(SUBJECTS[SourceName.WIRE])
    )


def page(found: Sequence[Ratio], machine: Sequence[str]) -> str:
    """The text of `docs/generated/reading.md`."""
    facts = [
        *machine,
        f"pyspark {version('pyspark')}, confluent-kafka {version('confluent-kafka')}; {PARTITIONS} partitions, values of "
        f"{VALUE_BYTES} bytes, transactions of {RECORDS_PER_TRANSACTION} records, no compression",
    ]
    text = [_HEAD, "", *(f"* {line}" for line in facts), "", promised(bounds(found))]
    return "\n".join([*text, "", render(found), ""])


_HEAD = """\
# Speed of reading

Written by `tox -e bench-reading`. One broker of this machine holds a log that a real producer wrote. One Spark session
reads it by each source, by turns, after a turn that warms everything up. The broker runs on the same processors. The
ratio is the median over the turns. Processor seconds are those of the session's processes, without the broker's: on a busy
machine, only these can be compared.

Every source reads every record under `read_uncommitted`, checks every batch against its CRC, decodes each value's identity
and computes both digests. It gives Spark each row with every column of its schema, and Spark passes the rows to its sink
for measurements. If the records of two sources have different sums, that is an error and no figure. `connector` and
`client` have the 20 columns of `DELIVERED`. `wire` has these and six more of `LOG` (producer, epoch, sequence, leader
epoch, control, transactional) and the control records, so it has more to do. `wire` decodes identities with numpy in Python
workers, from which rows go to the JVM as Arrow. So does `client`, whose messages are Python objects first. `connector`
stays in the JVM and decodes them by Spark's own functions. It is tuned (`verification/sources/connector.py`): with its
default of 500 records to a poll it is slower. `wire` and `connector` are cut into tasks by offset. `client` reads whole
partitions, as many tasks at once as there are processors.

The ceiling is a source with the columns of `wire` that makes nothing: its tasks return one batch of the log again and
again, as many rows as `wire` returns (`benchmarks/reading/prebuilt.py`). Its time is Spark's own for any source written in
Python: the way from the worker to the JVM, and there from columns to rows. No reader of these columns can be faster than
the ceiling."""
