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


def standing_on(engine: Engine, label: str = OWNER_LABEL) -> set[str]:
    """Kinds and names of all containers, networks and volumes with a label; by default those of all runs."""
    filters = {"label": label}
    api = engine.client.api
    return {
        *(f"container {each['Names'][0]}" for each in api.containers(all=True, filters=filters)),
        *(f"network {each['Name']}" for each in api.networks(filters=filters)),
        *(f"volume {each['Name']}" for each in api.volumes(filters=filters)["Volumes"] or ()),
    }


def standing_of(engine: Engine, cluster: str) -> set[str]:
    """Names of the containers, networks and volumes of a cluster that the engine still has."""
    return standing_on(engine, f"{CLUSTER_LABEL}={cluster}")
