"""The Docker engine of tests in containers, and the containers, networks and volumes that are on it."""

from __future__ import annotations

import os

import pytest

from fixtures.clusters.docker.engine import CLUSTER_LABEL, OWNER_LABEL, Engine
from fixtures.clusters.errors import EngineUnavailableError


def answering() -> Engine:
    """An engine. Where none answers the test is skipped, unless ONCEPROOF_REQUIRE_DOCKER says otherwise."""
    try:
        return Engine.connect()
    except EngineUnavailableError as error:
        if os.environ.get("ONCEPROOF_REQUIRE_DOCKER") == "1":
            raise
        pytest.skip(str(error))


def standing_of(engine: Engine, cluster: str) -> set[str]:
    """Names of the containers, networks and volumes of a cluster that the engine still has."""
    return set(_owners(engine, f"{CLUSTER_LABEL}={cluster}"))


def standing_of_run(engine: Engine, pid: int) -> set[str]:
    """The same of the run with this process id; other tests use the engine at the same time."""
    return {name for name, owner in _owners(engine, OWNER_LABEL).items() if f"/{pid}@" in owner}


def _owners(engine: Engine, label: str) -> dict[str, str]:
    """The owner of each container, network and volume with a label, by its kind and name."""
    filters = {"label": label}
    api = engine.client.api
    standing = {
        **{f"container {each['Names'][0]}": each for each in api.containers(all=True, filters=filters)},
        **{f"network {each['Name']}": each for each in api.networks(filters=filters)},
        **{f"volume {each['Name']}": each for each in api.volumes(filters=filters)["Volumes"] or ()},
    }
    return {name: each["Labels"][OWNER_LABEL] for name, each in standing.items()}
