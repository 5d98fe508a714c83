"""Words, signs and numbers that every face shares, so that the same thing is called the same everywhere.

A verdict is always a sign and a word, never a colour alone. `plain` is the gate for everything that came from outside
(topic names, reasons, error texts): no control character, no lone surrogate and no bidirectional override reaches a
page, a terminal or an XML file, whatever a broker or client put into a message.
"""

from __future__ import annotations

import unicodedata

from reports.model.protocol_case import ScriptCase
from reports.model.report import RequirementRow, ScenarioReport
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

UNTESTED = "UNTESTED"

WORD: dict[Verdict, str] = {
    Verdict.NOT_APPLICABLE: "NOT APPLICABLE",
    Verdict.PASS: "PASS",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
    Verdict.ERROR: "ERROR",
    Verdict.FAIL: "FAIL",
}
SIGN: dict[Verdict, str] = {
    Verdict.NOT_APPLICABLE: "–",
    Verdict.PASS: "✓",
    Verdict.INCONCLUSIVE: "?",
    Verdict.ERROR: "!",
    Verdict.FAIL: "✗",
}
MEANING: dict[Verdict, str] = {
    Verdict.PASS: "it was tried hard enough, and no violation was found",
    Verdict.FAIL: "a violation was proven; the records that prove it are named",
    Verdict.ERROR: "the environment or the suite broke, so this says nothing about the subject",
    Verdict.INCONCLUSIVE: "no violation, but too little happened to call it a pass",
    Verdict.NOT_APPLICABLE: "the sentence does not apply to this subject",
}
DECISION_SIGN: dict[Decision, str] = {Decision.GO: "✓", Decision.NO_GO: "✗", Decision.UNDECIDED: "?"}
EXIT_MEANING: dict[ExitCode, str] = {
    ExitCode.CONFORMANT: "conformant",
    ExitCode.VIOLATION: "violation not accepted",
    ExitCode.INCONCLUSIVE: "inconclusive or nothing run",
    ExitCode.REGRESSION: "regression against a baseline",
    ExitCode.USAGE: "usage",
    ExitCode.ENVIRONMENT: "environment, error or interrupted",
}
#: Bidirectional overrides and isolates can make a text read as something else than it is.
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
#: Not characters of XML 1.0 although Unicode gives them no control category.
_NO_CHARACTER = frozenset("\ufffe\uffff")


def plain(text: str) -> str:
    """The text with everything that is no printable character replaced by �; tabs and line ends stay."""
    if text.isprintable() and not _NO_CHARACTER & set(text):
        return text
    return "".join("\ufffd" if _hidden(each) else each for each in text)


def _hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    return character in _BIDI or character in _NO_CHARACTER or unicodedata.category(character) in ("Cc", "Cs")


def one_line(text: str, length_max: int = 0) -> str:
    """The text on one line, cut to `length_max` characters with an ellipsis when that is not 0."""
    line = " ".join(plain(text).split())
    return line if not length_max or len(line) <= length_max else line[: length_max - 1].rstrip() + "…"


def verdict_word(verdict: Verdict | None) -> str:
    """The word for a verdict; a requirement without one is untested."""
    return UNTESTED if verdict is None else WORD[verdict]


def verdict_sign(verdict: Verdict | None) -> str:
    """The sign that goes with the word."""
    return "○" if verdict is None else SIGN[verdict]


def shown_verdict(scenario: ScenarioReport | ScriptCase) -> Verdict:
    """How a scenario or case is coloured: a control by what it proved about the suite, a subject by its verdict."""
    if isinstance(scenario, ScriptCase) or not scenario.control:
        return scenario.verdict
    if scenario.convicted:
        return Verdict.PASS
    return Verdict.INCONCLUSIVE if scenario.verdict is Verdict.INCONCLUSIVE else Verdict.ERROR


def scenario_word(scenario: ScenarioReport | ScriptCase) -> str:
    """The word for a scenario, control or case."""
    if isinstance(scenario, ScenarioReport) and scenario.control:
        return scenario.standing.value
    return WORD[scenario.verdict] + (", accepted" if scenario.accepted else "")


def requirement_word(row: RequirementRow) -> str:
    """The word for a row of the catalogue."""
    return verdict_word(row.verdict) + (", accepted" if row.accepted else "")


def seconds(value: float | None) -> str:
    """A duration for people."""
    if value is None:
        return "–"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"


def millis(value: float | None) -> str:
    """A time within a script for people: milliseconds, from ten seconds on in seconds."""
    if value is None:
        return "–"
    return f"{value:.1f} ms" if value < 10_000 else seconds(value / 1_000)


def number(value: int) -> str:
    """A count with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f")
