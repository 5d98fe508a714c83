"""A violated protocol case is a known bug if its symptoms explain every failed statement, on a release that has it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.protocol_run_directories import GAP, NONE, PASSED, UNNAMED, VIOLATED, said
from verification.known_bugs.catalogue import KnownBug, Symptom, affects, load
from verification.known_bugs.script_matching import fits, known_as
from verification.scripts.script import Script, Statement, judge

BUGS = load()
#: Letters that distinguish a text from others.
SAID_LEAST = 8
LISTED = [(bug.id, case) for bug in BUGS.values() for case in bug.cases]
PROTOCOL = ROOT / "suites" / "protocol"
TOOLKIT = ROOT / "runner" / "protocol" / "toolkit"


def known(script: Script) -> list[tuple[str, bool]]:
    """The entries that are found, by id, and whether they name the case."""
    return [(each.bug.id, each.named) for each in known_as(script, judge(script), BUGS.values())]


def played(case: str, release: str, *statements: Statement) -> Script:
    """A script of a case with these statements; no entry has its requirement, so that only a name can be found."""
    return replace(VIOLATED, case=case, release=release, requirements=("PERF-01",), statements=statements)


def shown(bug: KnownBug, case: str) -> Script:
    """The script of a case with every symptom of the entry, by its first alternative."""
    wrong = [
        said(3, symptom.what.replace("*", "x"), "something else", symptom.observed[0].replace("*", "x"))
        for symptom in bug.cases[case]
    ]
    return played(case, bug.bad[-1].last, *wrong)


def _keys() -> set[str]:
    """The keys of all cases, read from the files: `<family>-<name>`, and with each generation."""
    keys = set()
    for path in PROTOCOL.glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                key = f"{path.stem.removeprefix('test_')}-{node.name.removeprefix('test_')}".replace("_", "-")
                keys |= {key, f"{key}-tv1", f"{key}-tv2"}
    return keys


def _wordings() -> list[re.Pattern[str]]:
    """The statements of a case, read from the files: every text, with a letter for each value that is filled in."""
    found = []
    for path in (*PROTOCOL.glob("*.py"), *TOOLKIT.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [re.escape(str(each.value)) if isinstance(each, ast.Constant) else ".+" for each in node.values]
                # A text that consists of filled-in values alone would fit everything.
                if sum(len(part) for part in parts if part != ".+") >= SAID_LEAST:
                    found.append(re.compile("".join(parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.compile(re.escape(node.value)))
    return found


def test_an_entry_that_names_the_case_is_what_it_is() -> None:
    """KB-05 names the case, and was seen on 4.3.1; on a release that has the fix nothing is known."""
    assert known(VIOLATED) == [("KB-05", True)]
    assert known(replace(VIOLATED, release="4.5.0")) == []


@pytest.mark.parametrize(("identity", "case"), LISTED)
def test_a_violation_has_a_name_only_as_far_as_it_is_listed(identity: str, case: str) -> None:
    """Everything listed is the bug; with one more statement wrong, or without the first symptom, it has no name."""
    script = shown(BUGS[identity], case)
    assert (identity, True) in known(script)
    another = replace(script, statements=(*script.statements, said(4, "the log", ["a"], ["a", "lost"])))
    assert (identity, True) not in known(another)
    assert (identity, True) not in known(replace(script, statements=(*script.statements[1:], another.statements[-1])))
    assert (identity, True) not in known(replace(script, statements=script.statements[1:]))


FORGETS = "idempotence-memory-a-killed-broker-knows-recent-batches"
FORGOTTEN = (said(9, "batch 4 again", NONE, GAP), said(9, "the offset of batch 4", 4, -1))
DECIDED = "expiry-a-commit-waits-for-the-leader-that-is-away"
SURVIVES = "late-duplicates-a-client-survives-a-late-duplicate-tv1"
IDLE = "fencing-an-idle-zombie-is-powerless-tv1"
EPOCH = "INVALID_PRODUCER_EPOCH (47)"
LATE = (said(2, "Produce", EPOCH, NONE), said(5, "the end of the log", 0, 1))
OFFSETS = said(4, "TxnOffsetCommit", EPOCH, NONE)
FORGOTTEN_ZOMBIE = "fencing-a-forgotten-zombie-is-refused-by-the-coordinator-tv1"
BOTH_APPENDED = (
    said(8, "a batch of the older epoch at 0", EPOCH, NONE),
    said(9, "a batch of the older epoch at 1", EPOCH, NONE),
    said(9, "the end of the log", 2, 4),
)


@pytest.mark.parametrize(
    ("script", "names"),
    [
        (played(FORGETS, "4.3.1", *FORGOTTEN), ["KB-22"]),
        # A record that is lost or doubled at the crash is more than a refused repetition.
        (played(FORGETS, "4.3.1", *FORGOTTEN, said(9, "the log", ["a"], [])), []),
        # Neither is it the bug when the last batch, which a snapshot has room for, is not recognised.
        (played(FORGETS, "4.3.1", *FORGOTTEN, said(9, "batch 5 again", NONE, GAP)), []),
        (played(FORGETS, "4.3.1", FORGOTTEN[0], said(9, "the offset of batch 4", 4, 6)), []),
        (played(DECIDED, "4.3.1", said(1, "the state", "PrepareCommit", "CompleteCommit")), ["KB-16"]),
        # A decided transaction that did time out.
        (played(DECIDED, "4.3.1", said(1, "the state", "PrepareCommit", "CompleteAbort")), []),
        (played(SURVIVES, "4.3.1", said(1, "the next transaction", "committed", "KafkaError{code=_TIMED_OUT,}")), []),
        # Before 3.6 two bugs show in one case, and from 3.6 on one of them.
        (played(IDLE, "3.5.2", *LATE, OFFSETS), ["KB-01", "KB-02"]),
        (played(IDLE, "3.5.2", *LATE), ["KB-01"]),
        (played(IDLE, "3.6.2", OFFSETS), ["KB-02"]),
        (played(IDLE, "3.6.2", *LATE, OFFSETS), []),
        (played(FORGOTTEN_ZOMBIE, "3.5.2", *BOTH_APPENDED), ["KB-01"]),
        # The bug hides the zombie's record. A visible one, or a missing record of the successor, would be another bug.
        (played(FORGOTTEN_ZOMBIE, "3.5.2", *BOTH_APPENDED, said(9, "the last stable offset", 2, 4)), []),
        # Leaders of 3.6 and later ask the coordinator.
        (played(FORGOTTEN_ZOMBIE, "3.6.2", *BOTH_APPENDED), []),
    ],
)
def test_another_defect_in_the_same_case_has_no_name(script: Script, names: list[str]) -> None:
    """The failed statement and its observed value decide; a failed case on a release of the range is not enough."""
    assert known(script) == [(name, True) for name in names]


def test_a_script_that_did_not_come_to_its_end_has_no_name() -> None:
    """A script that broke off, or whose precondition failed for no known reason, might have found more."""
    script = played(FORGETS, "4.3.1", *FORGOTTEN)
    assert known(script) == [("KB-22", True)]
    assert known(replace(script, broke="broker 1 did not come back")) == []
    lost = said(9, "the last stable offset", 3, 9, required=True)
    assert known(replace(script, statements=(*FORGOTTEN, lost))) == []


@pytest.mark.parametrize(
    ("what", "observed", "statement", "fitting"),
    [
        ("the log", '["a", "b"]', said(1, "the log", [], ["a", "b"]), True),
        ("the log", '["a", "b"]', said(1, "the log", [], ["a"]), False),
        ("the codes", '{"*-0": 0, "*-1": 120}', said(1, "the codes", {}, {"t-1": 120, "t-0": 0}), True),
        ("the codes", '{"*-0": 0, "*-1": 120}', said(1, "the codes", {}, {"t-1": 120, "t-0": 48}), False),
        ("the codes", '{"*-1": 120}', said(1, "the codes", {}, {"t-0": 120, "t-1": 120}), False),
        ("the codes", '{**"*-1": 120}', said(1, "the codes", {}, {"t-0": 120, "t-1": 120}), True),
        ("the end of *", "2", said(1, "the end of t-0", 1, 2), True),
        ("the end of", "2", said(1, "the end of t-0", 1, 2), False),
        ("the end of *", "2", said(1, "the end of t-0", 1, 21), False),
    ],
)
def test_symptoms_are_compared_word_by_word(what: str, observed: str, statement: Any, fitting: bool) -> None:
    """`*` does not go past a quotation mark, `**` does, and every other character stands for itself."""
    assert fits(Symptom(what=what, observed=(observed,)), statement) is fitting


def test_an_entry_that_only_fits_names_nothing() -> None:
    """An entry on the same requirement and release is mentioned, and said not to be proven."""
    assert known(UNNAMED) == [("KB-03", False), ("KB-04", False)]
    assert known(replace(VIOLATED, case="idempotence-something-else")) == [("KB-05", False)]


def test_what_holds_is_no_bug() -> None:
    """A pass is never named after a bug, and neither is a violation on something that is no release."""
    assert known(replace(PASSED, requirements=("IDEMP-10",))) == []
    assert known(replace(VIOLATED, release="trunk")) == []


@pytest.mark.parametrize("identity", [each.id for each in BUGS.values() if each.cases])
def test_entries_name_cases_that_exist(identity: str) -> None:
    """A case that is renamed must be renamed in the list too, or it would silently lose its bug."""
    assert {*BUGS[identity].cases, *BUGS[identity].passes} <= _keys()


def test_entries_name_statements_that_are_made() -> None:
    """A statement that is worded anew must be worded anew in the list too, for the same reason."""
    wordings = _wordings()
    unknown = [
        (bug.id, symptom.what)
        for bug in BUGS.values()
        for symptoms in (*bug.cases.values(), *bug.passes.values())
        for symptom in symptoms
        if not any(each.fullmatch(symptom.what.replace("*", wild)) for each in wordings for wild in ("x", ""))
    ]
    assert unknown == []


def test_no_observation_of_a_case_is_of_two_bugs() -> None:
    """Entries that name one case and share a release have different symptoms there, so that each can be recognised.

    Of one statement they may let different things be observed.
    """
    for case in {case for _, case in LISTED}:
        for one, other in combinations([bug for bug in BUGS.values() if case in bug.cases], 2):
            if any(affects(one, end) for bad in other.bad for end in (bad.first, bad.last)):
                assert not _shown(one, case) & _shown(other, case), case


def _shown(bug: KnownBug, case: str) -> set[tuple[str, str]]:
    """The observed values of a statement that a bug explains."""
    return {(symptom.what, each) for symptom in bug.cases[case] for each in symptom.observed}
