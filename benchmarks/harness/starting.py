"""Measures how much longer a three-broker cluster with all its links takes to start than one bare broker.

Both are measured from nothing to usable: ports, configuration, formatting, processes, readiness. They take turns, so
that a slow minute of the machine affects both. A bare broker is started in two ways: plainly, and with the class
archive that our clusters start with. So the gain of the archive is not confused with the cost of links and brokers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.bare import BareBroker
from benchmarks.measuring.ratio import Ratio, Unit
from fixtures.clusters.brokers.jvm import NO_OPTIONS
from fixtures.clusters.local.runtime import LocalRuntime
from fixtures.clusters.spec import ClusterSpec


def measure(runtime: LocalRuntime, directory: Path, *, pairs: int, say: Callable[[str], None]) -> tuple[Ratio, ...]:
    """Start each of the three `pairs` times by turns. Raises the errors of their starts."""
    plain = BareBroker(files=runtime.files, java=runtime.java, options=NO_OPTIONS)
    sharing = BareBroker(files=runtime.files, java=runtime.java, options=runtime.sharing)
    against_plain, against_sharing = [], []
    for turn in range(1, pairs + 1):
        cluster_s = _cluster_s(runtime, directory / f"cluster-{turn}")
        plain_s = plain.seconds_to_start(directory / f"plain-{turn}")
        sharing_s = sharing.seconds_to_start(directory / f"sharing-{turn}")
        against_plain.append((cluster_s, plain_s))
        against_sharing.append((cluster_s, sharing_s))
        say(
            f"starts {turn} of {pairs}: three brokers {cluster_s:.1f} s, bare {plain_s:.1f} s, "
            f"bare with class archive {sharing_s:.1f} s"
        )
    subject = "start of three brokers and all links"
    return (
        Ratio(subject=subject, against="start of a bare broker", unit=Unit.SECONDS, pairs=tuple(against_plain)),
        Ratio(
            subject=subject,
            against="start of a bare broker with our class archive",
            unit=Unit.SECONDS,
            pairs=tuple(against_sharing),
        ),
    )


def _cluster_s(runtime: LocalRuntime, directory: Path) -> float:
    """Seconds until a cluster is ready for scenarios; it is closed afterwards."""
    began = time.monotonic()
    cluster = runtime.launch(ClusterSpec(release=str(runtime.files.release)), directory, keep_data=False)
    try:
        return time.monotonic() - began
    finally:
        cluster.close()
