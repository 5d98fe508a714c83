"""Words, signs and numbers that every output format uses, so that one thing has one name everywhere.

A verdict is always a sign and a word, never a colour alone. Every text from outside (topic names, reasons, errors)
passes `plain`: no control character, lone surrogate or bidirectional override reaches a page, a terminal or an XML
file. A broker or client can put any of these into a message.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from reports.model.protocol_case import ScriptCase, Tried, seen_in
from reports.model.report import RequirementRow, ScenarioReport
from reports.model.run_judgement import RunJudgement
from verification.scripts.script import EXPECTED_AS, Relation
from verification.vocabulary.experiment import AT_LEAST_ONCE
from verification.vocabulary.harm import seen
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
    Verdict.PASS: "enough was tested, and no violation was found",
    Verdict.FAIL: "a violation was proven, and the report names the records that prove it",
    Verdict.ERROR: "there is no result: the environment or the suite failed, or an answer of the subject never came",
    Verdict.INCONCLUSIVE: "no violation was found, but the evidence is not enough for a pass",
    Verdict.NOT_APPLICABLE: "it does not apply to this subject",
}
DECISION_SIGN: dict[Decision, str] = {Decision.GO: "✓", Decision.NO_GO: "✗", Decision.UNDECIDED: "?"}
EXIT_MEANING: dict[ExitCode, str] = {
    ExitCode.CONFORMANT: "nothing decides against the subject",
    ExitCode.VIOLATION: "a violation decides",
    ExitCode.INCONCLUSIVE: "undecided, or nothing ran",
    ExitCode.REGRESSION: "worse than the baseline",
    ExitCode.USAGE: "invalid option, file or release",
    ExitCode.ENVIRONMENT: "environment failed or run interrupted",
}
#: Findings in a title, and characters of each value there; the section has all.
HAPPENED_MAX, VALUE_MAX = 3, 90
#: Words of the checks, and what a reader is given.
_SAID = (
    (re.compile(r"\btold:? (committed|aborted|unknown)\b"), r"answer to the client: \1"),
    (re.compile(r"\btold so (?=[0-9])"), "its error came "),
    (
        re.compile(r"\bopen at no coordinator\b"),
        "open on the partition, although its coordinator has no open transaction",
    ),
)
#: Bidirectional overrides and isolates can make a text look like another text.
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
#: Not characters of XML 1.0, although Unicode has them in no control category.
_NO_CHARACTER = frozenset("\ufffe\uffff")


def in_plain_words(detail: str) -> str:
    """The detail of a violation, without words that only this suite uses."""
    for pattern, said in _SAID:
        detail = pattern.sub(said, detail)
    return detail


def plain(text: str) -> str:
    """The text with every unprintable character replaced by �; tabs and line ends stay."""
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
    """The verdict to show: of a control its result about the suite, else the verdict itself."""
    if isinstance(scenario, ScriptCase) or not scenario.control:
        return scenario.verdict
    if scenario.convicted:
        return Verdict.PASS
    unknown = (Verdict.NOT_APPLICABLE, Verdict.INCONCLUSIVE)
    return scenario.verdict if scenario.verdict in unknown else Verdict.ERROR


def scenario_word(scenario: ScenarioReport | ScriptCase) -> str:
    """The word for a scenario, control or case."""
    if isinstance(scenario, ScenarioReport) and scenario.control:
        return scenario.control_result or WORD[scenario.verdict]
    if isinstance(scenario, ScenarioReport) and scenario.allowed and scenario.verdict is Verdict.PASS:
        return f"{WORD[Verdict.PASS]} ({AT_LEAST_ONCE})"
    return with_aside(WORD[scenario.verdict], scenario.aside or seen_in([scenario]))


def requirement_word(row: RequirementRow) -> str:
    """The word for a row of the catalogue."""
    return with_aside(verdict_word(row.verdict), row.aside or row.seen)


def judgement_word(judgement: RunJudgement) -> str:
    """The word for the verdict of a run, with the numbers of violations that do not decide."""
    return with_aside(WORD[judgement.verdict], judgement.aside)


def happened(tried: Tried) -> str:
    """What a violation was, in one line, from its findings or the first failed claim; empty where none was proved."""
    if tried.verdict is not Verdict.FAIL:
        return ""
    if isinstance(tried, ScenarioReport):
        if tried.control:
            return ""
        found = [seen(each.anomaly, each.count) for each in tried.findings]
        return ", ".join(found[:HAPPENED_MAX]) + (" and more" if len(found) > HAPPENED_MAX else "")
    if not isinstance(tried, ScriptCase) or not tried.deciding:
        return ""
    short = (each for each in tried.deciding if len(each.observed) <= VALUE_MAX and len(each.expected) <= VALUE_MAX)
    first = next(short, tried.deciding[0])
    what, observed, expected = (one_line(each, VALUE_MAX) for each in (first.what, first.observed, first.expected))
    if first.relation == Relation.EQUALS:
        text = f"{what}: {observed} instead of {expected}"
    else:
        text = f"{what}: {observed}, expected {EXPECTED_AS[Relation(first.relation)]}{expected}"
    return text[0].upper() + text[1:]


def with_aside(word: str, aside: str) -> str:
    """The word for a verdict, with the word for violations that do not decide."""
    return f"{word}, {aside}" if aside else word


def seconds(value: float | None) -> str:
    """A duration for readers: `1.5 s`, `2 min 05 s`."""
    if value is None:
        return "–"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"


def millis(value: float | None) -> str:
    """A time within a script for readers: in milliseconds, from ten seconds on in seconds."""
    if value is None:
        return "–"
    return f"{value:.1f} ms" if value < 10_000 else seconds(value / 1_000)


def noun_of(tried: Iterable[Tried]) -> str:
    """The common noun of scenarios and protocol cases, in the singular."""
    scripted = {isinstance(each, ScriptCase) for each in tried}
    return "scenario or case" if len(scripted) > 1 else "case" if True in scripted else "scenario"


def counted(count: int, noun: str) -> str:
    """A count with its noun, in the plural where needed: `2 scenarios or cases`."""
    return f"{count} " + (noun if count == 1 else " or ".join(f"{each}s" for each in noun.split(" or ")))


def number(value: int) -> str:
    """A count with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f")
