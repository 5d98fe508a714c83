"""A request that the network delivers again, late, does not end a producer."""

from __future__ import annotations

from chaos.cluster import Site
from chaos.faults.late_duplicate import LateDuplicate
from chaos.link_targets import FromSite
from chaos.schedule import Step
from fixtures.workloads import OrderFanOut
from runner.scenarios.scenario import (
    FLOORS,
    THREE_BROKERS,
    TRANSACTIONS,
    RunScenario,
    librdkafka,
    local_only,
    nightly,
    requirement,
)
from verification.vocabulary.experiment import Floor

#: After this time a client gives a request up and sends it again; its transactions last 30 s.
SOCKET_TIMEOUT_MS = 1500


@nightly
@librdkafka
@local_only
@requirement("TXN-31", "IDEMP-28", "TXN-25")
def test_late_duplicate(run: RunScenario) -> None:
    """A producer one of whose requests arrives again after its transaction goes on with the next transaction."""
    # One partition of each topic: the next transaction writes to the partition of the late request.
    run(
        cluster=THREE_BROKERS,
        workload=OrderFanOut(partitions=1, settings={"socket.timeout.ms": SOCKET_TIMEOUT_MS}),
        schedule=(
            Step(fault=LateDuplicate(on=FromSite(Site("app"))), hold_s=3, confirm_within_s=60),
            Step(fault=LateDuplicate(on=FromSite(Site("app")), producer=1), hold_s=3, confirm_within_s=60),
        ),
        floors=(*FLOORS, *TRANSACTIONS, Floor(name="struck_after", need=1)),
        survives=True,
    )
