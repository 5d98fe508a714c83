"""The trend over many runs: order, violations, flaky cases, requirements, and runs that cannot be read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports import __main__ as command
from reports import trend as subject
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.trend import Trend, ViolationState, ViolationTrend
from tests.reports.test_golden import golden
from tests.reports.test_markdown import OURS, Elements, unlike_prose
from tests.reports.trend.results import body, case, control, finding, plant, scenario, started
from tests.support.paths import ROOT
from tests.support.plans import EVERY_VERDICT
from tests.support.rendered_runs import hostile_run
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

SCHEMA = json.loads((ROOT / "docs" / "trend.schema.json").read_text(encoding="utf-8"))
BAD = scenario("crash", "FAIL", finding())
GOOD = scenario("crash")
OPEN = scenario("crash", "INCONCLUSIVE")
ABSENT = scenario("other")


def trend_of(tmp_path: Path, *bodies: dict[str, Any]) -> Trend:
    """The trend of some results in a directory of nights; the names do not follow the order."""
    for number, each in enumerate(bodies):
        plant(tmp_path / "nights" / f"night-{len(bodies) - number:04}", each)
    return subject.of_paths([tmp_path / "nights"], tmp_path / "out")


def violations_of(tmp_path: Path, *scenarios: dict[str, Any]) -> tuple[ViolationTrend, ...]:
    """The violations of one run per scenario."""
    return trend_of(tmp_path, *(body(day, scenarios=[each]) for day, each in enumerate(scenarios))).violations


def test_runs_are_in_the_order_of_their_start(tmp_path: Path) -> None:
    """The start decides, not the name of the directory; a start that cannot be parsed comes first."""
    trend = trend_of(tmp_path, body(3), body(1), body(2, started="yesterday"), body(0))
    assert [each.started for each in trend.runs] == ["yesterday", started(0), started(1), started(3)]
    assert [each.number for each in trend.runs] == [1, 2, 3, 4]
    assert trend.last.started == started(3)


def test_a_run_has_its_coverage(tmp_path: Path) -> None:
    """Tried are cases with a verdict of the judge; tested are requirements with any verdict."""
    verdicts = ("PASS", "FAIL", "INCONCLUSIVE", "ERROR", "NOT_APPLICABLE")
    scenarios = [scenario(f"s{number}", verdict) for number, verdict in enumerate(verdicts)]
    requirements = dict(zip(("A", "B", "C", "D"), ("PASS", "NOT_APPLICABLE", "UNTESTED", "ERROR"), strict=True))
    run = trend_of(
        tmp_path, body(scenarios=scenarios, cases=[case("c")], requirements=requirements, decision="NO-GO")
    ).last
    assert (run.tried, run.planned, run.tested) == (4, 6, 3)
    assert run.decision is Decision.NO_GO
    assert run.clients == ("confluent-kafka 2.16.1",)


def test_a_run_has_the_counts_of_what_does_not_decide(tmp_path: Path) -> None:
    """Known bugs of either weight in each format; a dash where results of an older version do not say it."""
    counted = body(1, standing_risks=["KB-05", "KB-22"], deviations=[])
    for name, given in (("old", body(0)), ("new", counted)):
        plant(tmp_path / "nights" / name, given)
    files = written([tmp_path / "nights"], tmp_path / "out")
    old, new = json.loads(files["trend.json"])["runs"]
    assert (old["standing_risks"], old["deviations"]) == (None, None)
    assert (new["standing_risks"], new["deviations"]) == (2, 0)
    cells = re.findall(r'data-name="(?:Standing risks|Deviations)">([^<]*)<', files["trend.html"])
    assert cells == ["2", "0", "–", "–"]
    rows = [line for line in files["trend.md"].splitlines() if "| ✓ GO |" in line]
    assert ["| 2 | 0 |" in rows[0], "| – | – |" in rows[1]] == [True, True]


@pytest.mark.parametrize(
    ("runs", "state", "first_bad", "last_bad", "gone_since", "bad", "decided"),
    [
        ((GOOD, BAD), ViolationState.NEW, 2, 2, None, 1, 2),
        ((BAD, GOOD, BAD), ViolationState.NEW, 1, 3, None, 2, 3),
        # A run that does not decide is skipped in a comparison.
        ((GOOD, OPEN, ABSENT, BAD), ViolationState.NEW, 4, 4, None, 1, 2),
        ((BAD, OPEN, BAD), ViolationState.STILL_THERE, 1, 3, None, 2, 2),
        ((BAD,), ViolationState.NO_EARLIER_RUN, 1, 1, None, 1, 1),
        ((OPEN, BAD), ViolationState.NO_EARLIER_RUN, 2, 2, None, 1, 1),
        ((GOOD, BAD, OPEN), ViolationState.NOT_DECIDED_SINCE, 2, 2, None, 1, 2),
        ((BAD, ABSENT), ViolationState.NOT_DECIDED_SINCE, 1, 1, None, 1, 1),
        ((BAD, GOOD), ViolationState.GONE, 1, 1, 2, 1, 2),
        ((BAD, OPEN, GOOD, GOOD, OPEN), ViolationState.GONE, 1, 1, 3, 1, 3),
        # It failed in another way, so the judge looked, and did not find this.
        ((BAD, scenario("crash", "FAIL")), ViolationState.GONE, 1, 1, 2, 1, 2),
    ],
)
def test_a_violation_has_its_state(
    tmp_path: Path,
    runs: tuple[dict[str, Any], ...],
    state: ViolationState,
    first_bad: int,
    last_bad: int,
    gone_since: int | None,
    bad: int,
    decided: int,
) -> None:
    """New, still there, without an earlier run, not decided since, gone."""
    (found,) = violations_of(tmp_path, *runs)
    assert found.state is state
    assert (found.first_bad, found.last_bad, found.gone_since) == (first_bad, last_bad, gone_since)
    assert (found.bad, found.decided) == (bad, decided)
    assert (found.found, found.known_bug, found.case) == ("torn-transaction", "KB-16", "crash-confluent")


@pytest.mark.parametrize("other", [{"release": "4.2.1"}, {"profile": "quick"}])
def test_runs_of_another_release_or_profile_are_not_compared(tmp_path: Path, other: dict[str, str]) -> None:
    """A release without the violation does not make it gone."""
    trend = trend_of(tmp_path, body(0, scenarios=[BAD]), body(1, scenarios=[GOOD], **other))
    (found,) = trend.violations
    assert found.state is ViolationState.NO_EARLIER_RUN
    assert found.decided == 1


def test_seeds_are_one_case(tmp_path: Path) -> None:
    """A violation with any seed is bad; it is gone only when every seed decided without it."""
    seeds = [scenario("crash", "FAIL", finding(accepted=True), seed=1), scenario("crash", "FAIL", finding(), seed=2)]
    half = [scenario("crash", seed=3), scenario("crash", "INCONCLUSIVE", seed=4)]
    whole = [scenario("crash", seed=5), scenario("crash", "NOT_APPLICABLE", seed=6)]
    (found,) = trend_of(tmp_path / "half", body(0, scenarios=seeds), body(1, scenarios=half)).violations
    assert found.state is ViolationState.NOT_DECIDED_SINCE
    assert not found.accepted
    (found,) = trend_of(tmp_path / "whole", body(0, scenarios=seeds), body(1, scenarios=whole)).violations
    assert found.state is ViolationState.GONE


def test_a_protocol_case_violates_requirements_and_a_control_nothing(tmp_path: Path) -> None:
    """A case has no anomaly; findings of a control are expected."""
    cases, controls = [case("first-sequence", "FAIL", known="KB-05")], [control("lossy", convicted=True)]
    (found,) = trend_of(tmp_path, body(cases=cases, controls=controls)).violations
    assert (found.found, found.known_bug, found.case) == ("IDEMP-10", "KB-05", "first-sequence")


def test_a_flaky_case_needs_equal_circumstances(tmp_path: Path) -> None:
    """Another seed, runtime, release or library explains a different verdict; else it is flaky, with its rate."""
    same = [body(day, scenarios=[OPEN if day == 2 else GOOD], profile=f"p{day}") for day in range(4)]
    other = [
        body(5, scenarios=[scenario("crash", "FAIL", seed=8)]),
        body(6, scenarios=[BAD], runtime="docker"),
        body(7, scenarios=[BAD], release="4.2.1"),
    ]
    newer = body(8, scenarios=[BAD])
    newer["subject"]["clients"][0]["library"] = "confluent-kafka 3"
    (found,) = trend_of(tmp_path, *same, *other, newer).flaky
    assert (found.case, found.seed, found.client) == ("crash-confluent", 7, "confluent-kafka 2.16.1")
    assert found.results == (("PASS", 3), ("INCONCLUSIVE", 1))
    assert found.rate == 0.25


def test_controls_and_protocol_cases_can_be_flaky(tmp_path: Path) -> None:
    """A control that is missed once, and a case that fails once."""
    trend = trend_of(
        tmp_path,
        body(0, controls=[control("lossy", convicted=True)], cases=[case("c")]),
        body(1, controls=[control("lossy", convicted=False)], cases=[case("c", "FAIL")]),
    )
    assert {each.case: dict(each.results) for each in trend.flaky} == {
        "lossy-confluent": {"DETECTED": 1, "MISSED": 1},
        "c": {"PASS": 1, "FAIL": 1},
    }


def test_only_requirements_that_some_run_tested_are_shown(tmp_path: Path) -> None:
    """A verdict per run; a run whose catalogue lacks the requirement did not test it."""
    trend = trend_of(
        tmp_path,
        body(0, requirements={"A": "FAIL", "GONE-1": "PASS", "NEVER-1": "UNTESTED"}),
        body(1, requirements={"B": "NOT_APPLICABLE", "A": "UNTESTED", "NEVER-1": "UNTESTED"}),
    )
    assert [(each.id, each.verdicts) for each in trend.requirements] == [
        ("B", (None, Verdict.NOT_APPLICABLE)),
        ("A", (Verdict.FAIL, None)),
        ("GONE-1", (Verdict.PASS, None)),
    ]


def test_neighbours_with_equal_verdicts_share_a_cell(tmp_path: Path) -> None:
    """The newest run is on the left; a requirement that every run passed is folded, and a release spans its columns."""
    verdicts = ("FAIL", "PASS", "PASS", "UNTESTED")
    for day, verdict in enumerate(verdicts):
        given = body(day, requirements={"A-1": verdict, "B-1": "PASS"}, release="4.2.1" if day < 1 else "4.3.1")
        plant(tmp_path / f"night-{day}", given)
    page = written([tmp_path], tmp_path / "out")["trend.html"]
    row = re.search(r'<th scope="row">A-1</th>(.*?)</tr>', page)
    assert row is not None
    assert re.findall(r'<td class="(\w+)"(?: colspan="(\d+)")?>', row[1]) == [
        ("untested", ""),
        ("pass", "2"),
        ("fail", ""),
    ]
    assert '<th scope="colgroup" colspan="3">4.3.1</th><th scope="colgroup" colspan="1">4.2.1</th>' in page
    assert page.index(">A-1<") < page.index("1 requirement passed wherever tested") < page.index(">B-1<")


def written(paths: list[Path], out: Path) -> dict[str, str]:
    """The three files of a trend; the JSON follows its schema."""
    assert command.main(["trend", *map(str, paths), "--out", str(out)]) is ExitCode.CONFORMANT
    files = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    assert set(files) == {"trend.html", "trend.json", "trend.md"}
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(files["trend.json"]))
    return files


def test_golden_runs_have_a_trend(tmp_path: Path) -> None:
    """Three real runs, rendered first: their violations by name, links to their reports, and everything in each format."""
    for each in golden():
        write_all(load_run(each / "run"), tmp_path / "nights" / each.name)
    files = written([tmp_path / "nights"], tmp_path / "out")
    made = json.loads(files["trend.json"])
    assert [each["profile"] for each in made["runs"]] == ["quick", "protocol", "quick, upgrade from 4.1.2"]
    found = {(each["found"], each["known_bug"], each["state"]) for each in made["violations"]}
    assert found == {
        ("torn-transaction", "KB-16", "no earlier run"),
        ("hung-transaction", "KB-16", "no earlier run"),
        ("decided-late", "KB-16", "no earlier run"),
        ("FENCE-01, TXN-05", "KB-19", "no earlier run"),
        ("IDEMP-10", "KB-05", "no earlier run"),
        ("stuck-lso", "KB-10", "no earlier run"),
    }
    assert made["runs"][0]["tried"] == 3
    assert made["runs"][0]["tested"] + made["runs"][1]["tested"] == 20
    for name, shown in (("page", files["trend.html"]), ("summary", Elements(files["trend.md"]).text)):
        for text in ("torn-transaction", "KB-16", "FENCE-01, TXN-05", "4.3.1", "NO-GO"):
            assert text in shown, (name, text)


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    """The order of the arguments, and the time, have no influence."""
    runs = [plant(tmp_path / name, body(day, scenarios=[BAD])) for day, name in enumerate("ab")]
    assert written(runs, tmp_path / "one") == written(runs[::-1], tmp_path / "two")


def test_a_report_is_linked_when_its_path_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link leads from the trend's directory to the report; an absolute path of another machine would lead nowhere."""
    run = make_run(tmp_path / "my nights" / "a", EVERY_VERDICT)
    write_all(load_run(run), run)
    monkeypatch.chdir(tmp_path)
    made = json.loads(written([Path("my nights")], Path("deep/out"))["trend.json"])
    assert made["runs"][0]["report"] == "../../my%20nights/a/report.html"
    assert 'href="../../my%20nights/a/report.html"' in (tmp_path / "deep/out/trend.html").read_text(encoding="utf-8")
    assert json.loads(written([tmp_path / "my nights"], Path("other"))["trend.json"])["runs"][0]["report"] == ""


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    """Names with markup, control characters and lone surrogates are escaped; half a surrogate pair can be read."""
    _, run = hostile_run(tmp_path / "hostile")
    plain = plant(tmp_path / "plain", body())
    nasty = plant(
        tmp_path / "nasty <b>",
        body(
            5,
            scenarios=[
                scenario('"><script>alert(1)</script>\ud800\u202e\x00', "FAIL", finding("<img src=x>", "|`[x](y)"))
            ],
            requirements={"<script>": "FAIL"},
            started="</title><script>",
            profile="x" * 100_000,
        ),
    )
    files = written([run, plain, nasty, tmp_path / "no <i>such</i>"], tmp_path / "out")
    assert len(json.loads(files["trend.json"])["runs"]) == 3
    page, summary = files["trend.html"], files["trend.md"]
    for markup in ("<script", "<img", "<b>", "<i>", "</title><"):
        assert markup not in page.replace("</title>\n<style>", "")
    for text in (page, summary):
        assert not {"\x00", "\u202e", "\ud800"} & set(text)
        assert len(text) < 100_000
    shown = Elements(summary)
    assert set(shown.tags) <= OURS
    assert not shown.attributes
    assert not unlike_prose(shown.prose)


def test_unreadable_runs_are_named_and_do_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing, truncated, foreign, newer, unfit and deeply nested files, and directories without runs."""
    nights = tmp_path / "nights"
    plant(nights / "good", body())
    unfit = {
        "foreign": {"suites": 3},
        "newer": {**body(), "format": 2, "run": "changed"},
        "unfit": body(duration_s="long"),
        "infinite": body(duration_s=float("inf")),
        "undecided": body(decision="MAYBE"),
        "no-list": body(scenarios={"a": 1}),
    }
    for name, given in unfit.items():
        plant(nights / name, given)
    for name, text in (("truncated", '{"format": 1, "sce'), ("nested", "[" * 100_000), ("empty", ""), ("nul", "\0")):
        plant(nights / name, {})
        (nights / name / "results.json").write_text(text, encoding="utf-8")
    (nights / "latin").mkdir()
    (nights / "latin" / "results.json").write_bytes(b'{"caf\xe9": 1}')
    (nights / "unfinished").mkdir()
    (nights / "unfinished" / "run.json").write_text("{}", encoding="utf-8")
    (nights / "folder" / "results.json").mkdir(parents=True)
    (nights / "logs").mkdir()
    (tmp_path / "nothing").mkdir()
    files = written([nights, tmp_path / "nothing", tmp_path / "missing.json"], tmp_path / "out")
    made, printed = json.loads(files["trend.json"]), capsys.readouterr().out
    assert len(made["runs"]) == 1
    bad = {*unfit, "truncated", "nested", "empty", "nul", "latin", "unfinished", "folder"}
    expected = {f"{nights}/{name}/results.json" for name in bad} | {f"{tmp_path}/nothing", f"{tmp_path}/missing.json"}
    assert {each["source"] for each in made["unread"]} == expected
    why = {each["source"]: each["why"] for each in made["unread"]}
    assert "has format 2; this version reads format 1" in why[f"{nights}/newer/results.json"]
    assert "$.run.duration_s" in why[f"{nights}/unfit/results.json"]
    for source in expected:
        assert source in files["trend.html"]
        assert source in printed
        assert source in files["trend.md"].replace("\\", "")
    assert all("\n" not in each for each in why.values())


def test_without_any_run_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 4, and nothing is written."""
    arguments = ["trend", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "out")]
    assert command.main(arguments) is ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"python -m reports trend: no run can be read: {tmp_path}/a does not exist")
    assert line.endswith("(and 1 more)")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [["trend"], ["trend", "x"], ["trend", "--out", "y"], ["trend", "x", "--no"]])
def test_bad_usage_ends_with_4(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One line, without a stack trace."""
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == ExitCode.USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_directory_that_cannot_be_written_ends_with_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file that is in the way is named."""
    run = plant(tmp_path / "run", body())
    assert command.main(["trend", str(run), "--out", str(run / "results.json")]) is ExitCode.ENVIRONMENT
    assert "cannot write" in capsys.readouterr().err


def test_a_run_counts_once(tmp_path: Path) -> None:
    """A symlink, an equal copy, the same path twice, and a merged report that is found next to its runs."""
    out = tmp_path / "out"
    first = plant(out / "20261101", body(0))
    (out / "latest").symlink_to(first.name)
    plant(out / "copy-of-it", body(0))
    merged = plant(out / "merged", body(1, parts=[{"name": "a"}]))
    trend = subject.of_paths([out, first, first / "results.json"], tmp_path / "trend")
    assert [each.source for each in trend.runs] == [f"{first}/results.json"]
    assert {each.source: each.why.split(",")[0] for each in trend.unread} == {
        f"{out}/copy-of-it/results.json": f"is a report of the same run as {first}/results.json",
        f"{merged}/results.json": "is a merged report",
    }
    judged = [body(2, scenarios=[scenario("crash", verdict, run="5d41402a")]) for verdict in ("PASS", "INCONCLUSIVE")]
    rejudged = trend_of(
        tmp_path / "judged", *judged, body(3, scenarios=[scenario("crash", "INCONCLUSIVE", run="7d793037")])
    )
    assert len(rejudged.runs) == 2
    assert not rejudged.flaky
    assert len(subject.of_paths([out, merged], tmp_path / "trend").runs) == 2
