"""One scenario being run: how each phase is carried out. `described_run.py` has everything that the phases share.

It owns the clients, the recorder and the lease of a cluster, and ends all of them. The order of the phases is in
`runner/scenarios/phases.py`.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from chaos.arena import Arena
from chaos.errors import NodeLostError
from chaos.operations.rolling import require_running
from fixtures.clients.registry import client_kind
from fixtures.clusters.health import await_healthy
from fixtures.errors import EnvironmentProblemError, SamplingError
from fixtures.recording.another_client import write_transaction
from fixtures.recording.metric_sampler import MeteredCluster, MetricSampler
from fixtures.recording.quiescence import Quiescence
from fixtures.recording.recorder import Recorder
from fixtures.recording.sampler import Sampler
from fixtures.workloads import names
from fixtures.workloads.running import RunningWorkload
from fixtures.workloads.upgrade import JAVA as UPGRADED_CLIENT
from runner.scenarios.described_run import DescribedRun
from runner.scenarios.pipeline_surroundings import PipelineSurroundings
from verification.evidence import transaction_log_file
from verification.evidence.stalls.unserved_clients import ANOTHER_CLIENT
from verification.vocabulary.history import FaultRecord, Phase
from verification.vocabulary.transaction_log import TOPIC as TRANSACTION_LOG
from wire.errors import WireError
from wire.messages import Definitions
from wire.values import TopicPartition

LOG = logging.getLogger(__name__)
#: Far more than a cluster needs that serves its clients; the evidence says how long it took.
ANOTHER_CLIENT_WITHIN_S = 30.0


class ScenarioRun(DescribedRun):
    """One scenario being run."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name the phase in the live line, in the history and in errors."""
        self.phase_name = name
        LOG.info("%s: %s begins", self.directory.root.name, name)
        began_ns = time.monotonic_ns()
        note = ""
        try:
            yield
        except BaseException as error:
            note = f"{type(error).__name__}: {error}"
            raise
        finally:
            ended_ns = time.monotonic_ns()
            how = f": {note}" if note else ""
            LOG.info("%s: %s ended after %.1f s%s", self.directory.root.name, name, (ended_ns - began_ns) / 1e9, how)
            if self._recorder is not None:
                self._recorder.record(Phase(name=name, began_ns=began_ns, ended_ns=ended_ns, note=note))

    def set_up(self) -> None:
        """Lease a healthy cluster, create the topics and describe the run."""
        self.directory.root.mkdir(parents=True)
        self._recorder = Recorder(self.directory, run=self.run)
        self.cluster = self.lane.clusters.lease(self.spec())
        self._quiescence = Quiescence(
            self.cluster,
            *self.lane.environment.witness_definitions,
            position=self.scenario.workload.position,
            access=self.access(),
        )
        self._features, self._not_offered = self._quiescence.features(), self._quiescence.not_offered
        self.create_topics()
        self._log_reader = self._quiescence.transaction_log_reader()
        environment = self.lane.environment
        self.surroundings = PipelineSurroundings.open(
            self.scenario.workload,
            self.topics(),
            run=self.run,
            named=self.named,
            log=self.directory.root / "postgres.log",
            definitions=environment.definitions,
            release=self.spec().release,
            launch=environment.launch,
        )
        self.write_experiment()

    def create_topics(self) -> None:
        """Create the topics of the run."""
        self.quiescence.create_topics(self.topics(), self.scenario.topic_settings)

    def start_workload(self) -> None:
        """Start every client and the sampler of ends. Clients of a cluster that is upgraded are of its old release."""
        config = self.lane.config
        if config.upgrade is not None:
            # The clients that follow. Under load their class archive took longer than a successor may: it is made now.
            client_kind(UPGRADED_CLIENT).command(config.upgrade.target.version)
        self._workload = self.workload = RunningWorkload.start(
            self.surroundings.placed(self.scenario.workload),
            run=self.run,
            seed=self.scenario.seed,
            bootstrap=self.cluster.bootstrap,
            directory=self.directory,
            recorder=self.recorder,
            client=self.scenario.client,
            release=(config.release if config.upgrade is None else config.upgrade.source).version,
            prefix=config.prefix,
            settings=self.client_settings,
            budget=self.budget,
        )
        self.arena = Arena(
            cluster=self.cluster,
            clients=self.workload,
            topics=names(self.scenario.workload, self.named),
            group=self.scenario.workload.group(self.named),
            definitions=Definitions.load(self.lane.environment.definitions),
            admin=self.quiescence.client,
            database=self.surroundings.server,
            peer=None if self.surroundings.peer is None else self.surroundings.peer.cluster,
        )
        led = (TRANSACTION_LOG,) if self.experiment().nodes else ()
        self._sampler = Sampler(self.cluster, self.partitions(), self.recorder, led, also=self.surroundings.positions)
        self._sampler.start()
        if isinstance(self.cluster, MeteredCluster):
            own = frozenset(map(str, self.partitions()))
            self._metrics = MetricSampler(self.cluster, self.recorder, own.__contains__)
            self._metrics.start()

    def await_turn(self) -> None:
        """The clients work: wait until the schedule may begin, which is now."""

    def hold(self, seconds: float) -> None:
        """Let a fault last, or let time pass before it."""
        time.sleep(seconds)

    def record_fault(self, step: FaultRecord) -> None:
        """Put one step of the schedule into the history."""
        self.recorder.record(step)

    def recover(self, *, timeout_s: float) -> None:
        """Wait until every broker is back, every link open and every replica in sync, while clients go on working.

        Clients work at a fraction of their rate: on two cores, a broker that starts under the full load takes 20 s. In an
        upgrade a node that is down now has ended by itself: that raises NodeLostError, and the history names it.
        """
        upgrades = self.lane.config.upgrade is not None
        try:
            with self.workload.eased():
                require = partial(require_running, self.arena) if upgrades else lambda: None
                await_healthy(self.cluster, timeout_s=timeout_s, idle=False, require=require)
        except NodeLostError as error:
            self.recorder.record(self._loss(error))
            raise

    def _loss(self, error: NodeLostError) -> FaultRecord:
        """The loss of a node that no step had down, as a step after all others of the schedule."""
        schedule, lost = self.scenario.schedule, error.lost
        return FaultRecord(
            step=len(schedule),
            fault="NodeEnded",
            description=f"node {lost.node} ended by itself",
            target=f"node {lost.node}, {lost.release}",
            began_ns=lost.at_ns,
            error=f"{type(error).__name__}: {error}",
            stage=self.phase_name if any(step.stage == self.phase_name for step in schedule) else "",
            lost=lost,
        )

    def try_another_client(self, problem: EnvironmentProblemError) -> None:
        """Let a client that is no subject write to the cluster. Raises `problem` if it cannot either."""
        if self._tried:
            return
        failed_in = self.phase_name
        try:
            with self.phase(ANOTHER_CLIENT):
                self.ends()
                self._tried = True
                write_transaction(
                    self.quiescence.client,
                    self.another_topic,
                    replication=self.scenario.replication,
                    within_s=ANOTHER_CLIENT_WITHIN_S,
                )
        except WireError as error:
            self.phase_name = failed_in
            problem.add_note(f"another client cannot work either: {error}")
            raise problem from error
        self.tell(f"judged as far as it went: {problem} Another client writes and commits.")

    def drain_pipeline(self, *, feeder_within_s: float) -> None:
        """Let a pipeline work off what it has taken on; without that its copies are not judged (floor `drained`)."""
        group, pipeline = self.scenario.workload.group(self.named), self.surroundings.pipeline
        if group is None or pipeline is None:
            return
        drain = self.surroundings.drain(self.quiescence, group, self.topics())
        if not drain.needed:
            return
        self.workload.stop_feeding(feeder_within_s)
        if problem := drain.complete(timeout_s=pipeline.drained_within_s):
            self._undrained = True
            self.tell(problem)
            return
        for sample in drain.between():
            self.recorder.record(sample)

    def settle(self, *, before_fencing: bool) -> None:
        """Wait for LSO = high watermark within its bound, and record for each partition whether it was reached."""
        timeout_s = self.scenario.workload.transaction_timeout_s if before_fencing else 0.0
        for settled in self.quiescence.settle(
            self.partitions(),
            transactional_ids=self.workload.transactional_ids,
            timeout_s=timeout_s,
            before_fencing=before_fencing,
            others_write=self.experiment().pipeline is not None,
        ):
            self.recorder.record(settled)

    def fence(self) -> None:
        """Initialise a successor of every transactional id; record the partitions that only this released."""
        self.quiescence.fence(self.workload.transactional_ids)
        if self._stuck():
            self.settle(before_fencing=False)

    def drain(self, *, timeout_s: float) -> None:
        """Let the live observers read to the end, then end every client."""
        ends = self.ends()
        behind = self.workload.drain_observers(
            {TopicPartition(topic=end.topic, partition=end.partition): end.last_stable_offset for end in ends},
            timeout_s=timeout_s,
        )
        if behind:
            # The judge finds it in the evidence (`observers_at_end`); the console names the observers.
            self.tell(f"did not read to the end: {'; '.join(f'{name} at {where}' for name, where in behind.items())}")
        self.workload.close()
        self._stop_sampler()
        if self._unsampled is not None:
            raise self._unsampled
        self.require_working()

    def pin(self) -> None:
        """Pin the ends, ask the coordinators, and write their answers down."""
        self.captures = self.quiescence.pin(
            self.partitions(),
            transactional_ids=self.workload.transactional_ids,
            group=self.scenario.workload.group(self.named),
        )
        clients = self.directory.root / "clients"
        self.captures, self._effects = self.surroundings.pinned(self.captures, self.quiescence, clients)
        self.captures.write(self.directory.captures)
        self.keep_peer_log()
        self.keep_transaction_log()
        self.write_experiment()

    def keep_peer_log(self) -> None:
        """Write down the log of the second cluster, if there is one. It is not judged, so all else is kept without it."""
        try:
            self.surroundings.keep_peer(self.directory, self.quiescence, self.run)
        except WireError as error:
            self.tell(f"the log of the second cluster is not kept: {error}")

    def keep_transaction_log(self) -> None:
        """Write down the coordinators' log, which is complete: no producer of the run is left."""
        assert self._log_reader is not None, "the log is pinned when the run is set up"
        log = self._log_reader.read(self.run, self.workload.transactional_ids)
        self._entries = log.entries
        transaction_log_file.write(self.directory.transaction_log, log)

    def capture_arguments(self) -> dict[str, Any]:
        """The arguments of the capture besides a session and a directory."""
        return {
            "bootstrap": self.cluster.witness_bootstrap,
            "captures": self.captures,
            "experiment": self.experiment(),
            "definitions": [self.lane.environment.definitions],
            "effects": self._effects,
        }

    def clear(self) -> None:
        """Delete the topics, and those that a pipeline made.

        A transaction that hangs must not fail the next scenario, and brokers restart faster. Topics stay when the user keeps
        the brokers' data. The next health check judges a topic that cannot be deleted.
        """
        if self._quiescence is not None and not self.lane.config.keep:
            with suppress(WireError):
                self._quiescence.delete_topics(f"{self.named}-")

    def close(self) -> None:
        """End clients, heal links, seal the evidence. Parts that are already gone are no error.

        An error of one step does not keep the others from being done; then the last error is raised.
        """
        cluster = getattr(self, "cluster", None)
        with ExitStack() as last_first:
            if self._recorder is not None:
                last_first.callback(self._recorder.seal)
            last_first.callback(self.surroundings.close)
            if cluster is not None:
                last_first.callback(self._keep_broker_logs)
                last_first.callback(cluster.links.heal)
            if self._quiescence is not None:
                last_first.callback(self._quiescence.close)
            if self._workload is not None:
                last_first.callback(self._workload.close)
            last_first.callback(self._stop_sampler)

    def require_working(self) -> None:
        """Raise EnvironmentProblemError when a process failed that is no subject."""
        if self.workload.problems:
            raise EnvironmentProblemError(f"The workload's own processes failed: {' '.join(self.workload.problems)}")

    def _stop_sampler(self) -> None:
        for sampler in filter(None, (self._sampler, self._metrics)):
            try:
                sampler.stop()
            except SamplingError as error:
                self._unsampled = error
        self._sampler = self._metrics = None

    def _keep_broker_logs(self) -> None:
        kept = {self.directory.brokers: self.cluster}
        if (peer := self.surroundings.peer) is not None:
            kept[self.directory.brokers / "second-cluster"] = peer.cluster
        for place, cluster in kept.items():
            if (logs := cluster.directory / "brokers").is_dir():
                with suppress(OSError):
                    shutil.copytree(logs, place, dirs_exist_ok=True)
