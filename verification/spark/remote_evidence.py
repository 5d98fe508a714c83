"""Reads evidence on a file system that only Spark reads: `hdfs://`, `s3a://`, every one that Hadoop supports.

Small files, and files that this process reads line by line, are copied (`COPIED`). The captures stay in place: executors
read them, and every query about them is a job. All access goes through Spark's own readers, with the settings and the
credentials of the session. So it works the same with a session on a cluster and with a Connect server.

`binaryFile` returns a file as one value, of which the JVM holds several copies: a file of 70 MB takes a heap of 1 GB, and
one of 2 GB or more cannot be copied. Of Parquet files only the footers come here. Executors read small files whole for
them, all in one job. Spark's Parquet reader reads the footers of large ones, in two jobs each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from verification.evidence.capture_reader import LOG_ROW, MARKER, LogRow, Place, in_order, unreadable
from verification.spark.errors import in_a_line, jvm_ended
from verification.vocabulary.errors import SessionError, UnfitEvidenceError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: `file:/a` is one too; a drive of Windows has one letter before its colon.
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")
#: The files of a scenario, a case or a whole run that are copied: those that the judge reads itself, or the report needs.
COPIED = frozenset(
    {
        "run.json",
        "baseline.json",
        "README.txt",
        "scenario.json",
        "script.json",
        "history.jsonl",
        "captures.json",
        "transaction_log.jsonl.gz",
        "counts.jsonl.gz",
        "peer.jsonl.gz",
        "acks",
        "observations",
    }
)
#: The first and the last bytes of a Parquet file.
_MAGIC = b"PAR1"
#: From this size on Parquet files are not read whole for their footers.
LARGE_BYTES = 16 << 20


def is_uri(text: str) -> bool:
    """Whether a location is a URI."""
    return _URI.match(text) is not None


def local_path(text: str) -> Path | None:
    """The path that a name without a scheme or a `file:` URI stands for, None for other URIs."""
    if not is_uri(text):
        return Path(text)
    parts = urlsplit(text)
    return Path(unquote(parts.path)) if parts.scheme.lower() == "file" else None


def without_scheme(location: str) -> str:
    """A location with local files as `/a`, which Spark writes in two ways, and others as their URI."""
    return re.sub(r"^file:/+", "/", location)


def escaped(location: str) -> str:
    """A location escaped for Spark's readers, where Hadoop treats `{}[]*?` as patterns."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", location)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRun:
    """A copy of the small files of a run: its directory here, and the URI of the original, as Spark writes it."""

    root: Path
    source: str

    def source_of(self, path: Path) -> str:
        """The URI of the original of a directory of the copy."""
        return f"{self.source}/{path.relative_to(self.root).as_posix()}" if path != self.root else self.source


def copy_small_files(spark: SparkSession, uri: str, into: Path) -> CopiedRun:
    """Copy the run at `uri`, without its captures, into a directory of its name below `into`.

    Raises UnfitEvidenceError when nothing is there, when it cannot be read or written, when a file arrives with another
    length, and when the directory exists: its files would count as evidence of this run. Raises SessionError when Spark
    ends meanwhile.
    """
    base = _as_hadoop_reads(uri)
    target = into / PurePosixPath(base).name
    if target.exists():
        raise UnfitEvidenceError(f"{target} exists already; name another directory with --output")
    with _one_sentence(uri):
        listed = _files(spark, base).select("path", "length").toArrow().to_pylist()
    names = {row["path"]: _below(base, row["path"]) for row in listed}
    wanted = {row["path"]: row["length"] for row in listed if _is_copied(names[row["path"]])}
    if not wanted:
        raise UnfitEvidenceError(f"{uri} holds nothing of a run")
    some = next(iter(wanted))
    try:
        into.mkdir(parents=True, exist_ok=True)
        # Renamed when it is whole: a report on a part of a run would not mention the missing scenarios.
        with TemporaryDirectory(prefix=".copy-", dir=into) as place:
            copied = Path(place, target.name)
            for path, content in _contents(spark, uri, wanted):
                if len(content) != (expected := wanted.pop(path)):
                    raise UnfitEvidenceError(f"{path} arrived with {len(content)} bytes instead of its {expected}")
                (copied / names[path]).parent.mkdir(parents=True, exist_ok=True)
                (copied / names[path]).write_bytes(content)
            if wanted:
                raise UnfitEvidenceError(f"{min(wanted)} was listed but did not arrive")
            copied.rename(target)
    except OSError as error:
        raise UnfitEvidenceError(
            f"{target} cannot be written ({error}); name another directory with --output"
        ) from error
    return CopiedRun(root=target, source=some.removesuffix(names[some]).rstrip("/"))


def _contents(spark: SparkSession, uri: str, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    with _one_sentence(uri):
        for row in _files(spark, *paths).select("path", "content").toLocalIterator():
            yield row["path"], bytes(row["content"])


def _as_hadoop_reads(uri: str) -> str:
    """The location with names as Hadoop reads them: without escapes, which URIs of local files have."""
    bare = uri.rstrip("/")
    return unquote(bare) if bare.lower().startswith("file:") else bare


def _files(spark: SparkSession, *paths: str) -> DataFrame:
    """Every file below some paths without hidden ones (`_` and `.`): path, length, content."""
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load([escaped(path) for path in paths])


def _below(base: str, path: str) -> str:
    """The part of a file's name below its run; only one of the two may have its authority."""
    root, full = (re.sub(r"^[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?", "", each) for each in (base, path))
    return full.removeprefix(root.rstrip("/")).lstrip("/")


def _is_copied(name: str) -> bool:
    """Whether a file of a whole run (`runs/<scenario>/…`) or of one scenario is copied."""
    parts = name.split("/")
    return (parts[2] if parts[0] == "runs" and len(parts) > 2 else parts[0]) in COPIED


@contextmanager
def _one_sentence(place: str) -> Iterator[None]:
    """Turn an error of Spark about a location into one sentence."""
    try:
        yield
    except UnfitEvidenceError:
        raise
    except Exception as error:
        if jvm_ended(error):
            raise SessionError(in_a_line(error)) from error
        raise UnfitEvidenceError(f"{place} cannot be read: {in_a_line(error)}{_advice(str(error))}") from error


def _advice(said: str) -> str:
    """Advice for a session whose connector to a file system is missing or incomplete."""
    if 'for scheme "s3"' in said:
        return "; Hadoop calls it s3a://"
    if re.search(r"ClassNotFoundException|NoClassDefFoundError|No FileSystem for scheme", said):
        return (
            "; the session needs its connector, which --spark spark.jars.packages=… brings (docs/writing/pipeline.md)"
        )
    return ""


@dataclass(frozen=True, slots=True)
class _Footer:
    """The used parts of a Parquet file's footer."""

    schema: pa.Schema
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class RemoteCaptures:
    """The captures of the scenario at `source`; results are cached, because every query is a job."""

    spark: SparkSession
    source: str
    _present: dict[str, bool] = field(default_factory=dict)
    _footers: dict[str, dict[str, _Footer]] = field(default_factory=dict)
    _rows: dict[tuple[int, int], tuple[LogRow, ...]] = field(default_factory=dict)

    def present(self, name: str) -> bool:
        """Whether the folder has the marker."""
        if name not in self._present:
            self._present[name] = self._ask_present(name)
        return self._present[name]

    def _ask_present(self, name: str) -> bool:
        """Spark raises for paths that do not exist, and returns no rows for hidden files."""
        from pyspark.errors import AnalysisException

        folder = f"{self.source}/{name}"
        with _one_sentence(folder):
            try:
                # A remote session looks for the path when the columns are accessed.
                return bool(_files(self.spark, f"{folder}/{MARKER}").columns)
            except AnalysisException as error:
                if error.getCondition() == "PATH_NOT_FOUND":
                    return False
                raise

    def schemas(self, name: str) -> Iterator[tuple[str, pa.Schema]]:
        """From the footers; raises UnfitEvidenceError for a file that has none."""
        for path, footer in self._footers_of(name).items():
            yield path, footer.schema

    def count(self, name: str) -> int:
        """From the footers."""
        return sum(footer.rows for footer in self._footers_of(name).values())

    def topic_rows(self, name: str) -> dict[int, int]:
        """One job."""
        return {row["topic_index"]: row["count"] for row in _rows_of(self._read(name).groupBy("topic_index").count())}

    def last_offsets(self, name: str) -> dict[Place, int]:
        """One job."""
        from pyspark.sql import functions as F  # noqa: N812

        ends = self._read(name).groupBy("topic_index", "partition").agg(F.max("offset").alias("end"))
        return {(row["topic_index"], row["partition"]): row["end"] for row in _rows_of(ends)}

    def producer_rows(self, process: int, operation: int) -> tuple[LogRow, ...]:
        """Two jobs, once per operation."""
        key = (process, operation)
        if key not in self._rows:
            log = self._read("log")
            own = log.where(log["process"].eqNullSafe(process) & log["operation"].eqNullSafe(operation))
            producers = [row["producer_id"] for row in _rows_of(own.select("producer_id").distinct())]
            found = _rows_of(log.where(log["producer_id"].isin(producers)).select(*LOG_ROW))
            self._rows[key] = in_order(tuple(row.values()) for row in found)
        return self._rows[key]

    def _read(self, name: str) -> DataFrame:
        return self.spark.read.parquet(escaped(f"{self.source}/{name}"))

    def _footers_of(self, name: str) -> dict[str, _Footer]:
        if name not in self._footers:
            self._footers[name] = dict(self._ask_footers(f"{self.source}/{name}"))
        return self._footers[name]

    def _ask_footers(self, folder: str) -> Iterator[tuple[str, _Footer]]:
        """A footer's last eight bytes are its own length, little-endian, and the magic (parquet-format, File format)."""
        from pyspark.sql import functions as F  # noqa: N812

        digits = ", ".join(f"hex(substring(content, length(content) - {place}, 1))" for place in (4, 5, 6, 7))
        first = f"length(content) - cast(conv(concat({digits}), 16, 10) as bigint) - 7"
        tail = F.expr(f"substring(content, cast(greatest(1, {first}) as int))").alias("tail")
        none = F.lit(None).cast("binary").alias("tail")
        with _one_sentence(folder):
            files = _files(self.spark, folder).where(F.col("path").endswith(".parquet"))
            # Spark pushes this bound down to the reader, which leaves larger files unread.
            small = files.where(F.col("length") < LARGE_BYTES).select("path", tail)
            large = files.where(F.col("length") >= LARGE_BYTES).select("path", none)
            found = _rows_of(small.unionByName(large))
        for path, held in sorted((row["path"], row["tail"]) for row in found):
            yield path, _footer_in(path, held) if held is not None else self._footer_by_spark(path)

    def _footer_by_spark(self, path: str) -> _Footer:
        from pyspark.sql.pandas.types import to_arrow_schema

        with _one_sentence(path):
            try:
                frame = self.spark.read.parquet(escaped(path))
                return _Footer(to_arrow_schema(frame.schema), frame.count())
            except Exception as error:
                if "is not a Parquet file" in str(error):
                    raise UnfitEvidenceError(unreadable(path, in_a_line(error))) from error
                raise


def _footer_in(path: str, tail: bytes) -> _Footer:
    import pyarrow.parquet as pq

    try:
        read = pq.ParquetFile(BytesIO(_MAGIC + tail)).metadata
    except (OSError, ValueError) as error:
        raise UnfitEvidenceError(unreadable(path, error)) from error
    return _Footer(read.schema.to_arrow_schema(), int(read.num_rows))


def _rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows
