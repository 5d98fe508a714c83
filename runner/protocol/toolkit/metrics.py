"""Metrics of brokers, read as a monitoring system does: by JMX, from the process itself.

A metric is no request of the script; it enters the script by the statement about it. Brokers in containers have no
management agent that this machine can reach; there a precondition does not hold and the case is INCONCLUSIVE.
"""

from __future__ import annotations

from typing import Any

from chaos.cluster import BrokerId
from fixtures.clusters.local.management import management_address
from fixtures.clusters.local.processes import NodeProcesses
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.local_processes import need_local_processes
from wire.values import TopicPartition


class BrokerMetrics:
    """The metrics of one running broker; a broker that was started again needs a new one."""

    def __init__(self, case: CaseContext, broker: int) -> None:
        need_local_processes(case, "metrics are read from processes of this machine")
        assert isinstance(case.cluster, NodeProcesses)
        self._root = case.java.library.root
        pid = case.cluster.pids()[BrokerId(broker)]
        address = management_address(pid, directory=case.cluster.directory)
        remote = self._root.javax.management.remote
        self._connector = remote.JMXConnectorFactory.connect(remote.JMXServiceURL(address))
        self._server = self._connector.getMBeanServerConnection()

    def value(self, name: str, attribute: str = "Value") -> Any:
        """An attribute of a metric such as `kafka.server:type=ReplicaManager,name=LeaderCount`; None if it has no such."""
        found = self._root.javax.management.ObjectName(name)
        if not self._server.isRegistered(found):
            return None
        # A metric says which attributes it has. A sensor without a measurement has the value NaN.
        known = {each.getName() for each in self._server.getMBeanInfo(found).getAttributes()}
        return self._server.getAttribute(found, attribute) if attribute in known else None

    def close(self) -> None:
        """End the connection."""
        self._connector.close()


def of_partition(name: str, at: TopicPartition) -> str:
    """The name of a metric that each leader has per partition."""
    return f"kafka.cluster:type=Partition,name={name},topic={at.topic},partition={at.partition}"
