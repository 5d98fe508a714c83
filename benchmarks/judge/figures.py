"""The measured ratios, their bounds, and `docs/generated/performance.md`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from benchmarks.judge.contenders import CONTENDERS, DUCKDB, LARGE, PRODUCT, SMALL, TEXTBOOK, Contender, Setting, Turn
from benchmarks.measuring.bound import Bound, promised
from benchmarks.measuring.ratio import Ratio, Unit
from benchmarks.measuring.table import aligned, render

_GIB = 1 << 30
#: The product is at least this much faster than the textbook, and at most this much slower than DuckDB.
FLOOR_LEAST = 4.0
YARDSTICK_MOST = 3.0
#: The most that ten times the records may take per record. Sorting takes a sixth more (log 10^7 / log 10^6 = 7 / 6),
#: and about as much again is for a busy machine.
GROWTH_MOST = 1.3
#: Of the driver, for any size: there is one driver, but as many workers as cores.
MEMORY_MOST_GIB = 4.0
#: Seconds from the start of the process to the verdict on `SMALL` records, all in order.
SMALL_MOST_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """All measurements on the evidence of one size: by contender, one entry per turn.

    `made` is the exact number of records.
    """

    setting: Setting
    made: int
    planted: int
    kinds: int
    judged: Mapping[Contender, Sequence[Turn]]

    def seconds(self, contender: Contender) -> float:
        """The median over the turns, whole processes."""
        return median(each.footprint.seconds for each in self.judged[contender])

    def peak_gib(self, contender: Contender) -> float:
        """The most over the turns."""
        return max(each.footprint.peak_bytes for each in self.judged[contender]) / _GIB

    def driver_gib(self, contender: Contender) -> float:
        """The most over the turns, without the processes that the driver's own children started."""
        return max(each.footprint.driver_bytes for each in self.judged[contender]) / _GIB

    def ratio(self, subject: Contender, against: Contender) -> Ratio:
        """Seconds divided by seconds, turn by turn."""
        pairs = zip(self.judged[subject], self.judged[against], strict=True)
        return Ratio(
            subject=f"{subject.name}, " + f"{self.setting.records:,} records".replace(",", " "),
            against=against.name,
            unit=Unit.SECONDS,
            pairs=tuple((one.footprint.seconds, other.footprint.seconds) for one, other in pairs),
        )


def ratios(sizes: Sequence[Size]) -> list[Ratio]:
    """The product compared with the others, by size."""
    return [
        size.ratio(PRODUCT, other)
        for size in sizes
        for other in (DUCKDB, TEXTBOOK)
        if PRODUCT in size.judged and other in size.judged
    ]


def bounds(sizes: Sequence[Size]) -> list[Bound]:
    """Every bound that the sizes allow: seconds of `SMALL` records, and ratios from `LARGE` records on."""
    found = []
    for size in (size for size in sizes if size.setting.records == SMALL and PRODUCT in size.judged):
        took = size.seconds(PRODUCT)
        text = f"{SMALL:,} records in order".replace(",", " ") + f": at most {SMALL_MOST_S:g} s from start to verdict"
        found.append(Bound(text=text, seen=took, holds=took <= SMALL_MOST_S))
    for size in sizes:
        if size.setting.records < LARGE or PRODUCT not in size.judged:
            continue
        records = f"{size.setting.records:,} records".replace(",", " ")
        if TEXTBOOK in size.judged:
            times = size.ratio(TEXTBOOK, PRODUCT).median
            text = f"at {records} at least {FLOOR_LEAST:g} times as fast as the textbook"
            found.append(Bound(text=text, seen=times, holds=times >= FLOOR_LEAST))
        if DUCKDB in size.judged:
            times = size.ratio(PRODUCT, DUCKDB).median
            text = f"at {records} at most {YARDSTICK_MOST:g} times as long as DuckDB"
            found.append(Bound(text=text, seen=times, holds=times <= YARDSTICK_MOST))
        peak = size.driver_gib(PRODUCT)
        text = f"at {records} at most {MEMORY_MOST_GIB:g} GiB of memory for the driver, its Python and its JVM"
        found.append(Bound(text=text, seen=peak, holds=peak <= MEMORY_MOST_GIB))
    return found + growth(sizes)


def growth(sizes: Sequence[Size]) -> list[Bound]:
    """Seconds per record of each size from `LARGE` on, compared with the size before it."""
    found = []
    for smaller, larger in pairwise(sizes):
        if larger.setting.records < LARGE or PRODUCT not in smaller.judged or PRODUCT not in larger.judged:
            continue
        one, other = (size.seconds(PRODUCT) / size.setting.records for size in (smaller, larger))
        names = [f"{size.setting.records:,}".replace(",", " ") for size in (smaller, larger)]
        text = f"from {names[0]} to {names[1]} records at most {GROWTH_MOST:g} times the seconds per record"
        found.append(Bound(text=text, seen=other / one, holds=other / one <= GROWTH_MOST))
    return found


def seen(sizes: Sequence[Size]) -> str:
    """The measurements of each contender, as a table."""
    rows = [
        (
            "records",
            "contender",
            "seconds",
            "records/s",
            "of it judging",
            "processor seconds",
            "peak memory",
            "driver's",
        )
    ]
    for size in sizes:
        for contender in CONTENDERS:
            if contender not in size.judged:
                continue
            turns = size.judged[contender]
            judging = [each.judged_s for each in turns if each.judged_s is not None]
            rate = f"{size.made / size.seconds(contender):,.0f}".replace(",", " ")
            rows.append(
                (
                    f"{size.setting.records:,}".replace(",", " "),
                    contender.name,
                    f"{size.seconds(contender):.1f} s",
                    rate,
                    f"{median(judging):.1f} s" if judging else "",
                    f"{median(each.footprint.processor_s for each in turns):.1f} s",
                    f"{size.peak_gib(contender):.1f} GiB",
                    f"{size.driver_gib(contender):.1f} GiB",
                )
            )
    return aligned(rows)


#: The libraries of the contenders, as the page names them.
PACKAGES = {"pyspark": "Spark", "duckdb": "DuckDB"}


_HEAD = """\
# Performance of the judge

Written by `tox -e bench-verify`. It makes evidence of several sizes with planted anomalies. Three contenders judge the same
directory by turns, each in a process of its own with the same number of threads:

* the product, `python -m verification`, from the start of the process to its verdict, witnesses and files included;
* the yardstick: the same anomalies in DuckDB (`benchmarks/judge/verify.sql`);
* the floor: one Spark query per anomaly (`benchmarks/judge/textbook.sql`).

Only the product and DuckDB judge more than 10 000 000 records, because the textbook takes an hour. In 100 000 records
nothing is planted, and only the product judges them, to measure the cost of a Spark session. Each contender found exactly
the planted violations, place by place; a contender that does not is an error and no figure. DuckDB also does the rest of
the product's work. It attributes consequences to findings, and writes the records of the log and of the readers around the
examples of each finding (`benchmarks/judge/surroundings.sql`). Its rows were compared with the product's, value by value.
The textbook writes no such records, which flatters it. Seconds are whole processes. Peak memory is the resident pages of
all processes of a contender together. The driver's memory is that of the process that was started and of its JVM, without
workers."""


def _settings_text(settings: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items())


def page(sizes: Sequence[Size], lines: Sequence[str]) -> str:
    """The text of `docs/generated/performance.md`."""
    planted = "; ".join(
        f"{size.planted} violations of {size.kinds} kinds in {size.setting.records:,} records".replace(",", " ")
        for size in sizes
        if size.planted
    )
    last = next((size.setting for size in reversed(sizes) if TEXTBOOK in size.judged), sizes[-1].setting)
    most = f"{last.records:,} records".replace(",", " ")
    facts = [
        *lines,
        f"planted, and found by all: {planted}",
        f"Spark's settings of the product: `{_settings_text(last.spark())}`, and its class archive, as after any run",
        f"Spark's settings of the textbook at {most}: `{_settings_text(last.textbook_spark())}`, and the same archive",
    ]
    text = [
        _HEAD,
        "",
        *(f"* {line}" for line in facts),
        "",
        "## Bounds",
        "",
        promised(bounds(sizes)),
        "",
        "## Ratios",
        "",
    ]
    text += [
        "Seconds of the product divided by those of the other, the median over the turns.",
        "",
        render(ratios(sizes)),
    ]
    return "\n".join([*text, "", "## Measurements", "", seen(sizes), ""])
