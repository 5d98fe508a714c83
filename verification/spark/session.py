"""The one Spark session of a process.

Most of the time of a small judgement is start-up, so the defaults here make start-up quick. Users can change every key:
`spark.master`, `spark.remote`, memory, shuffle partitions and all others. A key is taken from `options`, `SPARK_REMOTE`,
`MASTER`, `PYSPARK_SUBMIT_ARGS` or `spark-defaults.conf`, in this order; our default applies when none of them has it. So
the same jobs run on a Spark cluster when one machine is not enough.

Defaults, each measured on two cores: C1 only and the serial collector (session and first job 5.4 s instead of
7–8 s), no UI, two shuffle partitions (200 make a small job 2.5 times slower), no adaptive execution (it makes a job of
every exchange, which costs more than it saves). They suit large evidence too: Python workers read its records
(`verification.fingerprints`), and the JVM sees few of them.

The output of the JVM goes to a file, which is kept where the caller wants it. Its start-up warnings are not about the
run, but an error that Spark itself does not report is nowhere else. The JVM ends with this process, because it watches
the pipe of its standard input. Its temporary files have a directory of their own: a JVM that is killed leaves them.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from verification.spark import class_archive
from verification.spark.java import spark_java
from verification.spark.log_filters import filter_repeated_errors
from verification.vocabulary.errors import SessionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Lines of the JVM's output that go into an error message.
TAIL_LINES = 12

#: A JVM takes 7 s to write a class archive on a quiet machine, and several times that under load.
END_WITHIN_S = 120.0

#: Settings of the SQL engine, which a remote session accepts as well.
SQL_DEFAULTS: dict[str, str] = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Evidence is a handful of small compressed files per run: pack them into few tasks.
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Dataframes that are partitioned by some keys of a join are joined without another exchange.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}

#: By default Arrow checks every access to a value against the bounds of its buffer and against its null bit. Spark checks
#: the null bit itself, and reads only rows that a batch has. Without Arrow's checks our sources are read in four fifths of
#: the time.
ARROW_OPTIONS = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"

#: The driver's address for executors on its machine. Executors elsewhere would look for it on their own machine.
LOOPBACK: dict[str, str] = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

#: Settings of the application, which a remote session already has.
APPLICATION_DEFAULTS: dict[str, str] = {
    "spark.app.name": "onceproof",
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # One judgement generates more classes than the default cache of 100 holds: each would compile all of them again.
    "spark.sql.codegen.cache.maxEntries": "2000",
    **LOOPBACK,
    "spark.shuffle.compress": "false",
    # One compiler tier has 48 MB for code by default. Spark compiles classes for every query: a session of twenty
    # judgements filled it: compilation ended, then a thread that serves results, and then the session hung.
    "spark.driver.extraJavaOptions": (
        f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m -XX:ReservedCodeCacheSize=256m {ARROW_OPTIONS}"
    ),
}

_LOCK = threading.Lock()
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
#: Masters whose executors run on this machine.
_HERE = re.compile(r"local($|[\[-])|spark://(127\.|localhost:)")


def _submit_arguments() -> Iterator[str]:
    """Keys that PYSPARK_SUBMIT_ARGS sets, as `--conf key=value` or by another option of spark-submit."""
    own = {"--master": "spark.master", "--driver-memory": "spark.driver.memory", "--name": "spark.app.name"}
    own["--driver-java-options"] = "spark.driver.extraJavaOptions"
    words = os.environ.get("PYSPARK_SUBMIT_ARGS", "").replace("=", " ").split()
    for word, following in pairwise(words):
        if word in ("--conf", "-c"):
            yield following
        elif word in own:
            yield own[word]


def _defaults_file() -> Iterator[str]:
    """Keys that the user's spark-defaults.conf sets."""
    folder = os.environ.get("SPARK_CONF_DIR") or (
        str(Path(os.environ["SPARK_HOME"]) / "conf") if os.environ.get("SPARK_HOME") else None
    )
    path = Path(folder) / "spark-defaults.conf" if folder else None
    if path is None or not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        words = re.split(r"[\s=]+", line.strip(), maxsplit=1)
        if words[0] and not words[0].startswith("#"):
            yield words[0]


def settings(options: Mapping[str, str]) -> dict[str, str]:
    """The settings of the session: the user's `options`, and our default for every key that the user did not set."""
    remote = "spark.remote" in options or bool(os.environ.get("SPARK_REMOTE"))
    theirs = {*options, *_submit_arguments(), *_defaults_file()}
    if os.environ.get("MASTER"):
        theirs.add("spark.master")
    ours = SQL_DEFAULTS if remote else {**SQL_DEFAULTS, **APPLICATION_DEFAULTS}
    chosen = {key: value for key, value in ours.items() if key not in theirs}
    if not remote and os.environ.get("MASTER") and "spark.master" not in options:
        chosen["spark.master"] = os.environ["MASTER"]
    if not _HERE.match(options.get("spark.master", chosen.get("spark.master", ""))):
        chosen = {key: value for key, value in chosen.items() if key not in LOOPBACK}
    if _JVM_OPTIONS in chosen:
        chosen[_JVM_OPTIONS] = " ".join([chosen[_JVM_OPTIONS], *class_archive.sharing_options()])
    chosen |= options
    if not remote and _JVM_OPTIONS in chosen:
        # Options of the user in Spark's defaults file would be replaced by ours, so none is added to those.
        chosen[_JVM_OPTIONS] = f"{chosen[_JVM_OPTIONS]} {_logging()}".strip()
    return chosen


def _logging() -> str:
    """The JVM option that keeps log4j to errors; the file is next to this module."""
    return f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def _launch(chosen: dict[str, str], log: Path | None) -> SparkSession:
    """Start the JVM with its output in a file, and the session in it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    chosen = {**chosen, **_scratch(chosen)}
    conf = SparkConf(loadDefaults=False).setAll(list(chosen.items()))
    with _output(log) as output:
        # A process group of its own: SIGTERM to the group of this process must not end a judgement that is in flight.
        options = {"stdout": output, "stderr": output, "process_group": 0}
        try:
            gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
            session = SparkSession(SparkContext(conf=conf, gateway=gateway), options=dict(chosen))
        except Exception as error:
            output.seek(0)
            tail = "\n".join(output.read().splitlines()[-TAIL_LINES:])
            raise SessionError(f"Spark did not start: {error}\n{tail}") from error
    _translate_errors_of(gateway)
    return session


def _translate_errors_of(gateway: Any) -> None:
    """Let pyspark translate the errors of its own JVM alone.

    It translates those of all JVMs that this process speaks to, and looks their exceptions up in its own, by an id that may
    belong to anything there. An exception of a Java client then came as an error about a setting of Spark.
    """
    from py4j import java_gateway, protocol

    translated, plain, own = java_gateway.get_return_value, protocol.get_return_value, gateway._gateway_client

    def value(answer: str, client: object, *more: Any) -> Any:
        return (translated if client is own else plain)(answer, client, *more)

    java_gateway.get_return_value = value


def _scratch(chosen: Mapping[str, str]) -> dict[str, str]:
    """Options that name a directory for the JVM's temporary files, which is removed at the end of this process.

    Spark takes it for blocks too, unless the user names another one. Options of the JVM in Spark's defaults file are left
    as they are.
    """
    if _JVM_OPTIONS not in chosen:
        return {}
    directory = tempfile.mkdtemp(prefix="onceproof-spark-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return {_JVM_OPTIONS: f"{chosen[_JVM_OPTIONS]} -Djava.io.tmpdir={directory}"}


def _output(log: Path | None) -> IO[str]:
    if log is None:
        return tempfile.NamedTemporaryFile(mode="w+", prefix="spark-jvm-", suffix=".log", errors="replace")
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("w+", encoding="utf-8", errors="replace")


def kill(session: SparkSession) -> None:
    """Kill the JVM of a session that no longer answers; callers that wait for it get an error. Not for remote sessions."""
    gateway = getattr(session.sparkContext, "_gateway", None)
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()


def end(session: SparkSession) -> None:
    """Stop a session and wait until its JVM has ended by itself: only then is its class archive written.

    Raises subprocess.TimeoutExpired after `END_WITHIN_S`. Not for remote sessions.
    """
    gateway = session.sparkContext._gateway
    assert gateway is not None, "a session of this process has one"
    session.stop()
    gateway.shutdown()
    # The JVM ends at the end of its input.
    gateway.proc.stdin.close()
    gateway.proc.wait(END_WITHIN_S)


def start(
    *,
    java_home: Path | None = None,
    options: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> SparkSession:
    """The session of this process, started when there is none.

    `java_home` is the Java of the driver's JVM; without it `spark_java` looks for one;
    `options` are the user's Spark settings and win over every default. `log` is the file for the output of the JVM, by
    default a temporary one. Thread-safe, so that it can start in the background.

    Raises JavaUnfitError before anything starts, SessionError when the JVM or the remote server does not start.
    """
    from pyspark.sql import SparkSession

    with _LOCK:
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        chosen = settings(options or {})
        if _HERE.match(chosen.get("spark.master", "local")):
            # Workers must be this interpreter: the default is `python3` on PATH, which may lack pyarrow. Other machines
            # may have it elsewhere.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        filter_repeated_errors()
        if "spark.remote" in chosen or os.environ.get("SPARK_REMOTE"):
            try:
                return SparkSession.builder.config(map=dict(chosen)).getOrCreate()
            except Exception as error:
                raise SessionError(f"the Spark Connect server did not answer: {error}") from error
        home = spark_java(java_home)
        if home is not None:
            os.environ["JAVA_HOME"] = str(home)
        else:
            # The launcher would prefer it to PATH, and it is unfit.
            os.environ.pop("JAVA_HOME", None)
        return _launch(chosen, log)
