"""Bisection: the search, the number of runs, the ledger that resumes, and the requests that are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.clusters.locks.releases import Release
from fixtures.errors import UsageError
from runner.bisect.__main__ import main
from runner.bisect.bisection import TRIED_MAX, Bisection
from runner.bisect.candidates import Candidate, candidates
from runner.bisect.experiment import Repeated, case, scenario
from runner.bisect.ledger import JSON, MARKDOWN, BuildRun, Ledger
from runner.bisect.likelihood import passes_needed, passes_unseen
from runner.bisect.search import BuildVerdict, first_bad
from runner.resumable_matrix import UnfitMatrixError
from verification.vocabulary.verdict import ExitCode

CASE = Repeated(identity="idempotence-a-gap-is-refused", place="suites/protocol/test_idempotence.py::test_a_gap")
BUILDS = tuple(Candidate(release=Release.parse(f"4.{minor}.0")) for minor in range(7))
Results = Callable[[str, int], BuildVerdict]


@pytest.mark.parametrize("where", range(1, 20))
def test_the_first_bad_one_is_found_in_few_steps(where: int) -> None:
    """Wherever it is among 20, five builds are tried at most."""
    asked: list[int] = []

    def verdict_of(place: int) -> BuildVerdict:
        asked.append(place)
        return BuildVerdict.BAD if place >= where else BuildVerdict.GOOD

    assert first_bad(20, verdict_of).places == (where,)
    assert len(asked) <= 5
    assert len(set(asked)) == len(asked)


def test_undecided_builds_leave_a_range() -> None:
    """A build that cannot be decided is passed over; when it lies at the boundary, several may be the first bad one."""
    results = [BuildVerdict.GOOD, BuildVerdict.GOOD, BuildVerdict.SKIPPED, BuildVerdict.SKIPPED, BuildVerdict.BAD]
    assert first_bad(5, results.__getitem__).places == (2, 3, 4)
    assert not first_bad(5, results.__getitem__).found


def test_a_rarer_failure_needs_more_passes() -> None:
    """The number follows the rate at the bad end and how well it is known."""
    assert [passes_needed(0.95, failed=failed, tried=tried) for failed, tried in ((3, 3), (1, 1), (1, 5))] == [3, 5, 19]
    assert passes_unseen(3, failed=3, tried=3) <= 0.05 < passes_unseen(2, failed=3, tried=3)
    assert passes_needed(0.999, failed=3, tried=3) > passes_needed(0.95, failed=3, tried=3)


class Runs:
    """Makes runs with given results and counts them; `stop_after` of them the user interrupts."""

    def __init__(self, ledger: Ledger, results: Results, *, stop_after: int = 1_000) -> None:
        self.made: list[str] = []
        self._ledger, self._results, self._left = ledger, results, stop_after

    def __call__(self, build: Candidate) -> BuildRun:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        number = len(self._ledger.runs(build.name))
        self.made.append(build.name)
        verdict = self._results(build.name, number)
        note = "KB-16" if verdict is BuildVerdict.BAD else ""
        return BuildRun(
            build=build.name,
            verdict=str(verdict),
            seconds=2.0,
            directory="runs/x",
            note=note,
            commit=self._ledger.commit,
        )


def bisect(
    directory: Path, results: Results, *, stop_after: int = 1_000, commit: str = "c0ffee"
) -> tuple[ExitCode, list[str], Ledger]:
    """A bisection with given results of runs; its exit code, the builds in the order of its runs, and its ledger."""
    ledger = Ledger(directory, CASE, BUILDS, confidence=0.95, commit=commit)
    runs = Runs(ledger, results, stop_after=stop_after)
    said: list[str] = []
    code = Bisection(builds=BUILDS, ledger=ledger, confidence=0.95, perform=runs, say=said.append).run()
    return code, runs.made, ledger


def bad_from(first: str) -> Results:
    return lambda name, _: BuildVerdict.BAD if name >= first else BuildVerdict.GOOD


def test_a_bisection_ends_with_a_ledger(tmp_path: Path) -> None:
    """Verdict, repeats, failures and seconds of each build that was tried, and the result, as JSON and Markdown."""
    code, made, ledger = bisect(tmp_path, bad_from("4.4.0"))
    assert (code, ledger.result) == (ExitCode.CONFORMANT, "the first bad build is 4.4.0")
    body = json.loads((tmp_path / JSON).read_text(encoding="utf-8"))
    rows = {each["build"]: (each["verdict"], each["repeats"], each["failures"]) for each in body["builds"]}
    assert rows["4.6.0"] == ("bad", 3, 3)
    assert rows["4.0.0"] == rows["4.3.0"] == ("good", 3, 0)
    assert rows["4.4.0"] == ("bad", 1, 1)
    assert rows["4.1.0"] == ("not tried", 0, 0)
    assert body["rate"] == {"failed": 3, "tried": 3}
    assert len(made) == sum(repeats for _, repeats, _ in rows.values()) == len(body["runs"])
    page = (tmp_path / MARKDOWN).read_text(encoding="utf-8")
    assert "| 4.3.0 | good | 0 | 3 | 6 | 2.9 % |  |" in page
    assert "| 4.4.0 | bad | 1 | 1 | 2 |  | KB-16 |" in page


def test_a_racy_case_is_repeated_until_the_likelihood_is_reached(tmp_path: Path) -> None:
    """A case that fails in every fourth run: a good build passes 15 times, a bad one fails before that."""

    def results(name: str, number: int) -> BuildVerdict:
        return BuildVerdict.BAD if name >= "4.2.0" and number % 4 == 3 else BuildVerdict.GOOD

    code, _, ledger = bisect(tmp_path, results)
    assert (code, ledger.result) == (ExitCode.CONFORMANT, "the first bad build is 4.2.0")
    rows = {each.build: each for each in ledger.rows()}
    assert (rows["4.6.0"].repeats, rows["4.6.0"].failures) == (4, 1)
    assert rows["4.0.0"].repeats == passes_needed(0.95, failed=1, tried=4)
    assert rows["4.2.0"].repeats == 4


def test_an_interrupted_bisection_goes_on(tmp_path: Path) -> None:
    """No run is made twice; runs of another commit are made again."""
    whole = len(bisect(tmp_path / "whole", bad_from("4.4.0"))[1])
    with pytest.raises(KeyboardInterrupt):
        bisect(tmp_path / "again", bad_from("4.4.0"), stop_after=5)
    code, made, ledger = bisect(tmp_path / "again", bad_from("4.4.0"))
    assert (code, len(made), ledger.result) == (ExitCode.CONFORMANT, whole - 5, "the first bad build is 4.4.0")
    assert bisect(tmp_path / "again", bad_from("4.4.0"))[1] == []
    assert len(bisect(tmp_path / "again", bad_from("4.4.0"), commit="f00d")[1]) == whole


@pytest.mark.parametrize(
    ("results", "result", "runs"),
    [
        (lambda *_: BuildVerdict.GOOD, "the bad end, 4.6.0, did not fail in 20 runs", TRIED_MAX),
        (lambda *_: BuildVerdict.BAD, "the good end, 4.0.0, is bad", 4),
        (lambda *_: BuildVerdict.SKIPPED, "the bad end, 4.6.0, did not fail in 2 runs", 2),
    ],
)
def test_ends_that_are_not_what_they_should_be_decide_nothing(
    results: Results, result: str, runs: int, tmp_path: Path
) -> None:
    """The exit code is that of an undecided run, and the ledger says which end it is."""
    code, made, ledger = bisect(tmp_path, results)
    assert (code, ledger.result, len(made)) == (ExitCode.INCONCLUSIVE, result, runs)


def test_candidates_are_in_the_order_from_good_to_bad() -> None:
    """Between two releases lie the supported ones; a list of builds is taken as it is."""
    names = [each.name for each in candidates("4.1.2", "4.4.0", [], scripted=True)]
    assert names == ["4.1.2", "4.2.1", "4.3.1", "4.4.0"]
    assert [each.name for each in candidates("4.4.0", "4.1.2", [], scripted=True)] == names[::-1]
    given = candidates("4.1.2", "4.4.0", ["4.2.0"], scripted=True)
    assert [each.option for each in given] == ["--kafka=4.1.2", "--kafka=4.2.0", "--kafka=4.4.0"]


def test_a_case_and_a_scenario_are_found_by_their_ids() -> None:
    """The id in a report is enough; the version at its end belongs to the case, and not to the test."""
    found = case("transaction-version-every-end-answers-with-the-next-epoch-tv2")
    assert found.place == "suites/protocol/test_transaction_version.py::test_every_end_answers_with_the_next_epoch"
    struck = scenario("coordinator/commit-while-a-partition-has-no-leader", seed=3, client="java")
    assert "--seed=3" in struck.arguments
    key = "coordinator-commit-while-a-partition-has-no-leader-java-3"
    assert scenario(key, seed=None, client=None) == struck
    assert scenario(key, seed=4, client="confluent").arguments[-3:-1] == ("--seed=4", "--client=confluent")
    rows = [
        {"scenario": struck.identity, "client": "confluent", "verdict": "FAIL"},
        {"scenario": struck.identity, "client": "java", "verdict": "PASS"},
    ]
    assert struck.row({"scenarios": rows}) == rows[1]
    assert struck.row({"scenarios": []}) is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--case", "no-such-case"], "There is no protocol case no-such-case"),
        (["--case", CASE.identity, "--seed", "1"], "--seed is for a scenario"),
        (["--scenario", "coordinator/nothing", "--seed", "1"], "There is no scenario coordinator/nothing"),
        (["--scenario", "coordinator/nothing"], "--scenario needs --seed"),
        (["--case", CASE.identity, "--good", "/nowhere"], "/nowhere is no directory"),
        (["--case", CASE.identity, "--good", "4.3.1"], "4.3.1 is named twice"),
        (["--case", CASE.identity, "--confidence", "1"], "is not between 0 and 1"),
    ],
)
def test_a_wrong_request_is_one_sentence(
    options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 4, before anything starts."""
    try:
        code = main(["--good", "4.2.1", "--bad", "4.3.1", "--out", str(tmp_path / "out"), *options])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 4
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_ledger_that_is_not_ours_is_not_overwritten(tmp_path: Path) -> None:
    """The sentence names the file, or the case that it is about."""
    bisect(tmp_path / "other", bad_from("4.4.0"))
    with pytest.raises(UnfitMatrixError, match="is about idempotence-a-gap-is-refused, seed None"):
        Ledger(tmp_path / "other", replace(CASE, identity="x"), BUILDS, confidence=0.95, commit="c0ffee")
    (tmp_path / JSON).write_text("{}", encoding="utf-8")
    with pytest.raises(UnfitMatrixError, match=r"bisect\.json is no ledger"):
        Ledger(tmp_path, CASE, BUILDS, confidence=0.95, commit="c0ffee")
    with pytest.raises(UsageError):
        candidates("4.2.1", "4.2.1", [], scripted=True)
