"""What was measured, as ratios, as bounds that hold or do not, and as `docs/reading.md`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

from suites.bench.bound import Bound, promised
from suites.bench.ratio import Ratio, Unit
from suites.bench.table import Circumstances, number, render
from suites.bench_reading.filling import PARTITIONS, RECORDS_PER_TRANSACTION, VALUE_BYTES
from suites.bench_reading.reading import Took
from verification.sources.source import SourceName

#: `wire` reads at least so many times as fast as the others.
LEAST = {SourceName.CONNECTOR: 3.0, SourceName.CLIENT: 5.0}
NAMES = {
    SourceName.CONNECTOR: "Spark's own connector",
    SourceName.CLIENT: "confluent-kafka (source `client`)",
}
BY_PROCESSOR = ", per second of one processor"


def ratios(records: int, took: Mapping[SourceName, Sequence[Took]]) -> tuple[Ratio, ...]:
    """Records per second of `wire` against those of the others, turn by turn: of the clock, then of one processor."""
    many = f"{records:,}".replace(",", " ")

    def ratio(other: SourceName, how: str, seconds: Callable[[Took], float]) -> Ratio:
        both = zip(took[SourceName.WIRE], took[other], strict=True)
        return Ratio(
            subject=f"source `wire`, {many} records{how}",
            against=NAMES[other],
            unit=Unit.RECORDS_PER_S,
            pairs=tuple((records / seconds(mine), records / seconds(theirs)) for mine, theirs in both),
        )

    others = [source for source in took if source is not SourceName.WIRE]
    clock = [ratio(other, "", lambda each: each.seconds) for other in others]
    return (*clock, *(ratio(other, BY_PROCESSOR, lambda each: each.processor_s) for other in others))


def bounds(found: Sequence[Ratio]) -> tuple[Bound, ...]:
    """What was promised of each ratio of the clock."""
    least = {NAMES[name]: value for name, value in LEAST.items()}
    return tuple(
        Bound(
            text=f"wire reads at least {number(least[each.against])} times as fast as {each.against}",
            seen=each.median,
            holds=each.median >= least[each.against],
        )
        for each in found
        if not each.subject.endswith(BY_PROCESSOR)
    )


def page(found: Sequence[Ratio], here: Circumstances) -> str:
    """`docs/reading.md`."""
    facts = [
        *here.lines(),
        f"pyspark {version('pyspark')}, confluent-kafka {version('confluent-kafka')}; {PARTITIONS} partitions, values of "
        f"{VALUE_BYTES} bytes, transactions of {RECORDS_PER_TRANSACTION} records, no compression",
    ]
    text = [_HEAD, "", *(f"* {line}" for line in facts), "", promised(bounds(found))]
    return "\n".join([*text, "", render(found), ""])


_HEAD = """\
# Speed of reading

Written by `tox -e bench-reading`. One broker of this machine holds a log that a real producer wrote. One Spark session
reads it by each source, by turns, after a turn that warms everything up. The broker runs on the same processors. The
ratio is the median over the turns. Processor seconds are those of the session's processes, without the broker's; they are
what is left to compare where a machine is not alone.

What each does: all read every record under `read_uncommitted`, hold every batch against its CRC, take each value's
identity apart, compute both digests, and give Spark each row with every column of their schema, which goes into its sink
for measurements. Sources whose records have other sums are an error and no figure. `connector` and `client` give the 20
columns of `DELIVERED`; `wire` gives these and six more of `LOG` (producer, epoch, sequence, leader epoch, control,
transactional) and the control records, so it has more to do. It takes identities apart with numpy in Python workers, from
which rows go to the JVM as Arrow; so does `client`, whose messages are Python objects before. `connector` stays in the
JVM and takes them apart by Spark's own functions. It is tuned (`verification/sources/connector.py`); with its default of
500 records to a poll it is slower. `wire` and `connector` are cut into tasks by offset; `client` reads whole partitions,
as many tasks at once as there are processors."""
