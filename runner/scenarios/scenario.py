"""A scenario: a claim about a subject under an attack, as one value.

A test function below `suites/<family>` *is* a scenario. Its docstring is the claim, and its `requirement` marker names
the requirements. Its one call to `run` gives the subject (cluster, workload) and the attack (schedule). It contains no
assertion, because nothing is judged while it runs. It is called twice: when it is collected, to read the description,
so that a wrong one is refused before anything starts; and when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import pytest

from chaos.schedule import Schedule, duration_s
from fixtures.clusters.spec import ClusterSpec
from fixtures.workloads import WorkloadPlan
from fixtures.workloads.pipeline import APART, SITES
from verification.coverage.coverage import MEASURES
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.errors import UnknownFloorError
from verification.vocabulary.experiment import Floor

requirement = pytest.mark.requirement
smoke = pytest.mark.smoke
both_clients = pytest.mark.both_clients
convict = pytest.mark.convict
nightly = pytest.mark.nightly
tv2 = pytest.mark.tv2
first_tv2 = pytest.mark.first_tv2
librdkafka = pytest.mark.librdkafka
zookeeper = pytest.mark.zookeeper
local_only = pytest.mark.local_only
own_pipeline = pytest.mark.own_pipeline
share_groups = pytest.mark.share_groups

#: A cluster without its release: the run says which one.
ClusterMaker = Callable[..., ClusterSpec]
THREE_BROKERS: ClusterMaker = partial(ClusterSpec, brokers=3)
PIPELINE_CLUSTER: ClusterMaker = partial(ClusterSpec, brokers=3, sites=SITES)
#: One with a site for the first instance alone.
APART_CLUSTER: ClusterMaker = partial(ClusterSpec, brokers=3, sites=(*SITES, APART))

#: The coverage that a pass needs: enough operations before, during and after the fault, and enough records in all.
FLOORS: tuple[Floor, ...] = (
    Floor(name="ok_before", need=50),
    Floor(name="attempted_during", need=10),
    Floor(name="ok_after", need=50),
    Floor(name="records", need=10_000),
    # Every step of the schedule, however many there are.
    Floor(name="faults_confirmed", need=1),
    Floor(name="observers_at_end", need=2),
)
#: A transaction that spans a fault takes long. Thirty after the fault fit into the shortest after-window, which is 3 s.
TRANSACTIONS = (
    Floor(name="transactions", need=200),
    Floor(name="transactions_after", need=30),
    Floor(name="aborted", need=1),
)
#: A control is decided by its findings; it needs no more coverage than a confirmed fault.
STRUCK = (Floor(name="ok_before", need=20), Floor(name="faults_confirmed", need=1))
#: A pipeline copied before and after the faults, and some of its transactions were aborted. The least that was seen of the
#: first two is 319 offsets.
PIPELINE_FLOORS = (
    *(Floor(name=name, need=need) for name, need in (("ok_before", 20), ("attempted_during", 10), ("ok_after", 20))),
    Floor(name="faults_confirmed", need=1),
    Floor(name="observers_at_end", need=2),
    Floor(name="copied_before", need=200),
    Floor(name="copied_after", need=200),
    # When one part of a pipeline stops for good, the others still meet the floors above.
    Floor(name="caught_up", need=1),
    # Every kill, pause and cut of an instance met a transaction; one that met none tested nothing.
    Floor(name="met_work", need=1),
    Floor(name="interrupted_copies", need=1),
    Floor(name="drained", need=1),
)
#: Faults that a pipeline may outlive without an abort.
BROKEN_FLOORS = tuple(each for each in PIPELINE_FLOORS if each.name != "interrupted_copies")
#: In each stage of an upgrade, kind of stage and placement, and across each roll. The shortest stage lasts 1 s, on a busy
#: machine longer. The least number of transactions in one that was seen is 22. One producer waits in each roll.
STAGES = (
    Floor(name="transactions_each_stage", need=5),
    Floor(name="aborted_each_kind", need=1),
    Floor(name="offsets_each_kind", need=1),
    Floor(name="transactions_each_placement", need=5),
    Floor(name="spanned_each_roll", need=1),
)


class RunScenario(Protocol):
    """The `run` that a scenario calls, once: subject, attack and coverage floors, as documented at `Scenario`."""

    def __call__(
        self,
        *,
        cluster: ClusterMaker,
        workload: WorkloadPlan,
        schedule: Schedule = (),
        floors: tuple[Floor, ...] = FLOORS,
        observe_s: float = 3.0,
        replication: int = 3,
        min_in_sync: int = 2,
        mock: bool = False,
        copies_on: bool = True,
        survives: bool = False,
        topic_settings: Mapping[str, str] = {},
    ) -> None:
        """Describe the scenario while tests are collected; run it when its turn comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Subject, attack and claim, with the coverage that a verdict needs.

    `name` is `<family>/<name>`; `expects` names the anomalies that must be found in a control. `observe_s` is the least
    time that the workload runs before the first fault and after the last one. `mock` uses librdkafka's mock cluster
    instead of a cluster. `copies_on` says that copiers are expected to copy everything in the end. `survives` says that
    nothing in the schedule may end a transactional producer for good.

    Raises UnknownFloorError for a floor that nothing measures, ValueError for an anomaly that does not exist.
    """

    name: str
    test_name: str
    claim: str
    requirements: tuple[str, ...]
    cluster: ClusterMaker
    workload: WorkloadPlan
    schedule: Schedule = ()
    floors: tuple[Floor, ...] = FLOORS
    expects: tuple[str, ...] = ()
    client: str = "confluent"
    seed: int = 0
    observe_s: float = 3.0
    replication: int = 3
    min_in_sync: int = 2
    mock: bool = False
    copies_on: bool = True
    survives: bool = False
    topic_settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := [each.name for each in self.floors if each.name not in MEASURES]:
            raise UnknownFloorError(f"coverage floor {unknown[0]!r} is unknown; known are {', '.join(MEASURES)}")
        for anomaly in "|".join(self.expects).split("|") if self.expects else ():
            Anomaly(anomaly)
        # One confirmed fault says nothing about the other steps.
        floors = (
            replace(each, need=max(each.need, len(self.schedule))) if each.name == "faults_confirmed" else each
            for each in self.floors
        )
        object.__setattr__(self, "floors", tuple(floors))

    @property
    def key(self) -> str:
        """Its name in this run, which is also the name of its directory below `runs/`."""
        return f"{self.name.replace('/', '-')}-{self.client}-{self.seed}"

    @property
    def least_s(self) -> float:
        """The least time that the experiment itself takes."""
        return duration_s(self.schedule) + 2 * self.observe_s
