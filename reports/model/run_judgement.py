"""The result of a whole run, with the rule that led to it."""

from __future__ import annotations

from dataclasses import dataclass

from reports.model.protocol_case import ACCEPTED
from verification.known_bugs.weight import Weight
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

#: The names of the two rules (docs/decision.md).
DEFAULT_RULE, STRICT_RULE = "default rule", "--strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJudgement:
    """The result of a whole run: verdict, decision, exit code, and the sentence that explains them.

    With `strict` every violation decides. `risks` and `deviations` are the known bugs whose violations were shown and do
    not decide.
    """

    verdict: Verdict
    decision: Decision
    exit_code: ExitCode
    why: str
    strict: bool = False
    risks: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The name of the rule by which it was decided."""
        return STRICT_RULE if self.strict else DEFAULT_RULE

    @property
    def counts(self) -> str:
        """The numbers of standing risks and deviations; empty where there is neither."""
        numbered = ((self.risks, str(Weight.RISK)), (self.deviations, str(Weight.DEVIATION)))
        return ", ".join(f"{len(bugs)} {noun}{'' if len(bugs) == 1 else 's'}" for bugs, noun in numbered if bugs)

    @property
    def accepted(self) -> bool:
        """Whether every violation was accepted."""
        return self.verdict is Verdict.FAIL and self.exit_code is not ExitCode.VIOLATION and not self.counts

    @property
    def aside(self) -> str:
        """What to say after the verdict: the numbers of violations that do not decide, or that all were accepted."""
        return self.counts or (ACCEPTED if self.accepted else "")
