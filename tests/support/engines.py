"""The Docker engine of tests in containers, and the containers and networks that are on it."""

from __future__ import annotations

import os

import pytest

from fixtures.clusters.docker.engine import OWNER_LABEL, Engine
from fixtures.clusters.errors import EngineUnavailableError


def answering() -> Engine:
    """An engine. Where none answers the test is skipped, unless ONCEPROOF_REQUIRE_DOCKER says otherwise."""
    try:
        return Engine.connect()
    except EngineUnavailableError as error:
        if os.environ.get("ONCEPROOF_REQUIRE_DOCKER") == "1":
            raise
        pytest.skip(str(error))


def standing_on(engine: Engine) -> set[str]:
    """Ids of all containers and networks with our label, also those of other runs."""
    filters = {"label": OWNER_LABEL}
    api = engine.client.api
    return {str(each["Id"]) for each in (*api.containers(all=True, filters=filters), *api.networks(filters=filters))}
