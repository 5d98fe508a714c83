"""The size of the page of a run as long as the default run, made of real scenarios and cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from reports.deciding.decide import judged
from reports.formats import html
from reports.loading.run import load_run
from reports.model.protocol_case import ScriptCase
from reports.model.report import Report, RequirementRow, ScenarioReport
from verification.vocabulary.verdict import Verdict

GOLDEN = Path(__file__).parent / "golden"
#: A quick run: scenarios and controls together, cases that pass, cases that violate something, of which two decide.
SCENARIOS, PASSED, VIOLATED = 28, 303, 24
#: The page of a default run may have 1.2 MB. It has 1.115 MB; this run, with shorter scripts, 0.84 MB, and 2 % room.
BYTES_MAX = 853_000


def scenarios() -> Iterator[ScenarioReport]:
    """Two scenarios with violations, the others passed."""
    known = load_run(GOLDEN / "scenarios-4.3.1" / "run").scenarios
    failed = next(each for each in known if each.verdict is Verdict.FAIL)
    passed = next(each for each in known if each.verdict is Verdict.PASS)
    for number in range(SCENARIOS):
        yield replace(failed if number < 2 else passed, key=f"coordinator-commit-while-{number}-confluent-8675044")


def cases() -> Iterator[ScriptCase]:
    """Real scripts in turn, with names as long as real ones."""
    known = load_run(GOLDEN / "protocol-4.3.1" / "run").cases
    for verdict, count in ((Verdict.FAIL, VIOLATED), (Verdict.PASS, PASSED)):
        like = [each for each in known if each.verdict is verdict]
        for number in range(count):
            yield replace(
                like[number % len(like)], key=f"transactions-a-claim-in-a-few-words-that-is-tested-{number:03}"
            )


def quick_run() -> Report:
    """The report of all of them; each requirement is decided by two cases."""
    report = load_run(GOLDEN / "scenarios-4.3.1" / "run")
    made = tuple(cases())

    def row(number: int, each: RequirementRow) -> RequirementRow:
        by = tuple((one.key, one.verdict, one.reason) for one in made[number::200])
        return replace(each, decided_by=by, verdict=Verdict.worst(verdict for _, verdict, _ in by), untested="")

    rows = tuple(row(number, each) for number, each in enumerate(report.requirements[:200]))
    rows += report.requirements[200:]
    return judged(replace(report, scenarios=tuple(scenarios()), cases=made, requirements=rows))


def test_the_page_of_a_quick_run_stays_below_its_budget() -> None:
    """With every script of a violation, and a line for each case that passed."""
    report = quick_run()
    page = html.render(report, report.origin)
    assert page.count('class="stack script"') == VIOLATED
    assert page.count("transactions-a-claim-in-a-few-words-that-is-tested-300") >= 2
    assert 700_000 < len(page.encode("utf-8")) < BYTES_MAX
