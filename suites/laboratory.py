"""The laboratory: what all scenarios of a run share.

One pool of clusters, one Spark session that starts while the first cluster boots, one judge that works on the evidence
of a scenario while the next one runs, one directory, one console. Everything is given back when it closes, in the
reverse order, also when closing one thing fails.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from fixtures.clusters.pool import ClusterPool
from suites.config import RunConfig
from suites.console import Console
from suites.equipment import Equipment
from verification.layout import RunDirectory
from verification.verdict import ScenarioVerdict

if TYPE_CHECKING:
    from types import TracebackType

#: The judge works on the scenario before the one that runs, and must not take its brokers' time when a fault strikes.
JUDGE_NICENESS = 10


class Laboratory:
    """Owns clusters, Spark and the judge for the length of a run."""

    def __init__(
        self,
        config: RunConfig,
        console: Console,
        *,
        equipment: Equipment,
    ) -> None:
        self.config = config
        self.console = console
        self.equipment = equipment
        self.clusters = ClusterPool(equipment.launch)
        self.seconds: dict[str, float] = {}
        self._stack = ExitStack()
        self._stack.callback(self.clusters.close)
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        self._spark = self._background.submit(self._start_spark)

    def _start_spark(self) -> Any:
        from verification.session import start

        began = time.monotonic()
        session = start(java_home=self.equipment.spark_java_home, niceness=JUDGE_NICENESS)
        self.seconds["spark start-up"] = time.monotonic() - began
        self._stack.callback(session.stop)
        return session

    def spark(self) -> Any:
        """The session; waits for its start-up."""
        return self._spark.result()

    def judge_later(self, directory: RunDirectory) -> Future[ScenarioVerdict]:
        """Judge a scenario's evidence in the background, in order of submission."""
        return self._background.submit(self._judge, directory)

    def _judge(self, directory: RunDirectory) -> ScenarioVerdict:
        from verification.judge import judge

        began = time.monotonic()
        (verdict,) = judge(self.spark(), [directory])
        self.seconds["judging"] = self.seconds.get("judging", 0.0) + time.monotonic() - began
        return verdict

    def close(self) -> None:
        """End everything: judgements that have not begun are dropped, the one in flight is finished."""
        self._background.shutdown(wait=True, cancel_futures=True)
        self._stack.close()

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
