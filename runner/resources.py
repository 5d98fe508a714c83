"""The resources that all scenarios of a run share: the Spark session and the judge; and the cluster of each lane.

Spark starts while the first cluster boots. The judge works on the evidence of some scenarios while the next ones run.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from fixtures.closing import Closing
from fixtures.clusters.pool import ClusterPool
from fixtures.errors import EnvironmentProblemError, OnceproofError
from runner.config import RunConfig
from runner.console import Console
from runner.environment import Environment
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.verdict import ScenarioVerdict, Verdict

LOG = logging.getLogger(__name__)
#: A judgement is mostly query planning, whose time does not grow with the scenarios. One alone took 12 s of processor
#: time, each of three 5 s, each of four 4 s, each of six 3 s. With more than four, a verdict comes minutes late.
JUDGED_TOGETHER = 4
#: Four scenarios are judged in 20 s, on a machine under heavy load in some minutes. A run waits no longer.
JUDGED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioLane:
    """A place for scenarios that follow each other on one cluster, with everything that they share with other lanes."""

    config: RunConfig
    console: Console
    environment: Environment
    clusters: ClusterPool
    spark: Callable[[], Any]
    capturing: threading.Lock
    """Held while evidence is captured: two captures at once take as long as one after the other, and starve a fault."""


class RunResources(Closing):
    """Owns Spark, the judge and the clusters of lanes for the length of a run."""

    def __init__(
        self,
        config: RunConfig,
        console: Console,
        *,
        environment: Environment,
    ) -> None:
        self.config = config
        self.console = console
        self.environment = environment
        self.seconds: dict[str, float] = {}
        self.spark_log = config.directory / "spark.log"
        self._abandoned = False
        self._stack = ExitStack()
        self._judging = threading.Lock()
        self._capturing = threading.Lock()
        self._unjudged: list[tuple[RunDirectory, Future[ScenarioVerdict]]] = []
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        self._spark = self._background.submit(self._start_spark)

    def _start_spark(self) -> Any:
        from verification.spark.session import start

        began = time.monotonic()
        session = start(java_home=self.environment.spark_java_home, log=self.spark_log)
        self.seconds["spark start-up"] = time.monotonic() - began
        LOG.info("Spark started in %.1f s; its log is %s", self.seconds["spark start-up"], self.spark_log)
        self._stack.callback(self._stop_spark, session)
        return session

    def _stop_spark(self, session: Any) -> None:
        if not self._abandoned:
            session.stop()

    def lane(self, number: int = 1) -> ScenarioLane:
        """A lane with a cluster and links of its own; they end with these resources, if not before."""
        place = self.environment.clusters_directory / f"lane-{number}"
        own = replace(self.environment, clusters_directory=place)
        clusters = ClusterPool(own.launch)
        self._stack.callback(clusters.close)
        return ScenarioLane(
            config=self.config,
            console=self.console,
            environment=own,
            clusters=clusters,
            spark=self.spark,
            capturing=self._capturing,
        )

    def spark(self) -> Any:
        """The Spark session; waits until it has started."""
        return self._spark.result()

    def judge_later(self, directory: RunDirectory) -> Future[ScenarioVerdict]:
        """Judge a scenario's evidence in the background, in order of submission, some scenarios at a time."""
        verdict: Future[ScenarioVerdict] = Future()
        with self._judging:
            self._unjudged.append((directory, verdict))
            waiting = len(self._unjudged)
        if waiting >= JUDGED_TOGETHER:
            self.judge_now()
        return verdict

    def judge_now(self) -> None:
        """Judge the evidence so far: no other scenario follows."""
        with self._judging:
            batch, self._unjudged = self._unjudged, []
        if batch:
            # answer dropped: each scenario of the batch has a future of its own
            self._background.submit(self._judge, batch)

    def _judge(self, batch: Sequence[tuple[RunDirectory, Future[ScenarioVerdict]]]) -> None:
        from verification.judge.judge import judge

        began, failed = time.monotonic(), None
        verdicts: Sequence[ScenarioVerdict | None] = [None] * len(batch)
        watchdog = threading.Timer(JUDGED_WITHIN_S, self.abandon_judge)
        watchdog.start()
        try:
            verdicts = judge(self.spark(), [directory for directory, _ in batch])
        except Exception as error:  # noqa: BLE001 - each scenario without a verdict needs the reason
            failed = error
        finally:
            watchdog.cancel()
            self.seconds["judging"] = self.seconds.get("judging", 0.0) + time.monotonic() - began
        if self._abandoned:
            why = f"The judgement was ended after {time.monotonic() - began:.0f} s; {self.spark_log} may say why."
            failed = EnvironmentProblemError(why)
        for (_, verdict), judged in zip(batch, verdicts, strict=True):
            # A judge whose JVM was ended says of its scenarios that the JVM has gone, and does not know the reason.
            if judged is None or (self._abandoned and judged.verdict is Verdict.ERROR):
                verdict.set_exception(failed)
            else:
                verdict.set_result(judged)

    def abandon_judge(self) -> None:
        """End the JVM of a judge that does not answer, so that the wait for it ends with an error."""
        from verification.spark.session import kill

        self._abandoned = True
        kill(self.spark())

    def hurry(self) -> None:
        """Do not wait for a judgement: its evidence is kept and can be judged again."""
        if self._spark.done() and not self._spark.cancelled() and self._spark.exception() is None:
            self.abandon_judge()

    def close(self) -> None:
        """End everything. A judgement that has begun is finished: its evidence is complete, and it takes seconds."""
        for _, verdict in self._unjudged:
            verdict.cancel()
        self._background.shutdown(wait=True)
        self._stack.close()

    def keep_classes(self) -> None:
        """Write Spark's class archive, which halves the start of the next session.

        This is done at the end of a run, because it takes both processors for 25 s. It is not done where `CI` is set:
        there the jars are unpacked again for every run, and an archive fits only the jars that it was made from.
        """
        from fixtures.tools.spark_class_archive import keep_classes

        java = self.environment.java
        if java is None or self._abandoned or os.environ.get("CI"):
            return
        try:
            keep_classes(java, say=self.console.say)
        except (OnceproofError, OSError) as error:
            self.console.say(f"Could not build Spark's class archive; the next start will be slower: {error}")
