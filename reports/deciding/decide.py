"""Decide a run: one verdict, one decision, one exit code, and the sentence that explains them.

The exit codes and the rule for GO are in `verification.vocabulary.verdict`. This file decides which facts count:

* A scenario or protocol case of the subject counts with its verdict. Two kinds of violations do not decide the exit code:
  those that the user accepted, and those whose known bugs do not decide (`verification.known_bugs.weight`). A crash or
  too little coverage of the same scenario still does.
* A control never counts for the subject. A control that was not detected makes the run ERROR: a suite that misses a
  known defect proves nothing by finding nothing.
* A problem (a missing, truncated or foreign file) and an interruption count as failures of the environment.
* A run that decided nothing about the subject is inconclusive, never a pass.
* A result that is worse than in the baseline is a regression, also a case that vanished. It changes no verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports.model.change import Change, ChangeKind
from reports.model.protocol_case import ACCEPTED, Tried
from reports.model.report import ControlResult, Problem, Report, ScenarioReport
from reports.model.run_judgement import RunJudgement
from reports.model.wording import counted, noun_of
from verification.known_bugs.weight import Weight
from verification.vocabulary.verdict import ExitCode, Verdict, code_of, decide, exit_code

#: As many names as a sentence can carry and still be read at a glance.
NAMED_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """All facts of a run that its decision depends on. `own`: the brokers are a cluster of the user."""

    tried: Sequence[Tried]
    controls: Sequence[ScenarioReport]
    problems: Sequence[Problem]
    cut_short: str
    strict: bool = False
    regressions: Sequence[Change] = ()
    pipelines_only: bool = False
    own: bool = False

    @property
    def left_out(self) -> int:
        """The scenarios that could not be run on a cluster of the user."""
        inapplicable = (each for each in self.tried if each.verdict is Verdict.NOT_APPLICABLE)
        return sum(isinstance(each, ScenarioReport) for each in inapplicable) if self.own else 0

    @property
    def interrupted(self) -> bool:
        """Whether the run was interrupted or killed."""
        return bool(self.cut_short)

    @property
    def missed(self) -> tuple[ScenarioReport, ...]:
        """The controls that were not detected, without those that do not apply, or that an interruption left unjudged."""
        applied = (each for each in self.controls if each.verdict is not Verdict.NOT_APPLICABLE)
        open_ = (each for each in applied if each.control_result is not ControlResult.DETECTED)
        return tuple(each for each in open_ if not (self.interrupted and each.convicted is None))

    @property
    def noun(self) -> str:
        """The common noun of everything tried, in the singular."""
        return noun_of(self.tried)

    @property
    def accepted(self) -> list[Tried]:
        """Scenarios and cases whose violations were accepted."""
        return [each for each in self.tried if each.accepted]

    def named(self, weight: Weight) -> tuple[str, ...]:
        """The known bugs of this weight that were shown and not accepted, by id."""
        weights = (one for each in self.tried if each.verdict is Verdict.FAIL for one in each.weights)
        return tuple(sorted({bug for bug, heavy in weights if heavy is weight}))

    def having(self, verdict: Verdict) -> list[Tried]:
        """Scenarios and cases of the subject that count as this verdict."""
        return [each for each in self.tried if each.counts_as is verdict]

    def votes(self) -> Iterator[tuple[Verdict, ExitCode]]:
        """Each fact as a verdict with the exit code that it asks for."""
        for one in self.tried:
            yield one.verdict, code_of(one.counts_as)
        if all(one.verdict is Verdict.NOT_APPLICABLE for one in self.tried):
            yield Verdict.INCONCLUSIVE, ExitCode.INCONCLUSIVE
        if self.missed:
            yield Verdict.ERROR, ExitCode.ENVIRONMENT
        if self.problems:
            # An interrupted run may leave truncated files: that alone is not an error.
            yield (Verdict.INCONCLUSIVE if self.interrupted else Verdict.ERROR), ExitCode.ENVIRONMENT
        if self.interrupted:
            yield Verdict.INCONCLUSIVE, ExitCode.ENVIRONMENT
        if self.regressions:
            yield Verdict.NOT_APPLICABLE, ExitCode.REGRESSION


def judged(report: Report) -> Report:
    """The report with the judgement that follows from its content."""
    facts = RunFacts(
        tried=report.tried,
        controls=report.controls,
        problems=report.problems,
        cut_short=report.cut_short,
        strict=report.strict,
        regressions=tuple(change for _, change in report.regressions),
        pipelines_only=bool(report.subject.pipelines),
        own=report.subject.own,
    )
    return replace(report, judgement=judge(facts, partial=report.partial))


def judge(facts: RunFacts, *, partial: str) -> RunJudgement:
    """The judgement of a whole run; `partial` is empty for a complete profile."""
    votes = tuple(facts.votes())
    code = exit_code(code for _, code in votes)
    why = _WHY[code](facts) + _not_deciding(facts)
    if passed := [each for each in facts.tried if each.traces]:
        shown = _names(sorted({trace.bug for each in passed for trace in each.traces}))
        show = "shows" if len(passed) == 1 else "show"
        why += f" {counted(len(passed), noun_of(passed))} passed and {show} a known bug ({shown})."
    if facts.pipelines_only:
        why += " Only pipelines were tried: the decision is about them and not about the release."
    if facts.left_out and code is ExitCode.CONFORMANT:
        left_out = counted(facts.left_out, "scenario")
        why += f" {left_out} could not be run on this cluster; the list of scenarios says why."
    if facts.regressions and code is not ExitCode.REGRESSION:
        why += f" Against the baseline {_worse(facts)}."
    if partial and code is ExitCode.CONFORMANT:
        why += f" Only part of the profile ran ({partial}), so the decision cannot be GO."
    return RunJudgement(
        verdict=Verdict.worst(verdict for verdict, _ in votes),
        decision=decide(code, complete=not partial),
        exit_code=code,
        why=why,
        strict=facts.strict,
        risks=facts.named(Weight.RISK),
        deviations=facts.named(Weight.DEVIATION),
    )


def _names(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    rest = len(unique) - NAMED_MAX
    return ", ".join(unique[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _keys(tried: Sequence[Tried]) -> str:
    return _names([each.key for each in tried])


def _found(tried: Sequence[Tried]) -> str:
    """Names of all violations: a known bug with its anomalies in brackets, any other anomaly by its own name."""
    gathered: dict[str, list[str]] = {}
    for bug, name in (each for one in tried for each in one.proven):
        gathered.setdefault(bug or name, []).extend([name] if bug else [])
    named = [f"{name} ({_names(violated)})" if violated else name for name, violated in gathered.items()]
    return _names(named) or f"see {_keys(tried)}"


def _not_deciding(facts: RunFacts) -> str:
    """A sentence about the known bugs that do not decide; empty where there is none."""
    shown = [
        f"{counted(len(bugs), str(weight))} ({_names(bugs)})"
        for weight in (Weight.RISK, Weight.DEVIATION)
        if (bugs := facts.named(weight))
    ]
    return f" The default rule does not count {' and '.join(shown)}." if shown else ""


def _of(count: int, total: int, noun: str) -> str:
    return f"{count} of {counted(total, noun)}"


def _violation(facts: RunFacts) -> str:
    deciding = facts.having(Verdict.FAIL)
    proved = sum(each.verdict is Verdict.FAIL for each in facts.tried)
    decide = f", and {len(deciding)} of them {'decides' if len(deciding) == 1 else 'decide'}"
    sentence = f"{_of(proved, len(facts.tried), facts.noun)} proved a violation"
    sentence += f"{decide if proved > len(deciding) else ''}: {_found(deciding)}."
    sentence += "".join(_of_readers(deciding))
    if besides := " and ".join(_besides(facts)):
        sentence += f" In addition, {besides}."
    return sentence


def _of_readers(deciding: Sequence[Tried]) -> Iterator[str]:
    """A sentence for each library whose violations as a reader decide."""
    findings = [one for each in deciding if isinstance(each, ScenarioReport) for one in each.findings if one.reader]
    for reader in dict.fromkeys(each.reader for each in findings):
        shown = _names([each.anomaly for each in findings if each.reader == reader])
        yield f" {reader} as a reader alone shows {shown}: a capture by another client has none of it."


def _besides(facts: RunFacts) -> Iterator[str]:
    """Other defects of a run that proved a violation; the violation stays proven."""
    if facts.interrupted:
        yield f"the run was {facts.cut_short}"
    if missed := len(facts.missed):
        yield f"{_of(missed, len(facts.controls), 'control')} {'was' if missed == 1 else 'were'} not detected"
    if broken := len(facts.having(Verdict.ERROR)):
        yield f"{_of(broken, len(facts.tried), facts.noun)} could not be run or judged"
    elif facts.problems and not facts.interrupted:
        yield "the evidence is incomplete"


def _worse(facts: RunFacts) -> str:
    """The regressions by name: scenarios before the requirements that they decide."""
    parts = []
    for kind in (ChangeKind.REGRESSED, ChangeKind.VANISHED):
        changes = [each for each in facts.regressions if each.kind is kind]
        if changes:
            parts.append(
                f"{len(changes)} case{'' if len(changes) == 1 else 's'} {kind} ({_names([c.id for c in changes])})"
            )
    return " and ".join(parts)


def _regression(facts: RunFacts) -> str:
    return f"Against the baseline {_worse(facts)}. A case that is no longer tested counts as a regression."


def _environment(facts: RunFacts) -> str:
    total = len(facts.tried)
    if facts.interrupted:
        undecided = facts.having(Verdict.INCONCLUSIVE) + facts.having(Verdict.ERROR)
        return f"The run was {facts.cut_short}; {_of(len(undecided), total, facts.noun)} could not be decided."
    if facts.missed:
        was = "was" if len(facts.missed) == 1 else "were"
        return (
            f"{_of(len(facts.missed), len(facts.controls), 'control')} {was} not detected ({_keys(facts.missed)}): "
            "a suite that misses a known defect cannot prove that the subject has none."
        )
    if broken := facts.having(Verdict.ERROR):
        return f"{_of(len(broken), total, facts.noun)} could not be run or judged: {_keys(broken)}."
    return f"The evidence is incomplete. {facts.problems[0].place}: {facts.problems[0].text}."


def _inconclusive(facts: RunFacts) -> str:
    open_ = facts.having(Verdict.INCONCLUSIVE)
    if not open_ and facts.tried:
        return f"{_of(0, len(facts.tried), facts.noun)} applied to the subject, so the run says nothing about it."
    if not open_:
        return f"No {facts.noun} of the subject ran, so the run says nothing about it."
    aside = {each.aside for each in facts.tried} - {""}
    proven = "No violation was proven" if not aside else "No violation that decides was proven"
    if aside == {ACCEPTED}:
        proven = "All proven violations were accepted"
    return (
        f"{_of(len(open_), len(facts.tried), facts.noun)} could not be decided: {_keys(open_)}. "
        f"{proven}, but the evidence is not enough for a pass."
    )


def _conformant(facts: RunFacts) -> str:
    passed = [each for each in facts.having(Verdict.PASS) if not each.aside]
    sentence = f"{_of(len(passed), len(facts.tried), facts.noun)} passed"
    if inapplicable := len(facts.having(Verdict.NOT_APPLICABLE)):
        sentence += f", {inapplicable} did not apply"
    if accepted := facts.accepted:
        sentence += f", and the violations of {len(accepted)} were accepted: {_found(accepted)}"
    if count := len(facts.controls):
        were = "was" if count == 1 else "were"
        sentence += f"; {_of(count, count, 'control')} {were} detected, as required"
    return sentence + "."


_WHY = {
    ExitCode.VIOLATION: _violation,
    ExitCode.REGRESSION: _regression,
    ExitCode.ENVIRONMENT: _environment,
    ExitCode.INCONCLUSIVE: _inconclusive,
    ExitCode.CONFORMANT: _conformant,
}
