"""The one fixture that scenarios use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from runner.scenarios.planning import Variant
    from runner.scenarios.scenario import RunScenario


@pytest.fixture
def run(request: pytest.FixtureRequest, variant: Variant) -> RunScenario:
    """Run the scenario that the test describes; its verdict follows when it has been judged."""
    del variant  # named so that pytest repeats the test for each client and seed
    from runner.scenarios.plugin import JUDGEMENT, SESSION

    def run_and_defer(**_: object) -> None:
        # The description was read when the test was collected.
        request.node.stash[JUDGEMENT] = request.config.stash[SESSION].run(request.node)

    return run_and_defer
