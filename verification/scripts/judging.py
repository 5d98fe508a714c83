"""Judges saved scripts of protocol cases again: from each file alone, without Spark, in the order of their directories.

A script that cannot be judged becomes an ERROR with a sentence; the others are judged anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from verification.evidence.run_directory import SCRIPT
from verification.scripts import script as scripts
from verification.scripts.script import Script, ScriptVerdict, UnfitScriptError
from verification.vocabulary.verdict import ExitCode, Verdict, code_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedScript:
    """A case's directory, its script and the verdict on it; None when the script is unfit, for the reason in `unfit`."""

    directory: Path
    verdict: ScriptVerdict | None
    script: Script | None = None
    unfit: str = ""

    @property
    def code(self) -> ExitCode | None:
        """The exit code when every violation decides; None for a case that does not apply, because it decides nothing."""
        if self.verdict is None:
            return ExitCode.ENVIRONMENT
        return None if self.verdict.verdict is Verdict.NOT_APPLICABLE else code_of(self.verdict.verdict)

    def __str__(self) -> str:
        if self.verdict is None:
            return f"{Verdict.ERROR.name:14} {self.directory.name}: {self.unfit}"
        return f"{self.verdict.verdict.name:14} {self.verdict.case}: {self.verdict.reason}"


def judge_scripts(directories: Iterable[Path]) -> Iterator[JudgedScript]:
    """Judge the script in every directory; an unreadable script raises nothing."""
    for directory in directories:
        try:
            script = scripts.read(directory / SCRIPT)
        except UnfitScriptError as error:
            yield JudgedScript(directory=directory, verdict=None, unfit=str(error))
        else:
            yield JudgedScript(directory=directory, verdict=scripts.judge(script), script=script)
