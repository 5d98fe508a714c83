"""A batch of mutants as dataframes for the checks: hundreds of runs in one job.

A mutant is nearly all of its base. So Spark receives the bases once, and for every mutant the numbers of the rows that
it removes and the rows that it adds. Spark builds the dataframes: base × mutants, without the removed rows, with the
added ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.judge_mutants.base import Base
from benchmarks.judge_mutants.in_memory_rows import run_in_memory
from benchmarks.judge_mutants.mutant import Mutant
from verification.checks.walks import WALKS
from verification.evidence.row_types import Row
from verification.fingerprints.workers.agreement import disagreement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from verification.spark.dataframes import Dataframes
    from verification.vocabulary.violations import RawViolation


def _renamed(row: Row, base: Base, run: str) -> Row:
    """A row of a base as a row of a mutant: every name of the base's run is replaced."""
    own = {"run": run}
    if row.get("identity_run") == base.run["run"]:
        own["identity_run"] = run
    return {**row, **own}


def _added(mutant: Mutant, frame: str) -> list[Row]:
    ours = {id(row) for row in mutant.base.rows[frame]}
    return [_renamed(row, mutant.base, mutant.name) for row in mutant.rows[frame] if id(row) not in ours]


def _gone(mutant: Mutant, frame: str) -> list[dict[str, Any]]:
    kept = {id(row) for row in mutant.rows[frame]}
    rows = enumerate(mutant.base.rows[frame])
    return [{"run": mutant.name, "number": number} for number, row in rows if id(row) not in kept]


def _columns(rows: Iterable[Row], names: Sequence[str]) -> list[Row]:
    return [{name: row.get(name) for name in names} for row in rows]


def _bulk(spark: SparkSession, bases: Sequence[Base], mutants: Sequence[Mutant], frame: str) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    from verification.spark.dataframes import FRAME_SCHEMAS, local

    schema = FRAME_SCHEMAS[frame]
    text, number = StringType(), IntegerType()
    of_base = StructType([*schema.fields, StructField("base", text), StructField("number", number)])
    numbered: list[Row] = []
    for base in bases:
        rows = enumerate(_columns(base.rows[frame], schema.names))
        numbered += [{**row, "base": base.name, "number": at} for at, row in rows]
    named = StructType([StructField("base", text), StructField("mutant", text), StructField("own", text)])
    owners = [{"base": each.base.name, "mutant": each.name, "own": each.base.run["run"]} for each in mutants]
    missing = StructType([StructField("mutant", text), StructField("number", number)])
    gone = [{"mutant": row["run"], "number": row["number"]} for each in mutants for row in _gone(each, frame)]
    every = (
        local(spark, numbered, of_base)
        .join(F.broadcast(local(spark, owners, named)), "base")
        .join(F.broadcast(local(spark, gone, missing)), ["mutant", "number"], "left_anti")
        .withColumn("run", F.col("mutant"))
    )
    if "identity_run" in schema.names:
        every = every.withColumn("identity_run", F.expr("case when identity_run = own then run else identity_run end"))
    added = [row for each in mutants for row in _columns(_added(each, frame), schema.names)]
    return every.select(*schema.names).unionByName(local(spark, added, schema))


def _small(spark: SparkSession, mutants: Sequence[Mutant], frame: str, schema: StructType) -> DataFrame:
    from verification.spark.dataframes import local

    rows = [_renamed(row, each.base, each.name) for each in mutants for row in each.rows[frame]]
    return local(spark, _columns(rows, schema.names), schema)


def frames(spark: SparkSession, mutants: Sequence[Mutant]) -> Dataframes:
    """The evidence of some mutants, each as a run of its own."""
    from verification.spark.dataframes import BULK, FRAME_SCHEMAS, Dataframes

    # Spark builds the dataframes with a row per record. The others are small and sent complete.
    bases = list({each.base.name: each.base for each in mutants}.values())
    held = {
        name: _bulk(spark, bases, mutants, name) if name in BULK else _small(spark, mutants, name, schema)
        for name, schema in FRAME_SCHEMAS.items()
    }
    return Dataframes(**held)


def passed_unread(spark: SparkSession, mutants: Sequence[Mutant]) -> frozenset[str]:
    """The mutants that would pass without any record being read, as `verification.judge.quick_pass` decides it."""
    from verification.checks import CHECKS
    from verification.checks.facts import without_records
    from verification.judge.run_checks import collect

    found = collect(without_records(frames(spark, mutants)), [check for check in CHECKS if check.without_records])
    return frozenset(
        each.name
        for each in mutants
        if each.name not in found
        and each.rows["runs"][0]["has_log"]
        and not any(walk.over(each.rows) for walk in WALKS.values())
        and disagreement(run_in_memory(each.rows)) is None
    )


def judged(spark: SparkSession, mutants: Sequence[Mutant]) -> dict[str, list[RawViolation]]:
    """Every violation that the checks find, by mutant: those with dataframes in one job, and the others."""
    from verification.checks import CHECKS
    from verification.checks.facts import derive
    from verification.judge.run_checks import collect

    found = collect(derive(frames(spark, mutants)), CHECKS)
    for mutant in mutants:
        for walk in WALKS.values():
            found.setdefault(mutant.name, []).extend(walk.over(mutant.rows))
    return found
