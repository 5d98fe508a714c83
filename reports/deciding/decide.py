"""From what was tried, controls and problems to one verdict, one decision, one exit code and the sentence that says why.

The table of exit codes and the rule for GO are those of `verification.vocabulary.verdict`; this file only says what counts:

* a subject's scenario or protocol case counts with its verdict; a violation that the user accepted leaves the exit code
  to what lies beneath it: a crash or too little coverage is not accepted with it;
* a control never counts towards the subject, but one that was not convicted makes the run ERROR: a suite that does
  not notice a subject known to be bad proves nothing by its silence;
* a problem (something missing, cut or foreign) and an interruption are the environment's;
* when nothing of the subject was decided at all, nothing was run, and that is inconclusive, never a pass;
* what got worse since a baseline is a regression, a case that vanished included; it changes no verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports.model.change import Change, ChangeKind
from reports.model.protocol_case import ScriptCase, Tried
from reports.model.report import ControlResult, Judgement, Problem, Report, ScenarioReport
from verification.vocabulary.verdict import ExitCode, Verdict, code_of, decide, exit_code

#: As many names as a sentence can carry and still be read at a glance.
NAMED_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that has a say."""

    tried: Sequence[Tried]
    controls: Sequence[ScenarioReport]
    problems: Sequence[Problem]
    interrupted: bool
    regressions: Sequence[Change] = ()

    @property
    def escaped(self) -> tuple[ScenarioReport, ...]:
        """The controls that were not convicted, without those that an interruption kept from being judged."""
        open_ = (each for each in self.controls if each.standing is ControlResult.MISSED)
        return tuple(each for each in open_ if not (self.interrupted and each.convicted is None))

    @property
    def noun(self) -> str:
        """What was tried, in the singular."""
        scripted = {isinstance(each, ScriptCase) for each in self.tried}
        return "scenario or case" if len(scripted) > 1 else "case" if True in scripted else "scenario"

    @property
    def accepted(self) -> list[Tried]:
        """What was violated and accepted."""
        return [each for each in self.tried if each.accepted]

    def having(self, verdict: Verdict) -> list[Tried]:
        """What was tried on the subject and counts as this verdict."""
        return [each for each in self.tried if each.counts_as is verdict]

    def weigh(self) -> Iterator[tuple[Verdict, ExitCode]]:
        """Each fact as a verdict with the exit code that it asks for."""
        for one in self.tried:
            yield one.verdict, code_of(one.counts_as)
        if all(one.verdict is Verdict.NOT_APPLICABLE for one in self.tried):
            yield Verdict.INCONCLUSIVE, ExitCode.INCONCLUSIVE
        if self.escaped:
            yield Verdict.ERROR, ExitCode.ENVIRONMENT
        if self.problems:
            # An interrupted run is expected to leave files that are cut: that alone is not an error.
            yield (Verdict.INCONCLUSIVE if self.interrupted else Verdict.ERROR), ExitCode.ENVIRONMENT
        if self.interrupted:
            yield Verdict.INCONCLUSIVE, ExitCode.ENVIRONMENT
        if self.regressions:
            yield Verdict.NOT_APPLICABLE, ExitCode.REGRESSION


def judged(report: Report) -> Report:
    """The report with the judgement that follows from everything in it."""
    facts = Facts(
        tried=report.tried,
        controls=report.controls,
        problems=report.problems,
        interrupted=report.interrupted,
        regressions=tuple(change for _, change in report.regressions),
    )
    return replace(report, judgement=judge(facts, partial=report.partial))


def judge(facts: Facts, *, partial: str) -> Judgement:
    """The judgement of a whole run; `partial` is empty for a complete profile."""
    weighed = tuple(facts.weigh())
    code = exit_code(code for _, code in weighed)
    why = _WHY[code](facts)
    if facts.regressions and code is not ExitCode.REGRESSION:
        why += f" Against the baseline {_worse(facts)}."
    if partial and code is ExitCode.CONFORMANT:
        why += f" This is only part of a profile ({partial}), and a part is never a GO."
    return Judgement(
        verdict=Verdict.worst(verdict for verdict, _ in weighed),
        decision=decide(code, complete=not partial),
        exit_code=code,
        why=why,
    )


def _names(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    rest = len(unique) - NAMED_MAX
    return ", ".join(unique[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _keys(tried: Sequence[Tried]) -> str:
    return _names([each.key for each in tried])


def _found(tried: Sequence[Tried]) -> str:
    """What was violated: known bugs with what they violated in brackets, everything else by its own name."""
    gathered: dict[str, list[str]] = {}
    for bug, name in (each for one in tried for each in one.proven):
        gathered.setdefault(bug or name, []).extend([name] if bug else [])
    told = [f"{name} ({_names(violated)})" if violated else name for name, violated in gathered.items()]
    return _names(told) or f"see {_keys(tried)}"


def _of(count: int, total: int, noun: str) -> str:
    several = noun if total == 1 else " or ".join(f"{each}s" for each in noun.split(" or "))
    return f"{count} of {total} {several}"


def _violation(facts: Facts) -> str:
    failed = facts.having(Verdict.FAIL)
    sentence = f"{_of(len(failed), len(facts.tried), facts.noun)} proved a violation: {_found(failed)}."
    if besides := " and ".join(_besides(facts)):
        sentence += f" Besides, {besides}."
    return sentence


def _besides(facts: Facts) -> Iterator[str]:
    """What else is wrong with a run that proved a violation; the violation stays proven."""
    if facts.interrupted:
        yield "the run was interrupted"
    if escaped := len(facts.escaped):
        yield f"{_of(escaped, len(facts.controls), 'control')} {'was' if escaped == 1 else 'were'} not detected"
    if broken := len(facts.having(Verdict.ERROR)):
        yield f"{_of(broken, len(facts.tried), facts.noun)} could not be carried out or judged"
    elif facts.problems and not facts.interrupted:
        yield "the evidence is incomplete"


def _worse(facts: Facts) -> str:
    """What got worse, with names: scenarios before the requirements that they decide."""
    parts = []
    for kind in (ChangeKind.REGRESSED, ChangeKind.VANISHED):
        changes = [each for each in facts.regressions if each.kind is kind]
        if changes:
            parts.append(
                f"{len(changes)} case{'' if len(changes) == 1 else 's'} {kind} ({_names([c.id for c in changes])})"
            )
    return " and ".join(parts)


def _regression(facts: Facts) -> str:
    return f"Against the baseline {_worse(facts)}; a case that is not tried any more counts as one that got worse."


def _environment(facts: Facts) -> str:
    total = len(facts.tried)
    if facts.interrupted:
        undecided = facts.having(Verdict.INCONCLUSIVE) + facts.having(Verdict.ERROR)
        return f"The run was interrupted; {_of(len(undecided), total, facts.noun)} could not be decided."
    if facts.escaped:
        was = "was" if len(facts.escaped) == 1 else "were"
        return (
            f"{_of(len(facts.escaped), len(facts.controls), 'control')} {was} not detected ({_keys(facts.escaped)}): "
            "while a subject known to be bad goes unnoticed, the other answers prove nothing."
        )
    if broken := facts.having(Verdict.ERROR):
        return f"{_of(len(broken), total, facts.noun)} could not be carried out or judged: {_keys(broken)}."
    return f"The evidence is incomplete: {facts.problems[0].place}: {facts.problems[0].text}."


def _inconclusive(facts: Facts) -> str:
    open_ = facts.having(Verdict.INCONCLUSIVE)
    if not open_ and facts.tried:
        return f"{_of(0, len(facts.tried), facts.noun)} applied to the subject, so nothing is known about it."
    if not open_:
        return f"No {facts.noun} of the subject was run, so nothing is known about it."
    proven = "No violation was proven, but" if not facts.accepted else "What was proven was accepted, but"
    return (
        f"{_of(len(open_), len(facts.tried), facts.noun)} could not be decided: {_keys(open_)}. "
        f"{proven} too little was seen to call it a pass."
    )


def _conformant(facts: Facts) -> str:
    passed = [each for each in facts.having(Verdict.PASS) if not each.accepted]
    sentence = f"{_of(len(passed), len(facts.tried), facts.noun)} passed"
    if inapplicable := len(facts.having(Verdict.NOT_APPLICABLE)):
        sentence += f", {inapplicable} did not apply"
    if accepted := facts.accepted:
        sentence += f", and the violations of {len(accepted)} were accepted beforehand: {_found(accepted)}"
    if count := len(facts.controls):
        were = "was detected, as it" if count == 1 else "were detected, as they"
        sentence += f"; {_of(count, count, 'control')} {were} must be"
    return sentence + "."


_WHY = {
    ExitCode.VIOLATION: _violation,
    ExitCode.REGRESSION: _regression,
    ExitCode.ENVIRONMENT: _environment,
    ExitCode.INCONCLUSIVE: _inconclusive,
    ExitCode.CONFORMANT: _conformant,
}
