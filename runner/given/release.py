"""Chooses the release that a run expects of a cluster of the user, if `--kafka` does not name one.

No request tells the release of a broker. Its line is known from the highest `metadata.version` in its answer to ApiVersions
(KIP-584). The finalized level is not asked, because it stays behind after an upgrade until the operator raises it.
"""

from __future__ import annotations

from chaos.cluster import BrokerId
from fixtures.clusters.locks.releases import Release, default_release, fetch_clients, supported_releases
from fixtures.errors import EnvironmentProblemError
from runner.given.cluster_watcher import by_release
from runner.given.options import ANSWERS_WITHIN_S, GivenOptions
from runner.upgrades.path import line_of, release_lines
from wire.errors import WireError
from wire.messages import Definitions


def chosen_release(given: GivenOptions) -> tuple[Release, str]:
    """The newest supported release of the line that the brokers show, and a line that says why it was chosen.

    If they show several lines, as in an upgrade, it is of the oldest one, which all of them speak. If they show none, or do
    not answer, it is the newest supported release. The look of the run says why a cluster does not answer.
    """
    if given.program:
        return _newest("the run starts the broker later")
    try:
        definitions = Definitions.load(fetch_clients(default_release()))
        with given.connection.client(definitions, timeout_s=ANSWERS_WITHIN_S) as client:
            client.connection()  # a closed port is noticed at once, and Metadata would be asked for again and again
            shown = release_lines({BrokerId(each): client.features(each) for each in client.metadata([]).brokers})
    except (WireError, EnvironmentProblemError):
        return _newest("no answer of the cluster shows its line")
    known = [each for each in supported_releases() if f"Kafka {line_of(each)}" in shown.values()]
    if not known:
        return _newest(f"the brokers show {by_release(shown) or 'no feature levels'}")
    release = max(each for each in known if line_of(each) == line_of(known[0]))
    return release, f"release: {release}, the newest supported of the line that the brokers show ({by_release(shown)})"


def _newest(why: str) -> tuple[Release, str]:
    return (
        default_release(),
        f"release: {default_release()}, the newest supported, because {why}; --kafka names another",
    )
