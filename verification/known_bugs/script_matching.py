"""Matches the script of a violated protocol case with the known bugs that explain it.

A case sends known requests and expects exact answers, so it can serve as the signature of a bug. An entry of the list
names the statements of the case that the bug violates, and the observed values. The release must lie in a range on which
the bug was seen.

A violation has a name only when every statement that does not hold is one of those. Another defect may show in the same
case, with the known one or instead of it: a lost record does not get the name of a known refusal. Two bugs that show in
one case name it together, and a waiver of the violation accepts both. Two kinds of script have no name: one that broke
off, and one with a precondition that failed for a reason that no entry gives. They might have found something else.

An entry that merely violates the same requirement on the same release is shown as a hint; it names nothing.

A case can pass and show a bug, because it claims something else, or expects the behaviour of the release. `passes` of an
entry names the statement and the value. Such a pass stays a pass, and a report names the bug.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from verification.known_bugs.catalogue import BugKind, KnownBug, Symptom, affects
from verification.scripts.script import Script, ScriptVerdict, Statement
from verification.vocabulary.errors import ReleaseError
from verification.vocabulary.verdict import Verdict

_WILD = {"**": ".*", "*": '[^"]*'}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAs:
    """An entry of the list for a violated case; `named` is False when only requirement and release agree."""

    bug: KnownBug
    named: bool


def shown_by_pass(script: Script, bugs: Iterable[KnownBug]) -> tuple[tuple[KnownBug, Statement], ...]:
    """The known bugs that a passed case shows, each with the statement that shows it."""
    try:
        seen = [each for each in bugs if script.case in each.passes and affects(each, script.release)]
    except ReleaseError:
        return ()
    return tuple(
        (bug, statement)
        for bug in seen
        for symptom in bug.passes[script.case]
        for statement in script.statements
        if statement.holds and fits(symptom, statement)
    )


def known_as(script: Script, verdict: ScriptVerdict, bugs: Iterable[KnownBug]) -> tuple[KnownAs, ...]:
    """The entries that name a violated case; without any, those that may explain it; empty without a violation.

    A release that is no version number has no known bugs.
    """
    if verdict.verdict is not Verdict.FAIL:
        return ()
    try:
        seen = [each for each in bugs if each.kind is not BugKind.CONTROL and affects(each, script.release)]
    except ReleaseError:
        return ()
    named = _naming(script, seen)
    violated = {each.id for each in verdict.requirements if each.verdict is Verdict.FAIL}
    possible = [each for each in seen if violated & set(each.requirements)]
    return tuple(KnownAs(bug=each, named=bool(named)) for each in named or possible)


def fits(symptom: Symptom, statement: Statement) -> bool:
    """Whether a statement is the one that the bug violates, with an observed value that the bug explains."""
    observed = _text(statement.observed)
    return alike(symptom.what, statement.what) and any(alike(each, observed) for each in symptom.observed)


def _naming(script: Script, seen: Iterable[KnownBug]) -> list[KnownBug]:
    """The entries whose symptoms together explain every statement that does not hold; none when one is left over."""
    wrong = [each for each in script.statements if not each.holds]
    shown = [each for each in seen if _shows(each.cases.get(script.case, ()), wrong)]
    symptoms = [symptom for each in shown for symptom in each.cases[script.case]]
    explained = all(any(fits(symptom, each) for symptom in symptoms) for each in wrong)
    return shown if explained and not (script.broke or script.inapplicable) else []


def _shows(symptoms: tuple[Symptom, ...], wrong: Iterable[Statement]) -> bool:
    """Whether the first symptom of the bug is there; without it, it is not this bug."""
    return bool(symptoms) and any(fits(symptoms[0], each) for each in wrong)


def alike(pattern: str, text: str) -> bool:
    """Whether a text fits the pattern, in which `**` stands for anything and `*` for all but quotation marks."""
    expression = "".join(_WILD.get(part, re.escape(part)) for part in re.split(r"(\*\*?)", pattern))
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _text(observed: Any) -> str:
    return observed if isinstance(observed, str) else json.dumps(observed, sort_keys=True, ensure_ascii=False)
