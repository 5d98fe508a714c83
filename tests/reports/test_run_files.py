"""run.json and verdicts.json survive writing and reading, and old runs are deleted without touching anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from reports import retention
from reports.formats import html, terminal
from reports.loading.run import load_run
from reports.model import run_record
from reports.model.errors import RetentionError, UnfitRunRecordError
from reports.model.run_record import Acceptance
from tests.support.plans import EVERY_VERDICT, FAILED, SMOKE, found
from tests.support.run_directories import judged, make_run, record
from verification.evidence import verdict_file
from verification.evidence.verdict_file import UnfitVerdictError


def test_a_run_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """No field of a record is lost or changed."""
    written = record(EVERY_VERDICT, accepted=(Acceptance(id="KB-16", until="2027-01-31"),), problems=("a sentence",))
    written.write(tmp_path / "run.json")
    assert run_record.read(tmp_path / "run.json") == written
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


def test_verdicts_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Every planted verdict survives, and verdicts are words in the file."""
    for plan in EVERY_VERDICT:
        path = tmp_path / "verdicts.json"
        verdict_file.write(path, judged(plan))
        assert verdict_file.read(path) == judged(plan)
        assert json.loads(path.read_text(encoding="utf-8"))["verdict"] == judged(plan).verdict.name


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 99}', '{"format": 1}', '{"format": 1, "kind": "onceproof-run"}', "\x00\xff"]
)
def test_foreign_files_are_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    """Empty, truncated, foreign, newer and binary files are refused, never guessed at."""
    path = tmp_path / "file.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UnfitVerdictError, match=r"file\.json"):
        verdict_file.read(path)
    with pytest.raises(UnfitRunRecordError, match=r"file\.json"):
        run_record.read(path)


def places_in(value: Any, *above: str | int) -> Iterator[tuple[str | int, ...]]:
    """Every place of a JSON value below its top; of a list the first member."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, each in inner:
        yield (*above, name)
        yield from places_in(each, *above, name)


def spoilt(text: str, places: tuple[str | int, ...], value: object) -> str:
    """A JSON object with another value at a place."""
    body = json.loads(text)
    inner = body
    for each in places[:-1]:
        inner = inner[each]
    inner[places[-1]] = value
    return json.dumps(body)


@pytest.mark.parametrize("name", ["run.json", "scenario.json", "verdicts.json", "history.jsonl"])
def test_no_value_of_another_type_ends_a_report(tmp_path: Path, name: str) -> None:
    """The report is made with a wrong value at any place."""
    run = make_run(tmp_path / "run", (replace(FAILED, findings=(found(count=1, known_bug="KB-16"),)),))
    file = run / name if name == "run.json" else run / "runs" / FAILED.key / name
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines() if name == "history.jsonl" else [text]
    values = cycle((5, "x", None, -1e300, [1], {"a": 1}, 10**30))
    for number in {json.loads(line).get("type"): number for number, line in enumerate(lines)}.values():
        for place in places_in(json.loads(lines[number])):
            changed = [*lines[:number], spoilt(lines[number], place, next(values)), *lines[number + 1 :]]
            file.write_text("\n".join(changed) + "\n", encoding="utf-8")
            report = load_run(run)
            # A file that is named as a problem is not shown; valid content appears in all output formats.
            if not report.problems:
                terminal.render(report)
                html.render(report, run)


def test_a_value_of_another_type_is_named(tmp_path: Path) -> None:
    """The error names the file, the field and its value."""
    run = make_run(tmp_path / "run", (SMOKE,))
    file = run / "runs" / SMOKE.key / "scenario.json"
    file.write_text(spoilt(file.read_text(encoding="utf-8"), ("seed",), "seven"), encoding="utf-8")
    (problem,) = load_run(run).problems
    assert problem.text == "scenario.json does not fit scenario format 1: Expected `int`, got `str` - at `$.seed`"
    record = run / "run.json"
    record.write_text(
        spoilt(record.read_text(encoding="utf-8"), ("planned", 0, "expected_s"), "soon"), encoding="utf-8"
    )
    with pytest.raises(UnfitRunRecordError, match=r"Expected `float`, got `str` - at `\$\.planned\[0\]\.expected_s`"):
        run_record.read(record)


def test_a_verdict_that_is_no_word_of_the_lattice_is_refused(tmp_path: Path) -> None:
    """A verdict from a newer version is not mapped to anything."""
    path = tmp_path / "verdicts.json"
    path.write_text(verdict_file.dumps(judged(SMOKE)).replace('"PASS"', '"SPLENDID"'), encoding="utf-8")
    with pytest.raises(UnfitVerdictError, match="SPLENDID"):
        verdict_file.read(path)


def runs(out: Path, count: int) -> list[Path]:
    """Planted runs, the oldest first."""
    made = []
    for day in range(1, count + 1):
        started = f"202611{day:02d}T090000Z"
        made.append(make_run(out / f"2026-11-{day:02d}-7", (SMOKE,), started=started))
    return made


def test_the_last_runs_are_kept(tmp_path: Path) -> None:
    """The oldest are deleted, the newest stay, and the latest run always stays."""
    made = runs(tmp_path, 5)
    result = retention.keep_last(tmp_path, 2, current=made[0])
    assert set(result.kept) == {made[4], made[3], made[0]}
    assert [each.exists() for each in made] == [True, False, False, True, True]
    assert not result.failed
    with pytest.raises(RetentionError, match="at least 1"):
        retention.keep_last(tmp_path, 0)


def test_what_is_not_ours_is_never_deleted(tmp_path: Path) -> None:
    """Foreign directories, files, look-alikes and symlinks survive, and so does the target of a symlink."""
    out = tmp_path / "out"
    made = runs(out, 3)
    outside = make_run(tmp_path / "outside", (SMOKE,), started="2000-01-01T00:00:00Z")
    (out / "linked").symlink_to(outside, target_is_directory=True)
    (made[0] / "escape").symlink_to(outside, target_is_directory=True)
    (out / "notes").mkdir()
    (out / "notes" / "run.json").write_text('{"kind": "other-tool"}', encoding="utf-8")
    (out / "bare").mkdir()
    (out / "file.txt").write_text("keep", encoding="utf-8")
    retention.keep_last(out, 1)
    assert sorted(each.name for each in out.iterdir()) == ["2026-11-03-7", "bare", "file.txt", "linked", "notes"]
    assert (outside / "runs" / SMOKE.key / "scenario.json").is_file()


def test_latest_moves_at_once_and_replaces_only_a_symlink(tmp_path: Path) -> None:
    """The link is relative, points to the newest run, and a real directory in its place stays."""
    first, second = runs(tmp_path, 2)
    for run in (first, second):
        link = retention.point_latest(tmp_path, run)
        assert link.resolve() == run.resolve()
        assert str(link.readlink()) == run.name
    link.unlink()
    link.mkdir()
    with pytest.raises(RetentionError, match="no symlink"):
        retention.point_latest(tmp_path, first)


def test_the_builder_writes_the_same_bytes_twice(tmp_path: Path) -> None:
    """Planted runs are fixed, so that tests that compare bytes compare the report and not the planting."""
    plan = replace(SMOKE, key="again")
    one, two = (make_run(tmp_path / name, (plan,)) for name in ("one", "two"))
    for name in ("run.json", "runs/again/scenario.json", "runs/again/history.jsonl", "runs/again/verdicts.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
