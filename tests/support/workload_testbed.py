"""A workload with its recorder and its directory, for tests of running workloads."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

from chaos.clients import ClientProcess
from chaos.cluster import Site
from fixtures.clients.mock_cluster import PARTITIONS
from fixtures.recording.recorder import Recorder
from fixtures.workloads import OrderFanOut, WorkloadPlan
from fixtures.workloads.running import RunningWorkload
from verification.evidence.history_file import read
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.history import Action, History, Operation

APP = Site("app")
# Everything here takes milliseconds on a quiet machine.
PATIENCE_S = 60.0
QUICK = OrderFanOut(partitions=PARTITIONS, records_per_transaction=6, producers=2, rate=200)


class Bench:
    """One workload with its recorder and directory."""

    def __init__(
        self,
        root: Path,
        plan: WorkloadPlan,
        bootstrap: Callable[[Site], str],
        *,
        run: str = "",
        client: str = "confluent",
        release: str | None = None,
    ) -> None:
        self.run = run or secrets.token_hex(6)
        self.directory = RunDirectory(root / self.run)
        self.recorder = Recorder(self.directory, run=self.run)
        try:
            self.workload = RunningWorkload.start(
                plan,
                run=self.run,
                seed=7,
                bootstrap=bootstrap,
                directory=self.directory,
                recorder=self.recorder,
                client=client,
                release=release,
            )
        except BaseException:
            self.recorder.seal()
            raise

    def end(self) -> History:
        """Stop, close and seal; the history as a judge reads it."""
        self.workload.stop(PATIENCE_S)
        self.workload.close()
        self.recorder.seal()
        return read(self.directory.history)

    def provoke(self) -> None:
        """Let scripted drivers misbehave from now on, as their settings say."""
        (self.directory.root.parent / "when").touch()

    def first(self) -> ClientProcess:
        """The first transactional producer."""
        return next(each for each in self.workload.alive("producer") if each.transactional_id == f"{self.run}-0")


Start = Callable[..., Bench]


def until(condition: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, f"waited {PATIENCE_S} s for {what}"
        time.sleep(0.02)


def operations(history: History, process: int) -> list[Operation]:
    return [each for each in history.of(Operation) if each.process == process and each.action is not Action.INIT]
