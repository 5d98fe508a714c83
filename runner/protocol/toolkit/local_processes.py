"""Says that a case needs brokers that are processes of this machine: clusters in containers lack some of what cases use."""

from __future__ import annotations

from fixtures.clusters.given.cluster import GivenCluster
from fixtures.clusters.local.processes import NodeProcesses
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.script_recorder import NotApplicableError


def need_local_processes(case: CaseContext, what: str) -> None:
    """Leave the case out where brokers are no local processes; `what` is not possible there. Raises NotApplicableError."""
    if isinstance(case.cluster, GivenCluster):
        raise NotApplicableError(f"not run on a cluster of yours: {what}")
    if not isinstance(case.cluster, NodeProcesses):
        raise NotApplicableError(left_out(what))


def left_out(what: str) -> str:
    """The reason why a case is left out where brokers run in containers."""
    return f"not run in containers: {what} (--runtime local)"
