"""Known bugs of clients: each is there in its bad version and not in its good one."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.clients import bugs
from runner.clients.bugs import BUGS, ClientBug, as_expected, main, perform, render, shown_by
from verification.vocabulary.verdict import ExitCode


@pytest.fixture(autouse=True)
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page and lines of our own."""
    monkeypatch.setattr(bugs, "OUT", tmp_path)
    monkeypatch.setattr(bugs, "LINES", tmp_path / "lines.jsonl")
    monkeypatch.setattr(bugs, "RECORD", tmp_path / "page.md")
    (tmp_path / "page.md").write_text(f"before\n{bugs.BEGIN}\n{bugs.END}\nafter\n", encoding="utf-8")
    return tmp_path / "page.md"


def line(bug: ClientBug, client: str, seen: str) -> dict[str, str]:
    """A stored result."""
    return {"bug": bug.id, "client": client, "seen": seen, "date": "2026-11-28", "commit": "abc"}


def test_a_bug_that_is_missed_and_one_that_is_invented_are_not_as_expected() -> None:
    """Both ways; the table says it."""
    bug = BUGS[0]
    found = [line(bug, bug.bad, "a record is lost"), line(bug, bug.good, "")]
    assert all(map(as_expected, found))
    assert "not as expected" not in render(found)
    wrong = [line(bug, bug.bad, ""), line(bug, bug.good, "a record is lost")]
    assert not any(map(as_expected, wrong))
    assert render(wrong).count("**not as expected**") == 2


def test_bugs_have_one_name_each_and_two_clients() -> None:
    """A bad and a good one, each with its version."""
    assert len({bug.id for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert bug.bad != bug.good
        assert "@" in bug.bad


def test_a_finding_of_a_scenario_has_the_name_of_the_bug_of_its_client() -> None:
    """Of that version alone, and in that scenario alone."""
    scenario = "offsets/copier-cut-from-its-group-coordinator"
    assert shown_by("aiokafka 0.14.0", scenario) == ["CB-05"]
    assert shown_by("aiokafka 0.15.0", scenario) == []
    assert shown_by("aiokafka 0.14.0", "fencing/paused-zombie") == []


def test_the_table_stands_between_its_markers_and_an_unknown_bug_is_refused(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rendering tries nothing."""
    assert main(["--render-only"]) == ExitCode.CONFORMANT
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert f"{BUGS[0].bad}: not tried" in text
    with pytest.raises(SystemExit) as ended:
        main(["--bug", "CB-99"])
    assert ended.value.code == ExitCode.USAGE
    assert "CB-99 is none of CB-01" in capsys.readouterr().err


@pytest.mark.cluster
@pytest.mark.deep
@pytest.mark.parametrize(
    ("bug", "client"),
    [pytest.param(bug, each, id=f"{bug.id}-{each}") for bug in BUGS for each in (bug.bad, bug.good)],
)
def test_bad_versions_show_the_bug_and_good_ones_do_not(bug: ClientBug, client: str) -> None:
    """On one broker, or on the cluster of a scenario."""
    found = perform(bug, client)
    assert as_expected(found), found
