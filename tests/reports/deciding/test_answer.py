"""The answer at the top: true and plain for each way in which a run can end, and the same in every output format."""

from __future__ import annotations

import html as escaping
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reports.comparing.baseline import of_results
from reports.comparing.compare import against
from reports.comparing.results import results
from reports.deciding.answer import Headline, answer
from reports.deciding.decide import judged
from reports.deciding.windows import PROFILE
from reports.formats import html, summary, terminal
from reports.loading.run import load_run
from reports.model.report import Report
from reports.model.run_record import RunState
from tests.support.plans import BROKEN, CONTROL, FAILED, INAPPLICABLE, SMOKE, UNDECIDED, Plan, found
from tests.support.protocol_run_directories import PASSED, UNNAMED, make_protocol_run
from tests.support.run_directories import make_run
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.harm import HARM
from verification.vocabulary.verdict import Decision, Verdict

GOLDEN = Path(__file__).parents[1] / "golden"
RISK = replace(FAILED, key="late-duplicate", findings=(found("stranded-producer", count=1, known_bug="KB-17"),))
UNKNOWN = replace(FAILED, key="something-new", findings=(found("lost-write", count=1),))
MISSED = replace(CONTROL, verdict=Verdict.PASS, convicted=False, findings=())
NOTHING_SAID = re.compile(r"exit code|[A-Z0-9]+-[0-9]{2}|verdict|None|scenarios? or case")


def of(directory: Path, *plans: Plan, **changes: object) -> Report:
    """The report of a planted run."""
    return load_run(make_run(directory, plans, **changes))


def worse(directory: Path) -> Report:
    """A run with a scenario that its baseline had and that is gone."""
    before = of(directory / "before", SMOKE, replace(SMOKE, key="gone"))
    return against(of(directory / "now", SMOKE), of_results(results(before)))


def pipelines(directory: Path) -> Report:
    """A run of two pipelines, one of which doubled a record."""
    report = of(directory, SMOKE, replace(UNKNOWN, findings=(found("duplicate", count=1),)))
    return judged(replace(report, subject=replace(report.subject, pipelines=2)))


def own(directory: Path) -> Report:
    """A watch of a cluster of the user in which a record was lost."""
    report = of(directory, SMOKE, UNKNOWN)
    return judged(replace(report, profile=PROFILE, subject=replace(report.subject, runtime="given")))


#: How a run ended, its decision, the first sentence, a part of the count, and a part of the step that comes next.
KINDS: tuple[tuple[str, Callable[[Path], Report], Decision, str, str, str], ...] = (
    (
        "a known bug decides",
        lambda path: of(path, SMOKE, FAILED, RISK),
        Decision.NO_GO,
        "Kafka 4.3.1 can acknowledge a commit and never show it.",
        "2 tests of 3 fail; 1 of them decides: one known bug (KB-16).",
        "Use that release instead.",
    ),
    (
        "a violation without a name",
        lambda path: of(path, SMOKE, UNKNOWN),
        Decision.NO_GO,
        "Kafka 4.3.1 can lose records that it acknowledged.",
        "1 test of 2 fails: 1 violation that no known bug explains.",
        "Stay on the release that you use today. No known bug explains lost-write: repeat it with `",
    ),
    (
        "a requirement of a case",
        lambda path: load_run(make_protocol_run(path, (PASSED, UNNAMED))),
        Decision.NO_GO,
        "Kafka 4.3.1 breaks this rule: ",
        "1 test of 2 fails",
        "No known bug explains ",
    ),
    (
        "pipelines",
        pipelines,
        Decision.NO_GO,
        "A pipeline on Kafka 4.3.1 can store a record twice.",
        "1 test of 2 fails",
        "Do not rely on it for exactly-once",
    ),
    (
        "a cluster of the user",
        own,
        Decision.NO_GO,
        "Your cluster (Kafka 4.3.1) can lose records that it acknowledged.",
        "1 test of 2 fails",
        "how to repair what it left",
    ),
    (
        "regressions",
        worse,
        Decision.NO_GO,
        "Kafka 4.3.1 does worse than the baseline.",
        "1 result is worse",
        "next baseline",
    ),
    (
        "an interruption",
        lambda path: of(path, SMOKE, replace(SMOKE, key="b", present=False, ended=False), state=RunState.INTERRUPTED),
        Decision.UNDECIDED,
        "The run was interrupted before it knew enough about Kafka 4.3.1.",
        "1 of 2 tests were not decided",
        "Run it again: `",
    ),
    (
        "a missed control",
        lambda path: of(path, SMOKE, MISSED),
        Decision.UNDECIDED,
        "This suite did not notice a defect that was put there on purpose, so its passes prove nothing.",
        f"1 of 1 control was not detected: {CONTROL.key}.",
        "a defect of Onceproof and not of Kafka",
    ),
    (
        "an environment that failed",
        lambda path: of(path, SMOKE, BROKEN),
        Decision.UNDECIDED,
        "The environment failed, so the run does not know enough about Kafka 4.3.1.",
        "1 of 2 tests could not be run or judged",
        "Mend what the reasons below name.",
    ),
    (
        "too little",
        lambda path: of(path, SMOKE, UNDECIDED),
        Decision.UNDECIDED,
        "No violation that decides was found in Kafka 4.3.1, but too little happened to call it good.",
        "1 of 2 tests could not be decided.",
        "Repeat the first of them: `",
    ),
    (
        "nothing applied",
        lambda path: of(path, INAPPLICABLE),
        Decision.UNDECIDED,
        "The run says nothing about Kafka 4.3.1.",
        "None of 1 test applies to it.",
        "Run a whole profile",
    ),
    (
        "a part of a profile",
        lambda path: of(path, SMOKE, narrowed_by="-k no-fault"),
        Decision.UNDECIDED,
        "Nothing was found that speaks against Kafka 4.3.1, but only a part of the profile ran.",
        "1 test of 1 passed. Left out: ",
        "without `-k`",
    ),
    (
        "go",
        lambda path: of(path, SMOKE, CONTROL),
        Decision.GO,
        "No violation was found in Kafka 4.3.1.",
        "1 test of 1 passed.",
        "Read which requirements were not tested.",
    ),
    (
        "go with standing risks",
        lambda path: of(path, SMOKE, RISK),
        Decision.GO,
        "Nothing was found that speaks against Kafka 4.3.1.",
        "1 test of 2 passed; 1 fail",
        "only under rare conditions",
    ),
)


@pytest.mark.parametrize(
    ("make", "decision", "harm", "tests", "todo"), [each[1:] for each in KINDS], ids=[each[0] for each in KINDS]
)
def test_every_kind_of_run_has_a_true_and_plain_answer(
    tmp_path: Path, make: Callable[[Path], Report], decision: Decision, harm: str, tests: str, todo: str
) -> None:
    """It begins with the harm in words, says how many tests show it and what comes next, on page, summary and terminal."""
    report = make(tmp_path)
    said = answer(report)
    assert report.judgement.decision is decision
    assert said.harm.startswith(harm)
    assert tests in said.tests
    assert todo in said.todo
    assert_plain(said)
    page = " ".join(escaping.unescape(re.sub(r"<[^>]*>", "", html.render(report, tmp_path))).split())
    assert f"{said.harm} {said.tests}" in page
    assert f"{said.harm} {said.tests}" in terminal.render(report)
    assert said.harm.split(":")[0].split(" (")[0] in summary.render(report)


@pytest.mark.parametrize("run", sorted(each.name for each in GOLDEN.iterdir() if each.is_dir()))
def test_the_answer_of_a_real_run_is_plain(run: str) -> None:
    """No text of it has a word of tools in its first sentence."""
    assert_plain(answer(load_run(GOLDEN / run / "run")))


def assert_plain(said: Headline) -> None:
    """The first sentence has no id, no count and no word of tools; what is to be forwarded is two sentences."""
    assert not NOTHING_SAID.search(said.harm.split(": ")[0])
    assert said.harm.endswith(".")
    assert not said.forward or len(re.findall(r"\.(?= [A-Z0-9]|$)", said.forward)) == 2, said.forward
    assert ".." not in f"{said.harm} {said.tests} {said.condition} {said.clean} {said.todo} {said.forward}".replace(
        "…", ""
    )


def test_an_upgrade_is_the_subject_and_a_measured_release_is_named() -> None:
    """What was upgraded, the condition of the bug, the release without it, and what to send on."""
    said = answer(load_run(GOLDEN / "upgrade-4.1.2-to-4.2.0" / "run"))
    assert said.harm.startswith("Kafka, upgraded from 4.1.2 to 4.2.0, can hide committed records")
    assert said.clean == "Kafka 4.2.1 is the newest release that was measured without it."
    assert said.forward.startswith("Do not upgrade Kafka from 4.1.2 to 4.2.0: it can hide committed records")
    assert "; Kafka 4.2.1 is the newest release that was measured without it. When it happens: " in said.forward


def test_every_anomaly_has_a_harm_in_plain_words() -> None:
    """Each text goes on after "Kafka can": it begins with a verb in lower case and is not a sentence of its own."""
    assert set(HARM) == set(Anomaly)
    assert [
        text for text in HARM.values() if not re.fullmatch(r"[a-z][^.:;]*[^.:; ]", text) or len(text.split()) > 20
    ] == []
