"""The answer at the top of a report, for people who do not know this suite: the harm, how many tests show it, what to do.

The first sentence has no id and no count. The sentences to forward can be sent without the report. Parts of a text in
backticks are commands. `decide` decides; this file only says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reports.deciding.readers import idle_client, reader_of
from reports.deciding.reasons import Reason, reasons
from reports.deciding.windows import PROFILE as WATCH
from reports.model.report import ControlResult, Report
from reports.model.vocabulary import bugs, measured
from reports.model.wording import counted, number
from verification.known_bugs.catalogue import KnownBug
from verification.vocabulary.harm import HARM, READER_HARM
from verification.vocabulary.releases import parse
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

#: Sentences of harm; the reasons below have all.
HARMS_MAX = 3
#: Names in a sentence.
NAMED_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The answer: sentences of harm, the tests behind them, the condition, what to do next, and two sentences to forward.

    `clean` is the newest release that was measured without what decides, empty where none is known. A text may be empty.
    """

    harm: str
    tests: str = ""
    condition: str = ""
    clean: str = ""
    todo: str = ""
    forward: str = ""


def answer(report: Report) -> Headline:
    """The answer of a report."""
    return _KINDS[report.judgement.exit_code](report)


def subject_of(report: Report) -> str:
    """What was tested, as the subject of a sentence."""
    subject = report.subject
    kafka = f"Kafka {subject.release or 'of unknown release'}"
    if subject.pipelines:
        return f"A pipeline on {kafka}" if subject.pipelines > 1 else f"The pipeline on {kafka}"
    if subject.upgraded_from and subject.upgraded_from != subject.release:
        return f"Kafka, upgraded from {subject.upgraded_from} to {subject.release},"
    return f"Your cluster ({kafka})" if subject.own else kafka


def _subject(reason: Reason, report: Report) -> str:
    """Whose violation a reason is: a reader's, a client's, or that of the whole subject."""
    if client := idle_client(report):
        return f"The client {client} on {subject_of(report)}"
    return f"{reason.reader} as a reader" if reason.reader else subject_of(report)


def _violation(report: Report) -> Headline:
    deciding = [
        each for each in reasons(report) if each.verdict is Verdict.FAIL and not each.is_aside and not each.accepted
    ]
    named = [bugs()[each.name] for each in deciding if each.name in bugs()]
    release = _clean(named)
    condition = named[0].condition or "" if len(named) == 1 else ""
    # A setting of the user says more than the condition of a bug.
    setting = " ".join(dict.fromkeys(each.setting for each in deciding if each.setting))
    condition = setting or condition
    of = "it" if len(deciding) == 1 else _listed([each.id for each in named])
    measured_clean = f"Kafka {release} is the newest release that was measured without" if release else ""
    clean = f"{measured_clean} {of}." if release else ""
    shared = f"{measured_clean} it" if release else ""
    tests = _failing(report, deciding)
    return Headline(
        harm=" ".join(_harms(deciding, report)),
        tests=tests,
        condition=f"{of}: {condition}" if condition and not setting and len(deciding) > 1 else condition,
        clean=clean,
        todo=" ".join(_todo(report, deciding, release)),
        forward=f"{_warning(report)}: it {_does(deciding[0])}{f'; {shared}' if shared else ''}. "
        + (f"When it happens: {condition}" if condition else tests),
    )


def _harms(deciding: Sequence[Reason], report: Report) -> Iterator[str]:
    said = ""
    for each in deciding[:HARMS_MAX]:
        subject = _subject(each, report)
        yield f"{subject} {_does(each)}." if subject != said else f"It also {_does(each)}."
        said = subject
    if (rest := len(deciding) - HARMS_MAX) > 0:
        yield f"{counted(rest, 'more reason')} {'is' if rest == 1 else 'are'} below."


def _does(reason: Reason) -> str:
    """The harm of one reason as the end of a sentence."""
    if reason.name in bugs():
        return f"can {bugs()[reason.name].harm}"
    if reason.reader and reason.name in READER_HARM:
        return f"can {READER_HARM[reason.name]}"  # type: ignore[index]
    if reason.name in HARM:
        return f"can {HARM[reason.name]}"  # type: ignore[index]
    return f"breaks this rule: {reason.text.rstrip('.')}"


def _failing(report: Report, deciding: Sequence[Reason]) -> str:
    """How many tests fail and how many of them decide, with the known bugs."""
    failed = [each for each in report.tried if each.verdict is Verdict.FAIL]
    decide = [each for each in failed if each.counts_as is Verdict.FAIL]
    names = [each.name for each in deciding if each.name in bugs()]
    settings = sum(1 for each in deciding if each.setting)
    unnamed = len(deciding) - len(names) - settings
    known = f"{'one known bug' if len(names) == 1 else f'{len(names)} known bugs'} ({_listed(names)})" if names else ""
    other = f"{counted(unnamed, 'violation')} that no known bug explains" if unnamed else ""
    own = f"{counted(settings, 'violation')} that a setting of yours explains" if settings else ""
    by = " and ".join(each for each in (known, own, other) if each)
    fail = f"{counted(len(failed), 'test')} of {number(len(report.tried))} {'fails' if len(failed) == 1 else 'fail'}"
    if len(decide) == len(failed):
        return f"{fail}: {by}."
    return f"{fail}; {len(decide)} of them {'decides' if len(decide) == 1 else 'decide'}: {by}."


def _todo(report: Report, deciding: Sequence[Reason], release: str) -> Iterator[str]:
    if report.subject.pipelines:
        yield "Do not rely on it for exactly-once before the reasons below are gone."
    elif reader_of(report):
        yield "Read with another library or version; the log and a capture by another client show nothing of it."
    elif idle_client(report):
        yield "Find out why it stood still: another client wrote and committed on the same cluster at that time."
    elif all(each.setting for each in deciding):
        yield "Change the setting, and try again."
    elif report.subject.own:
        yield "Read below whom it concerns, and how to repair what it left."
    elif release:
        yield "Use that release instead."
    else:
        yield "Stay on the release that you use today."
    if unnamed := [each for each in deciding if each.name not in bugs() and not each.setting]:
        replay = next(
            (each.replay for each in report.tried if each.key == unnamed[0].places[0].key and each.replay), ""
        )
        which, it = ("it", "it") if len(unnamed) == 1 else ("the first", "them")
        again = f" repeat {which} with `{replay}`, and" if replay else ""
        whom = f" to the makers of {reader}" if (reader := reader_of(report)) else ""
        listed = _listed([each.name for each in unnamed])
        yield f"No known bug explains {listed}:{again} report {it}{whom} with this evidence."


def _warning(report: Report) -> str:
    """The beginning of the sentence that warns others."""
    subject = report.subject
    if reader := reader_of(report):
        return f"Do not read with {reader} from {subject.title} where exactly-once matters"
    if client := idle_client(report):
        return f"Do not rely on the client {client} on {subject.title}"
    if subject.pipelines:
        return f"Do not rely on our pipeline on Kafka {subject.release} for exactly-once"
    if subject.own:
        return f"Our cluster (Kafka {subject.release}) is not safe for exactly-once"
    if subject.upgraded_from and subject.upgraded_from != subject.release:
        return f"Do not upgrade Kafka from {subject.upgraded_from} to {subject.release}"
    return f"Do not go to {subject.title}"


def _clean(named: Sequence[KnownBug]) -> str:
    """The newest release on which every one of these bugs was looked for and not found, empty where there is none."""
    rows = [row for bug in named for row in measured().get(bug.id, ())]
    if not rows or {row.bug for row in rows} != {bug.id for bug in named}:
        return ""
    common = set.intersection(*(set(row.clean) for row in rows))
    return max(common, key=parse, default="")


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _regression(report: Report) -> Headline:
    worse = len(report.regressions)
    tests = f"{counted(worse, 'result')} {'is' if worse == 1 else 'are'} worse than in the baseline or missing"
    return Headline(
        harm=f"{subject_of(report)} does worse than the baseline.",
        tests=f"{tests}; no violation decides by itself.",
        todo="Look at the changes below. If all of them are meant, use this run as the next baseline.",
        forward=f"{subject_of(report)} does worse than the run that we compare with: {tests}. "
        "We wait until each of them is explained.",
    )


def _environment(report: Report) -> Headline:
    total, subject = len(report.tried), subject_of(report).removesuffix(",")
    clean = "the others show no violation that decides"
    again = f"Run it again: `{report.replay}`" if report.replay else "Run it again."
    if report.interrupted:
        open_ = sum(each.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR) for each in report.tried)
        return Headline(
            harm=f"The run was {report.cut_short} before it knew enough about {subject}.",
            tests=f"{open_} of {counted(total, 'test')} were not decided; {clean}.",
            todo=again,
        )
    missed = [each for each in report.controls if each.control_result is ControlResult.MISSED]
    if missed:
        were = "was" if len(missed) == 1 else "were"
        return Headline(
            harm="This suite did not notice a defect that was put there on purpose, so its passes prove nothing.",
            tests=f"{len(missed)} of {counted(len(report.controls), 'control')} {were} not detected: "
            f"{_listed([each.key for each in missed])}.",
            todo=f"{again} If it happens again, it is a defect of Onceproof and not of Kafka: report it.",
        )
    broken = [each for each in report.tried if each.counts_as is Verdict.ERROR]
    judge = next((each.judge for each in report.scenarios if each.judge), "")
    return Headline(
        harm=f"The environment failed, so the run does not know enough about {subject}.",
        tests=f"{len(broken)} of {counted(total, 'test')} could not be run or judged; {clean}."
        if broken
        else f"The evidence is incomplete: {report.problems[0].place}, {report.problems[0].text.rstrip('.')}.",
        todo=f"Judge the evidence that is there: `{judge}`" if judge else f"Mend what the reasons below name. {again}",
    )


def _inconclusive(report: Report) -> Headline:
    total, subject = len(report.tried), subject_of(report).removesuffix(",")
    open_ = [each for each in report.tried if each.counts_as is Verdict.INCONCLUSIVE]
    if not open_:
        return Headline(
            harm=f"The run says nothing about {subject}.",
            tests=f"None of {counted(total, 'test')} applies to it." if total else "No test ran.",
            todo="Run a whole profile, without `-k` and without `--only`.",
        )
    return Headline(
        harm=f"No violation that decides was found in {subject}, but too little happened to call it good.",
        tests=f"{len(open_)} of {counted(total, 'test')} could not be decided.",
        todo=f"Repeat the first of them: `{open_[0].replay}`" if open_[0].replay else "Run it again.",
    )


def _conformant(report: Report) -> Headline:
    subject = subject_of(report).removesuffix(",")
    failed = sum(each.verdict is Verdict.FAIL for each in report.tried)
    passed = sum(each.verdict is Verdict.PASS for each in report.tried)
    tests = f"{counted(passed, 'test')} of {number(len(report.tried))} passed" + (
        f"; {number(failed)} fail by known bugs that do not decide, or by violations that were accepted."
        if failed
        else "."
    )
    if report.judgement.decision is not Decision.GO:
        return Headline(
            harm=f"Nothing was found that speaks against {subject}, but only a part of the profile ran.",
            tests=f"{tests} Left out: {report.partial}.",
            todo="Run the whole profile, without `-k` and without `--only`.",
        )
    found = "Nothing was found that speaks against" if failed else "No violation was found in"
    while_ = " while others worked on it" if report.profile == WATCH else ""
    return Headline(
        harm=f"{found} {subject}{while_}.",
        tests=tests,
        todo="Read which requirements were not tested, and what speaks against it only under rare conditions."
        if failed
        else "Read which requirements were not tested.",
        forward=f"{subject} passed {counted(passed, 'test')} of exactly-once with real brokers and real faults. "
        f"Known bugs that no supported release is without, or that need rare conditions, remain: {failed} tests show them."
        if failed
        else f"{subject} passed all {counted(passed, 'test')} of exactly-once with real brokers and real faults. "
        "A pass means that no violation was found where something was tried, not that none can happen.",
    )


_KINDS: dict[ExitCode, Callable[[Report], Headline]] = {
    ExitCode.VIOLATION: _violation,
    ExitCode.REGRESSION: _regression,
    ExitCode.ENVIRONMENT: _environment,
    ExitCode.INCONCLUSIVE: _inconclusive,
    ExitCode.CONFORMANT: _conformant,
}
