"""Programs of `planted_programs`, drawn by Hypothesis all at once, for tests that judge many of them in one job."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support.planted.programs import Program, programs


def generated(number: int, seeded: int) -> list[Program]:
    """So many programs, the same ones for the same seed."""
    several: list[Program] = []

    @seed(seeded)
    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def collect(program: Program) -> None:
        several.append(program)

    collect()
    return several
