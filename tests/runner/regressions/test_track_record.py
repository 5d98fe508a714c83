"""The track record: expectations that are strict both ways, the matrix, resuming, and wrong options."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.clusters.errors import ClusterSpecError
from reports.formats.track_record_page import render
from runner import checkout
from runner.protocol.toolkit.case import Needs
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.script_recorder import ScriptRecorder, UnmetError
from runner.regressions import matrix, track_record
from runner.regressions.matrix import ReproductionResult
from runner.regressions.reproduction import Reproduction, Result, decide
from runner.regressions.track_record import RELEASES, ReleasePlan, TrackRecordRun, conclude, plans, reproductions
from runner.resumable_matrix import UnfitMatrixError
from tests.support.paths import ROOT
from verification.known_bugs.catalogue import KnownBugId, affects, load
from verification.vocabulary.verdict import ExitCode


def reproduction(**fields: object) -> Reproduction:
    ordinary = Reproduction(
        bug=KnownBugId("KB-05"),
        variant="",
        claim="It is refused.",
        violated=(("2.5.0", "3.7.0"), ("4.0.0", "4.0")),
        since="2.4.0",
        until=None,
        only=(),
        race=False,
        generation=None,
        needs=Needs(),
        play=print,
    )
    return dataclasses.replace(ordinary, **fields)  # type: ignore[arg-type]


def cell(release: str, seen: Result = Result.HELD, **fields: object) -> ReproductionResult:
    ordinary = ReproductionResult(
        row="KB-05", release=release, seen=seen, seconds=1.0, note="", evidence="", commit="abc"
    )
    return dataclasses.replace(ordinary, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("2.4.1", Result.HELD),
        ("2.5.0", Result.VIOLATED),
        ("3.7.0", Result.VIOLATED),
        ("3.7.1", Result.HELD),
        ("4.0.2", Result.VIOLATED),
        ("4.1.0", Result.HELD),
    ],
)
def test_ranges_are_strict_both_ways(release: str, expected: Result) -> None:
    """Either result is a mismatch where the other one is expected, and only there."""
    other = Result.HELD if expected is Result.VIOLATED else Result.VIOLATED
    assert reproduction().expected(release) is expected
    assert reproduction().mismatch(release, expected) == ""
    assert f"is {other} on {release}, where it must be {expected}" in reproduction().mismatch(release, other)


@pytest.mark.parametrize("seen", [Result.VIOLATED, Result.HELD])
def test_a_race_is_never_a_mismatch(seen: Result) -> None:
    """A race has no expected result."""
    assert reproduction(race=True).mismatch("3.7.0", seen) == ""
    assert reproduction(race=True).mismatch("3.8.1", seen) == ""


def test_an_undecided_result_is_no_mismatch_and_no_pass() -> None:
    """With an undecided or a missing cell the exit code is not that of conformance."""
    chosen = [ReleasePlan(release="3.8.1", reproductions=(reproduction(),))]
    assert reproduction().mismatch("3.8.1", Result.INCONCLUSIVE) == ""
    assert conclude(chosen, [cell("3.8.1", Result.INCONCLUSIVE)]) is ExitCode.INCONCLUSIVE
    assert conclude(chosen, [cell("3.8.1", Result.ERROR)]) is ExitCode.ENVIRONMENT
    assert conclude(chosen, []) is ExitCode.ENVIRONMENT
    assert conclude([], []) is ExitCode.INCONCLUSIVE


def test_the_exit_code_follows_from_mismatches() -> None:
    """Expected results are 0, a false alarm and a missed bug are 1; cells that were not chosen do not count."""
    chosen = [ReleasePlan(release=each, reproductions=(reproduction(),)) for each in ("3.7.0", "3.8.1")]
    bad, good = cell("3.7.0", Result.VIOLATED), cell("3.8.1", Result.HELD)
    assert conclude(chosen, [bad, good, cell("4.2.0", Result.VIOLATED)]) is ExitCode.CONFORMANT
    assert conclude(chosen, [bad, cell("3.8.1", Result.VIOLATED)]) is ExitCode.VIOLATION
    assert conclude(chosen, [cell("3.7.0", Result.HELD), good]) is ExitCode.VIOLATION


def test_a_row_is_for_its_releases_only() -> None:
    """`since` and `until` are bounds; `only` names the releases of a reproduction that costs too much for all."""
    bounded, few = reproduction(since="2.5.0", until="2.8"), reproduction(only=("3.9.2",))
    releases = ("2.4.1", "2.5.0", "2.8.2", "3.9.2")
    assert [bounded.is_for(each) for each in releases] == [False, True, True, False]
    assert [few.is_for(each) for each in releases] == [False, False, False, True]


class Scripted:
    """A case that states without a cluster."""

    def __init__(self) -> None:
        self.recording = ScriptRecorder()

    require = CaseContext.require
    expect = CaseContext.expect


@pytest.mark.parametrize(("code", "end"), [(0, True), (48, True), (0, False)])
def test_only_the_bug_itself_is_a_violation(code: int, end: bool) -> None:
    """The bug violates and the expected answer holds; any other answer, or half of each, ends the script undecided."""
    stage = Scripted()
    held, violated = {"code": 48, "end": True}, {"code": 0, "end": False}
    seen = {"code": code, "end": end, "another": 7}
    if (code, end) == (0, True):
        with pytest.raises(UnmetError):
            decide(stage, "it", seen, held=held, violated=violated)  # type: ignore[arg-type]
        return
    decide(stage, "it", seen, held=held, violated=violated)  # type: ignore[arg-type]
    assert stage.recording.statements[-1].holds is (code == 48)


def test_the_rows_are_the_known_bugs() -> None:
    """There are at least 18 rows with a claim each, their names are unique, and their ids are known bugs."""
    known, bugs = reproductions(), load()
    assert len(known) >= 18
    assert len({each.key for each in known}) == len(known)
    assert all(each.claim.endswith(".") and each.bug in bugs for each in known)
    by_release = [each for each in known if len({each.expected(name) for name in RELEASES if each.is_for(name)}) == 2]
    assert len(by_release) >= 14


def test_the_rows_and_the_list_of_known_bugs_agree() -> None:
    """Expected results follow from the list of known bugs, unless the reproduction is a variant by setting."""
    bugs = load()
    by_setting = {"KB-01/verification-off", "KB-03/TV2", "KB-04/TV2", "KB-09/v1", "KB-13/clean", "KB-18/level-1"}
    for each in reproductions():
        if each.race or each.name in by_setting:
            continue
        for release in filter(each.is_for, RELEASES):
            expected = each.expected(release) is Result.VIOLATED
            assert affects(bugs[each.bug], release) == expected, f"{each.name} on {release}"


def test_a_cluster_of_two_releases_names_its_own_brokers() -> None:
    """One broker of another release makes another cluster, and only a broker of the cluster can have one."""
    mixed = Needs(brokers=2, releases={2: "4.1.2"})
    assert mixed.spec("4.2.0").releases == {2: "4.1.2"}
    assert mixed.spec("4.2.0") != Needs(brokers=2).spec("4.2.0")
    assert "broker 2 of 4.1.2" in mixed.describe()
    with pytest.raises(ClusterSpecError, match="node 3, which shall run another release, is none of the 2"):
        Needs(brokers=2, releases={3: "4.1.2"}).spec("4.2.0")


def test_rows_with_one_cluster_follow_each_other() -> None:
    """Each cluster of a release is started once, and every release of the matrix has reproductions."""
    found = plans(RELEASES, ())
    assert [plan.release for plan in found] == list(RELEASES)
    for plan in found:
        clusters = [each.needs.describe() for each in plan.reproductions]
        changes = sum(this != following for this, following in itertools.pairwise(clusters))
        assert changes == len(set(clusters)) - 1


def test_bugs_are_chosen_by_id_or_by_name() -> None:
    """An id chooses every variant, a name one of them; a wrong name is refused with the list of names."""
    assert {each.name for each in plans(["4.3.1"], ["KB-03"])[0].reproductions} == {"KB-03/TV1", "KB-03/TV2"}
    assert [each.name for each in plans(["4.3.1"], ["KB-03/TV2"])[0].reproductions] == ["KB-03/TV2"]
    with pytest.raises(ValueError, match="KB-99 is no row; there are KB-01"):
        plans(["4.3.1"], ["KB-99"])


def test_the_matrix_shows_every_cell_and_names_mismatches() -> None:
    """Releases in the order of versions, with signs, the count of a race, the seconds, and mismatches in words."""
    race = reproduction(bug="KB-15", race=True)
    cells = [
        cell("3.10.0", Result.VIOLATED, seconds=2.0),
        cell("3.9.2", Result.HELD),
        cell("2.5.0", Result.VIOLATED),
        cell("2.6.0", Result.ERROR, note="no port"),
        cell("2.5.0", Result.VIOLATED, row="KB-15", note="2/1500", seconds=8.0),
    ]
    lines = matrix.render(cells, [reproduction(), race]).splitlines()
    assert "| row | 2.5.0 | 2.6.0 | 3.9.2 | 3.10.0 | s |" in lines
    assert "| KB-05 | V | E | · | **V!** | 1.0 |" in lines
    assert "| KB-15 | V 2/1500 |   |   |   | 8.0 |" in lines
    assert "| s | 9 | 1 | 1 | 2 | 13 |" in lines
    assert "2 rows, 5 cells, 1 mismatches, 1 undecided." in lines
    assert "* KB-05 is VIOLATED on 3.10.0, where it must be HELD." in lines
    assert "* KB-05 on 2.6.0: no port." in lines


def test_the_matrix_leaves_what_people_wrote(tmp_path: Path) -> None:
    """Only the text between the markers is replaced, cells survive a round trip, and a file without markers is refused."""
    cells, table, page = tmp_path / "cells.json", tmp_path / "record.md", tmp_path / "record.html"
    table.write_text(f"by hand\n{matrix.BEGIN}\nold\n{matrix.END}\nby hand too\n", encoding="utf-8")
    written = [cell("3.9.2"), cell("2.5.0", Result.VIOLATED)]
    for _ in range(2):
        matrix.write(written, [reproduction()], cells, table, page)
    assert page.read_text(encoding="utf-8") == render(matrix.as_track_record(written, [reproduction()]))
    text = table.read_text(encoding="utf-8")
    assert text.startswith(f"by hand\n{matrix.BEGIN}\n")
    assert text.endswith(f"{matrix.END}\nby hand too\n")
    assert text.count("| KB-05 |") == 1
    assert "old" not in text
    assert matrix.read(cells) == sorted(written, key=lambda each: each.release)
    table.write_text("by hand\n", encoding="utf-8")
    with pytest.raises(UnfitMatrixError, match="has lost the lines"):
        matrix.write(written, [reproduction()], cells, table, page)


def test_the_page_names_what_was_not_expected_and_what_was_seen() -> None:
    """A mismatch is shown above the table and in its cell, equal observations of releases as one, races with a count."""
    cells = [
        cell("2.5.0", Result.VIOLATED, note="taken <b>"),
        cell("2.6.0", Result.VIOLATED, note="taken <b>"),
        cell("3.8.1", Result.VIOLATED, note="taken again"),
        cell("2.5.0", Result.HELD, row="KB-15", note="0/384"),
    ]
    race = reproduction(bug=KnownBugId("KB-15"), race=True)
    text = render(matrix.as_track_record(cells, [reproduction(), race, reproduction(variant="/none")]))
    assert "1 MISMATCH" in text
    assert "3 cells: in releases that have the bug" in text
    assert "1 cell: in releases without the bug" in text
    assert text.index("KB-05 is VIOLATED on 3.8.1, where it must be HELD") < text.index('id="matrix"')
    assert text.count("not expected") == 1
    assert "2.5.0, 2.6.0</th><td>taken &lt;b&gt;</td>" in text
    assert "</abbr> 0/384</td>" in text
    assert "KB-05/none" not in text
    assert "AS EXPECTED" in render(matrix.as_track_record(cells[:2], [reproduction()]))
    assert "1 UNDECIDED" in render(matrix.as_track_record([cell("2.5.0", Result.ERROR)], [reproduction()]))


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"format": 9, "cells": []}', '{"format": 1, "cells": [{"row": "KB-05"}]}']
)
def test_a_foreign_record_is_one_sentence(tmp_path: Path, text: str) -> None:
    """A file that is no track record is refused by its name, without a traceback."""
    path = tmp_path / "track-record.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnfitMatrixError, match=r"track-record\.json"):
        matrix.read(path)
    assert matrix.read(tmp_path / "missing.json") == []


def test_a_commit_says_whether_anything_but_documents_was_changed(tmp_path: Path) -> None:
    """An edited or a new file marks the commit, a page in docs does not, and without a repository it is unknown."""
    assert checkout.commit(tmp_path) == checkout.UNKNOWN
    person = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    (tmp_path / "docs/generated").mkdir(parents=True)
    for name in ("row.py", "docs/generated/track-record.md"):
        (tmp_path / name).write_text("before", encoding="utf-8")
    for arguments in (("init", "-q"), ("add", "."), (*person, "commit", "-q", "-m", "x")):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    clean = checkout.commit(tmp_path)
    (tmp_path / "docs/generated/track-record.md").write_text("after", encoding="utf-8")
    assert checkout.commit(tmp_path) == clean
    assert checkout.names_a_state(clean)
    (tmp_path / "row.py").write_text("after", encoding="utf-8")
    assert checkout.commit(tmp_path) == f"{clean}{checkout.DIRTY}"
    (tmp_path / "row.py").write_text("before", encoding="utf-8")
    (tmp_path / "new.py").touch()
    assert checkout.commit(tmp_path) == f"{clean}{checkout.DIRTY}"


def test_what_has_an_answer_is_not_performed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result is valid at the same clean commit while its script exists, unless it is undecided or --rerun is given."""
    script = tmp_path / "script.json"
    script.write_text("{}", encoding="utf-8")
    kept = [
        cell("3.9.2", evidence=str(script)),
        cell("3.8.1", Result.INCONCLUSIVE, evidence=str(script)),
        cell("3.7.0", evidence=str(tmp_path / "gone")),
    ]
    monkeypatch.setattr(matrix, "read", lambda: kept)

    def outstanding(commit: str, *, rerun: bool = False) -> list[bool]:
        run = TrackRecordRun(tmp_path, commit, rerun=rerun)
        found = [run.outstanding(ReleasePlan(release=each.release, reproductions=(reproduction(),))) for each in kept]
        assert all(each in ([], [reproduction()]) for each in found)
        return [bool(each) for each in found]

    assert outstanding("abc") == [False, True, True]
    assert outstanding("def") == [True, True, True]
    assert outstanding("abc", rerun=True) == [True, True, True]
    for unclear in ("abc-dirty", "unknown"):
        monkeypatch.setattr(matrix, "read", lambda unclear=unclear: [dataclasses.replace(kept[0], commit=unclear)])
        assert outstanding(unclear)[0]
    monkeypatch.setattr(matrix, "read", lambda: kept)
    run = TrackRecordRun(tmp_path, "abc", rerun=False)
    # With all results valid nothing is started: no environment, no cluster.
    monkeypatch.setattr(track_record, "find_java", lambda **_: pytest.fail("something was started"))
    track_record.perform(ReleasePlan(release="3.9.2", reproductions=(reproduction(),)), run)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--releases", "2.3.1"], "is older than 2.4.0"),
        (["--releases", "banana"], "does not name a release of Kafka"),
        (["--bugs", "KB-99"], "KB-99 is no row"),
        (["--jobs", "0"], "--jobs needs a number"),
        (["--kafka", "4.3.1"], "unrecognized arguments"),
    ],
)
def test_bad_options_are_one_sentence(options: list[str], sentence: str) -> None:
    """A wrong option is refused with exit code 4, and nothing is started or written."""
    done = subprocess.run(
        [sys.executable, "-m", "runner.regressions.track_record", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == int(ExitCode.USAGE)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_known_bugs_are_no_scenarios() -> None:
    """Pytest does not perform them: a run of everything leaves them out, and selecting them names the command."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "pytest", place, "--list"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for place in ("suites/regressions", "suites")
    ]
    for process, code in zip(started, (ExitCode.USAGE, ExitCode.CONFORMANT), strict=True):
        printed, complained = process.communicate(timeout=120)
        assert process.returncode == int(code), printed
        assert ("tox -e track-record" in complained) == (code is ExitCode.USAGE)
        assert "refused-duplicate" not in printed
        assert "wedged" not in printed
