"""The arithmetic of the harness's benchmark: ratios, their spread, and the published table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import report, wire_client
from benchmarks.harness.__main__ import BENCHMARK, PAIRS_LEAST, PARTS, RECORDS, HarnessOptions, page
from benchmarks.harness.judging import leader_crash
from benchmarks.harness.throughput import require_all
from benchmarks.measuring.errors import WorthlessJudgementError, WorthlessReportError
from benchmarks.measuring.ratio import Ratio, Unit
from benchmarks.measuring.table import number, render
from fixtures.clusters.locks.releases import default_release
from runner.scenarios.scenario import Scenario
from suites.atomicity.test_leader_crash import test_leader_crash_while_committing as suites_own
from tests.support.plans import SMOKE
from tests.support.run_directories import make_scenario
from verification.vocabulary.verdict import ExitCode, ScenarioVerdict, Verdict
from wire.records import decode, encode

STARTS = Ratio(
    subject="three brokers", against="one broker", unit=Unit.SECONDS, pairs=((6.0, 3.0), (9.0, 3.0), (50.0, 5.0))
)
RATE = Ratio(subject="capture", against="a consumer", unit=Unit.RECORDS_PER_S, pairs=((50_000.0, 1_234_567.0),))
HERE = (
    "Kafka 4.3.1, Java 17, commit abc1234, 2026-01-02",
    "2 processors (AMD EPYC, Linux x86_64), 24 GiB of memory, Linux 6.18, load average 0.0 before the start",
)


def seen(*, uncommitted: int, log: int, committed: int) -> ScenarioVerdict:
    """A pass over this many rows."""
    return ScenarioVerdict(
        scenario="bench/throughput",
        run="r",
        verdict=Verdict.PASS,
        reason="",
        findings=(),
        coverage=(),
        requirements=(),
        counts=(("operations", 1), ("log", log), ("uncommitted", uncommitted), ("committed", committed)),
    )


def test_a_ratio_is_the_median_of_its_pairs() -> None:
    """One disturbed pair moves the spread and not the ratio."""
    assert STARTS.values == (2.0, 3.0, 10.0)
    assert (STARTS.median, STARTS.least, STARTS.most) == (3.0, 2.0, 10.0)
    assert STARTS.seen == (9.0, 3.0)


@pytest.mark.parametrize("pairs", [(), ((1.0, 0.0),), ((0.0, 1.0),), ((-1.0, 1.0),)])
def test_a_ratio_of_nothing_is_refused(pairs: tuple[tuple[float, float], ...]) -> None:
    """Without a measurement there is no ratio."""
    with pytest.raises(ValueError, match="measured"):
        Ratio(subject="a", against="b", unit=Unit.SECONDS, pairs=pairs)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0421, "0.042"), (0.38, "0.38"), (2.1749, "2.17"), (12.34, "12.3"), (123.4, "123")]
)
def test_numbers_are_written_with_about_three_digits(value: float, text: str) -> None:
    """A ratio is no more exact than its measurements."""
    assert number(value) == text


def test_the_table_shows_ratio_spread_and_what_was_seen() -> None:
    """Every row has the ratio, its spread, the number of pairs and both sides; columns are aligned."""
    head, rule, starts, rate = render([STARTS, RATE]).splitlines()
    assert [cell.strip() for cell in starts.strip("|").split("|")] == [
        "three brokers",
        "one broker",
        "**3.00**",
        "2.00 … 10.0",
        "3",
        "9.0 s : 3.0 s",
    ]
    assert "**0.041**" in rate
    assert "50 000 records/s : 1 234 567 records/s" in rate
    assert len({len(line) for line in (head, rule, starts, rate)}) == 1
    assert set(rule) == {"|", "-"}


def test_the_page_names_release_machine_date_and_commit() -> None:
    """A ratio without its circumstances cannot be compared with another one."""
    text = page([STARTS], HERE)
    for fact in (
        "Kafka 4.3.1",
        "Java 17",
        "commit abc1234",
        "2026-01-02",
        "2 processors",
        "24 GiB",
        "load average 0.0",
    ):
        assert fact in text
    assert render([STARTS]) in text
    assert text.endswith("|\n")


@pytest.mark.parametrize(
    ("chosen", "complete"),
    [
        ((PARTS, RECORDS, PAIRS_LEAST), True),
        ((PARTS[:2], RECORDS, PAIRS_LEAST), False),
        ((PARTS, RECORDS - 1, PAIRS_LEAST), False),
        ((PARTS, RECORDS, PAIRS_LEAST - 1), False),
    ],
)
def test_only_a_complete_run_is_published(chosen: tuple[tuple[str, ...], int, int], complete: bool) -> None:
    """Figures of a part, or of fewer records, are never published in the documentation."""
    parts, records, pairs = chosen
    options = HarnessOptions(parts=parts, records=records, pairs=pairs, release=default_release())
    assert options.complete is complete


def test_a_judge_that_saw_less_than_a_consumer_has_no_time() -> None:
    """A pass over fewer records than a plain consumer received is an error and no figure."""
    require_all(seen(uncommitted=100, log=130, committed=80), 100)
    for partial in (
        seen(uncommitted=99, log=130, committed=80),
        seen(uncommitted=100, log=99, committed=80),
        seen(uncommitted=100, log=130, committed=0),
        seen(uncommitted=100, log=130, committed=100),
    ):
        with pytest.raises(WorthlessJudgementError, match="100 records"):
            require_all(partial, 100)


def test_the_timed_run_is_the_suites_own_scenario() -> None:
    """The timed run has the claim, requirements, subject and attack of the scenario that pytest runs."""
    given: dict[str, Any] = {}
    suites_own(given.update)
    (requirements,) = [mark.args for mark in suites_own.pytestmark if mark.name == "requirement"]  # type: ignore[attr-defined]
    assert leader_crash(7) == Scenario(
        name="atomicity/leader-crash-while-committing",
        test_name=suites_own.__name__,
        claim=str(suites_own.__doc__),
        requirements=requirements,
        seed=7,
        **given,
    )


def test_each_client_is_compared_with_the_library_of_its_row() -> None:
    """Each ratio divides the wire client's rate by that of the library in its row."""
    found = wire_client.ratios(
        [wire_client.ClientRound(wire=8, kafka_python=2, librdkafka=16, decoding=9, consuming=3)]
    )
    assert [(each.against.partition("'")[0], each.median) for each in found] == [
        ("kafka-python", 4),
        ("librdkafka", 0.5),
        ("confluent-kafka", 3),
    ]


@pytest.mark.parametrize("count", [0, 1, wire_client.BATCHES_AT_ONCE, 2 * wire_client.BATCHES_AT_ONCE + 1])
def test_batches_that_are_read_together_are_all_read(count: int) -> None:
    """No batch is left when the last group is not full."""
    batches = list(decode(encode([(b"k", b"v")]) * count))
    groups = list(wire_client.together(iter(batches)))
    assert [batch for group in groups for batch in group] == batches
    assert all(0 < len(group) <= wire_client.BATCHES_AT_ONCE for group in groups)


def test_a_report_is_timed_from_evidence_to_every_format(tmp_path: Path) -> None:
    """Its time is compared with parsing, the size of its page with the limit, and both are printed."""
    said: list[str] = []
    evidence = make_scenario(tmp_path / "evidence", SMOKE)
    time, size = report.ratios(evidence, tmp_path / "place", pairs=2, say=said.append, copies=3)
    assert len(time.pairs) == 2
    assert time.least > 1
    page = tmp_path / "place" / "formats" / "report.html"
    assert size.seen == (page.stat().st_size / 1000, 2000.0)
    assert said[0].startswith("3 scenarios, controls and cases: ")
    assert "results.json" in said[1]


def test_a_report_of_other_scenarios_has_no_time(tmp_path: Path) -> None:
    """Foreign scenarios in the directory would be timed too, so they are an error and no figure."""
    evidence = make_scenario(tmp_path / "evidence", SMOKE)
    make_scenario(tmp_path / "place" / "run" / "runs" / "another", SMOKE)
    with pytest.raises(WorthlessReportError, match="2 of 1"):
        report.ratios(evidence, tmp_path / "place", pairs=1, say=print, copies=1)


@pytest.mark.parametrize("arguments", [["--repeat", "1"], ["--records", "0"], ["--only", "nothing"]])
def test_bad_options_end_with_4(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence and the usage code, before anything is started; 2 would mean INCONCLUSIVE."""
    with pytest.raises(SystemExit) as left:
        BENCHMARK.main(arguments)
    assert left.value.code == ExitCode.USAGE
    assert capsys.readouterr().err.count("\n") == 1
