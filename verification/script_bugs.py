"""Which known bug a violated protocol case is.

A case sends known requests and expects exact answers, so it can serve as the signature of a bug: when an entry of the
list names the case, and the release lies in a range on which the bug was seen, the violation *is* that bug. An entry
that merely violates the same requirement on the same release is worth reading and no more; it names nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from verification.known_bugs import Kind, KnownBug, affects
from verification.requirements.errors import ReleaseError
from verification.script import Script, ScriptVerdict
from verification.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAs:
    """An entry of the list for a violated case; `named` is False where only requirement and release agree."""

    bug: KnownBug
    named: bool


def known_as(script: Script, verdict: ScriptVerdict, bugs: Iterable[KnownBug]) -> tuple[KnownAs, ...]:
    """The entries that name a violated case, or, where none does, those that may explain it; empty without violation.

    A release that is no version number is known for nothing.
    """
    if verdict.verdict is not Verdict.FAIL:
        return ()
    try:
        seen = [each for each in bugs if each.kind is not Kind.CONTROL and affects(each, script.release)]
    except ReleaseError:
        return ()
    named = tuple(KnownAs(bug=each, named=True) for each in seen if script.case in each.cases)
    violated = {each.id for each in verdict.requirements if each.verdict is Verdict.FAIL}
    return named or tuple(KnownAs(bug=each, named=False) for each in seen if violated & set(each.requirements))
