"""The one fixture that scenarios use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from runner.scenarios.planning import Variant


@pytest.fixture
def run(request: pytest.FixtureRequest, variant: Variant) -> Callable[..., None]:
    """Conduct the scenario that the test describes; the verdict follows when the judge has spoken."""
    from runner.scenarios.plugin import JUDGEMENT, SESSION

    run_scenario = request.config.stash[SESSION].runner_for(request, variant)

    def run_and_defer(**values: object) -> None:
        request.node.stash[JUDGEMENT] = run_scenario(**values)

    return run_and_defer
