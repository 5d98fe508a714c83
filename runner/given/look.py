"""Opens the cluster of the user only to look at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fixtures.clusters.given.broker_commands import BrokerCommands
from fixtures.clusters.given.cluster import GivenCluster
from fixtures.clusters.given.runtime import GivenRuntime
from fixtures.clusters.locks.releases import ReleaseFiles
from fixtures.clusters.spec import ClusterSpec
from runner.given.options import GivenOptions


@contextmanager
def looked_at(given: GivenOptions, files: ReleaseFiles) -> Iterator[GivenCluster]:
    """The cluster of the user, to look at it; nothing is created there. Raises ObservationError."""
    runtime = GivenRuntime(
        connection=given.connection, files=files, toxiproxy=None, commands=BrokerCommands(), program=given.program
    )
    with TemporaryDirectory(prefix="onceproof-look-") as place:
        spec = ClusterSpec(release=files.release.version)
        with closing(runtime.launch(spec, Path(place), keep_data=False)) as cluster:
            yield cluster
