"""Broker log lines about a violation: the selection, and robustness against any content."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reports.loading.broker_log import LINES_MAX, TEXT_MAX, BrokerLogQuery, around
from reports.loading.run import load_run
from reports.model.findings import BrokerLine
from tests.support.plans import CONTROL, FAILED, SMOKE
from tests.support.plans import found as planted
from tests.support.rendered_runs import page_of, rendered
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import Finding

BEGAN = datetime(2026, 11, 21, 9, 0, 10, tzinfo=UTC)
ASKED = BrokerLogQuery(
    transaction="app-2",
    partitions=("app-billing-0", "app-billing-1"),
    began=BEGAN,
    ended=BEGAN + timedelta(seconds=4),
    origin=BEGAN - timedelta(seconds=10),
)
SKIPPED = "Couldn't find leader endpoint for partitions HashSet(app-billing-0) while sending markers for {}, skipped"


def line(second: float, text: str, level: str = "INFO", zone: str = "Z") -> str:
    """A line as brokers write it, so many seconds after the start of the scenario."""
    at = BEGAN + timedelta(seconds=second - 10)
    if zone != "Z":
        at += timedelta(hours=int(zone[:3]))
    return f"[{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}{zone}] {level} [handler-1] {text}"


def found(directory: Path, *lines: str, asked: BrokerLogQuery = ASKED) -> tuple[BrokerLine, ...]:
    """The selected lines of one broker log."""
    (directory / "broker-2.log").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
    return around(directory, asked)


def test_the_line_that_names_the_transaction_stands_out(tmp_path: Path) -> None:
    """It is marked; lines about other transactions that differ only in numbers become one line with a count."""
    others = [line(14.02 + each / 100, SKIPPED.format(f"app-{each}")) for each in range(3, 8)]
    said = found(tmp_path, line(14.01, SKIPPED.format("app-2")), *others)
    assert [(each.names_it, each.alike, each.broker) for each in said] == [
        (True, 0, "broker 2"),
        (False, 4, "broker 2"),
    ]
    assert said[0].at_s == 14.01
    assert said[0].text.endswith("app-2, skipped")


@pytest.mark.parametrize(
    ("text", "level", "second", "chosen"),
    [
        ("Initialized transactionalId app-2 with producerId 7", "INFO", 8.0, False),
        ("Initialized transactionalId app-2 with producerId 7", "INFO", 9.5, True),
        ("Initialized transactionalId app-22 with producerId 7", "INFO", 12.0, False),
        ("Truncating app-billing-1 to 4", "INFO", 15.0, True),
        ("Truncating app-billing-1 to 4", "INFO", 17.0, False),
        ("Truncating app-billing-1 to 4", "WARN", 17.0, True),
        ("UNCLEAN partition change for app-billing-1", "INFO", 17.0, True),
        ("UNCLEAN partition change for app-billing-1", "INFO", 25.0, False),
        ("Truncating app-billing-11 to 4", "ERROR", 12.0, False),
    ],
)
def test_lines_are_chosen_by_name_time_and_level(
    tmp_path: Path, text: str, level: str, second: float, chosen: bool
) -> None:
    """Names match as a whole; lines about the transaction count until 10 s after its end, INFO lines of a partition 2 s."""
    assert bool(found(tmp_path, line(second, text, level))) is chosen


def test_a_zone_of_its_own_is_the_same_moment(tmp_path: Path) -> None:
    """Brokers write local time with its offset; a line without an offset has no known time."""
    said = found(tmp_path, line(12, "about app-2", zone="+05:00"), "[2026-11-21 09:00:12,000] INFO [x] about app-2")
    assert [each.at_s for each in said] == [12.0]


def test_an_operation_that_never_ended_may_be_named_at_any_time(tmp_path: Path) -> None:
    """Without a known end of the operation no line is too late."""
    assert found(tmp_path, line(900, "about app-2"), asked=replace(ASKED, ended=None))


def test_there_are_few_lines_and_none_is_long(tmp_path: Path) -> None:
    """The nearest lines to the end of the operation stay, in the order of time."""
    said = found(tmp_path, *(line(10 + each / 10, f"app-2 {'x' * each} " + "y" * 1000) for each in range(30)))
    assert len(said) == LINES_MAX
    assert [each.at_s for each in said] == sorted(each.at_s for each in said)
    assert said[-1].at_s == 12.9
    assert all(len(each.text) == TEXT_MAX for each in said)


def test_what_is_no_log_says_nothing(tmp_path: Path) -> None:
    """Binary content, a directory in place of the log, a missing directory, and an invalid time are harmless."""
    (tmp_path / "broker-1.log").write_bytes(b"\xff\xfe[2026-11-21T09:00:12.000Z] INFO [x] app-2")
    (tmp_path / "broker-3.log").mkdir()
    assert found(tmp_path, "[2026-13-41T09:00:12.000Z] INFO [x] app-2") == ()
    assert around(tmp_path / "nowhere", ASKED) == ()


def test_a_line_with_an_impossible_time_hides_no_other(tmp_path: Path) -> None:
    """A line with an invalid time is left out, and reading continues."""
    assert len(found(tmp_path, "[2026-13-41T09:00:12.000Z] INFO [x] app-2", line(12, "about app-2"))) == 1


def test_an_operation_as_long_as_the_calendar_has_lines(tmp_path: Path) -> None:
    """An operation from the first to the last time of the calendar still has its lines."""
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert found(tmp_path, line(12, "about app-2"), asked=replace(ASKED, began=first, origin=first, ended=last))


def asked_about(tmp_path: Path, finding: Finding) -> str:
    """Broker logs of a run: they lost a leader of a violating partition, and one of another partition."""
    run = make_run(tmp_path, (replace(FAILED, findings=(finding,)),))
    log = run / "runs" / FAILED.key / "brokers" / "broker-1.log"
    said = log.read_text(encoding="utf-8")
    log.write_text(f"{said}\n{said.replace(f'{FAILED.topic}-0', 'elsewhere-5')}\n", encoding="utf-8")
    (shown,) = load_run(run).scenarios[0].findings
    return " ".join(each.text for each in shown.around_brokers)


def test_the_places_of_the_witness_are_asked_for_too(tmp_path: Path) -> None:
    """The judge's witness, the log and the broker lines all belong to the first example."""
    finding = planted("torn-transaction")
    assert finding.witness is not None
    elsewhere = replace(finding.witness.places[0], topic="elsewhere", partition=5)
    said = asked_about(tmp_path / "with", replace(finding, witness=replace(finding.witness, places=(elsewhere,))))
    assert f"{FAILED.topic}-0" in said
    assert "elsewhere-5" in said
    assert "elsewhere-5" not in asked_about(tmp_path / "without", replace(finding, witness=None))


def test_a_violation_without_an_operation_is_not_asked_about(tmp_path: Path) -> None:
    """The first operation of its process is another one."""
    finding = planted("torn-transaction")
    examples = tuple(replace(each, process=0, operation=None) for each in finding.examples)
    assert asked_about(tmp_path, replace(finding, examples=examples)) == ""


def test_the_page_shows_them_with_the_witness(tmp_path: Path) -> None:
    """For a violation, but not for a detected control, whose broker is broken on purpose."""
    _, run = rendered(tmp_path, (SMOKE, FAILED, CONTROL))
    text = page_of(run).text
    assert text.count("Broker log lines about the first example") == 1
    assert f"Lost leader of {FAILED.topic}-0" in text
