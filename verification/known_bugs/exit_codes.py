"""The exit codes that judged evidence asks for: a violation whose known bugs do not decide counts as if it were not there.

`verification.known_bugs.weight` has the rule. A report of the same evidence uses it too, but also knows the plan of the
run, its baseline and the accepted violations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verification.known_bugs.catalogue import KnownBug
from verification.known_bugs.script_matching import known_as
from verification.known_bugs.weight import Weight, heaviest, weigh
from verification.scripts.judging import JudgedScript
from verification.vocabulary.verdict import ExitCode, ScenarioVerdict, Verdict, code_of, without_findings


def codes_of_scenarios(
    verdicts: Iterable[ScenarioVerdict], bugs: Mapping[str, KnownBug], *, strict: bool
) -> list[ExitCode]:
    """The codes of all subjects and of missed controls; a detected control says nothing about a subject."""
    counted = [each for each in verdicts if not each.control or each.verdict is not Verdict.PASS]
    said = [_counts_as(each, bugs, strict=strict) for each in counted]
    return [code_of(verdict) for verdict in said if verdict is not Verdict.NOT_APPLICABLE]


def code_of_script(judged: JudgedScript, bugs: Mapping[str, KnownBug], *, strict: bool) -> ExitCode | None:
    """The code of one protocol case; None for a case that does not apply."""
    if judged.script is None or judged.verdict is None or judged.verdict.verdict is not Verdict.FAIL:
        return judged.code
    named = (each.bug for each in known_as(judged.script, judged.verdict, bugs.values()) if each.named)
    if heaviest(weigh(bug, strict=strict) for bug in named) is Weight.DECIDES:
        return judged.code
    return code_of(judged.verdict.without_findings[0])


def _counts_as(judged: ScenarioVerdict, bugs: Mapping[str, KnownBug], *, strict: bool) -> Verdict:
    """The verdict, without findings that do not decide."""
    weight = heaviest(weigh(bugs.get(each.known_bug or ""), strict=strict) for each in judged.findings)
    if judged.verdict is not Verdict.FAIL or weight is Weight.DECIDES:
        return judged.verdict
    return without_findings(judged.crashed, judged.coverage)[0]
