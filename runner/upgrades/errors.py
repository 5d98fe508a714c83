"""Errors of a request about the stages of an upgrade."""

from __future__ import annotations

from collections.abc import Sequence

from fixtures.errors import UsageError


class UnknownStageError(UsageError):
    """`--stop-after` names a stage that the upgrade has not."""

    def __init__(self, stage: str, known: Sequence[str]) -> None:
        names = ", ".join(f'"{each}"' for each in dict.fromkeys(known))
        super().__init__(f'The upgrade has no stage "{stage}" to stop after; it has {names}.')
