"""Starts real local clusters for tests: of the default release, with a class archive, in temporary directories."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from fixtures.clusters.local.class_archive import sharing_options
from fixtures.clusters.local.cluster import LocalCluster, OtherRelease
from fixtures.clusters.locks.releases import default_release, fetch_release
from fixtures.clusters.spec import ClusterSpec
from fixtures.tools.java import find_java
from fixtures.tools.toxiproxy_build import fetch_toxiproxy

Launch = Callable[[ClusterSpec], LocalCluster]
RELEASE = str(default_release())
SINGLE_BROKER = ClusterSpec.of_one_broker(RELEASE)


def launcher(directories: pytest.TempPathFactory, others: Mapping[str, OtherRelease] | None = None) -> Launch:
    """A function that starts clusters, whose nodes may run these other releases, too; the caller closes them."""
    files, java, toxiproxy = fetch_release(default_release()), find_java(), fetch_toxiproxy()
    options = sharing_options(files, java, toxiproxy, say=print)

    def launch(spec: ClusterSpec) -> LocalCluster:
        return LocalCluster.launch(
            spec, files, java, toxiproxy, directories.mktemp("cluster"), options=options, others=others
        )

    return launch
