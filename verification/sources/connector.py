"""Reads pinned ranges with Spark's own Kafka connector: the source `connector`, where the session has its jars.

It is a fourth source, and nothing depends on it: a release of Spark may have no connector (4.3.0 has none), and then only
a trial shows which jars fit. Columns are `DELIVERED`, as of `client`: a consumer receives no producer, epoch, sequence or
control record. Keys and headers, which it receives, are not in the schema. Spark's own functions parse the identity of
values (`identity_sql`), so that no Python runs in the workers.

Ends are pinned, as for every source. Under `read_committed` they must not be beyond the last stable offset: the
connector waits `timeout_s` for records that a transaction hides and then reports them as lost (`KafkaDataConsumer`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from verification.sources.identity_sql import identity_columns
from verification.sources.ranges import SPLIT_OFFSETS, Range, decode
from verification.sources.schema import DELIVERED
from verification.vocabulary.errors import CaptureError

ARTIFACT = "org.apache.spark:spark-sql-kafka-0-10_2.13"
#: Releases of Spark without a connector → the connector that tests use with them.
PROVEN = {"4.3.0": "4.2.0"}
#: The connector queries both ends after every poll, and the consumer drops its prefetched records
#: (`KafkaDataConsumer.getAvailableOffsetRange`). With its default of 500 records in a poll, this takes most of its time.
TUNED = {
    "max.poll.records": "50000",
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.max.bytes": str(64 << 20),
    "receive.buffer.bytes": str(1 << 20),
}


def frame(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The records of some ranges in the columns of `DELIVERED`; lazy.

    Options: `bootstrap`, `isolation`, `run`, `ranges` (see `ranges.encode`), `tasks`, `timeout_s`, `settings` (JSON of
    further settings of the Java consumer, without Spark's prefix), and optionally `split_offsets`.

    Raises CaptureError when the session has no connector, or one that does not fit, for two ranges of one partition, and for
    a range with a reference.
    """
    ranges = [each for each in decode(options["ranges"]) if each.length]
    if any(each.reference for each in ranges):
        raise CaptureError(
            "the source connector finds identities in values only; the other sources find them elsewhere"
        )
    if not ranges:
        return spark.createDataFrame([], DELIVERED)
    most = int(options.get("split_offsets", SPLIT_OFFSETS))
    total = sum(each.length for each in ranges)
    consumer = {
        **TUNED,
        **json.loads(options["settings"]),
        "bootstrap.servers": options["bootstrap"],
        "isolation.level": options["isolation"],
    }
    asked = {
        **{f"kafka.{name}": str(value) for name, value in consumer.items()},
        **_places(ranges),
        "failOnDataLoss": "true",
        "minPartitions": str(max(int(options["tasks"]), -(-total // most) if most else 1)),
        "kafkaConsumer.pollTimeoutMs": str(round(float(options["timeout_s"]) * 1000)),
    }
    return _delivered(_loaded(spark, asked), options["run"], ranges)


def _places(ranges: Sequence[Range]) -> dict[str, str]:
    """The ranges as the connector's options."""
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for each in ranges:
        if each.partition in assigned.setdefault(each.topic, []):
            raise CaptureError(
                f"two ranges are of {each.topic}-{each.partition}; the connector reads one of a partition"
            )
        assigned[each.topic].append(each.partition)
        starts.setdefault(each.topic, {})[str(each.partition)] = each.start
        ends.setdefault(each.topic, {})[str(each.partition)] = each.end
    texts = {"assign": assigned, "startingOffsets": starts, "endingOffsets": ends}
    return {name: json.dumps(value) for name, value in texts.items()}


def _loaded(spark: SparkSession, asked: Mapping[str, str]) -> DataFrame:
    try:
        found = spark.read.format("kafka").options(**asked).load()
        # A remote session looks for the connector when the columns are accessed.
        assert found.columns
    except AnalysisException as error:
        if "data source" not in str(error).lower():
            raise
        raise CaptureError(_absent(spark.version)) from error
    except Exception as error:
        # Linkage errors and the like, however they are wrapped.
        said = next((line.strip(" :\t") for line in str(error).splitlines() if "java." in line), repr(error))
        raise CaptureError(f"the Kafka connector of this session does not fit Spark {spark.version}: {said}") from error
    return found


def _absent(version: str) -> str:
    known = PROVEN.get(version)
    which = f"{ARTIFACT}:{known or version}"
    trust = (
        f"{version} has none of its own, and this one was tried with it"
        if known
        else "if that was published; the other sources need none"
    )
    return f"Spark has no Kafka connector here: start it with spark.jars.packages={which} ({trust})"


def _delivered(given: DataFrame, run: str, ranges: Sequence[Range]) -> DataFrame:
    numbers = {each.topic: each.topic_index for each in ranges}
    index = F.create_map(*[F.lit(part) for pair in numbers.items() for part in pair])
    columns = {
        "run": F.lit(run),
        "topic": F.col("topic"),
        "topic_index": index[F.col("topic")],
        "partition": F.col("partition"),
        "offset": F.col("offset"),
        "timestamp_ms": F.unix_millis("timestamp"),
        **identity_columns(F.col("value")),
    }
    types = {field.name: field.dataType for field in DELIVERED.fields}
    return given.select(*[columns[name].cast(types[name]).alias(name) for name in DELIVERED.names])
