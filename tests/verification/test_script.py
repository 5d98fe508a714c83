"""The judgement of protocol scripts: from statements on disk alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from verification.scripts.script import (
    Exchange,
    Relation,
    Script,
    Statement,
    UnfitScriptError,
    judge,
    plain,
    read,
    shown,
)
from verification.vocabulary.verdict import Verdict


def statement(observed: object, expected: object, relation: Relation = Relation.EQUALS, **more: bool) -> Statement:
    return Statement(after=1, what="it", relation=relation, expected=expected, observed=observed, **more)


def script(*statements: Statement, broke: str = "") -> Script:
    return Script(
        case="txn-end-repeated-tv1",
        claim="An end may be asked for again.",
        requirements=("TXN-17",),
        generation="TV1",
        release="4.3.1",
        cluster="1 broker",
        features={"transaction.version": 2},
        exchanges=(
            Exchange(
                number=1, api="EndTxn", version=4, to="broker 1", request={"A": 1}, response={"ErrorCode": 0}, sent_ns=1
            ),
        ),
        statements=statements,
        broke=broke,
    )


HELD, VIOLATED = statement(0, 0), statement(48, 0)
GROUND, NO_GROUND = statement(0, 0, required=True), statement(14, 0, required=True)


@pytest.mark.parametrize(
    ("written", "verdict"),
    [
        (script(GROUND, HELD), Verdict.PASS),
        (script(GROUND, HELD, VIOLATED), Verdict.FAIL),
        (script(NO_GROUND), Verdict.INCONCLUSIVE),
        (script(HELD, NO_GROUND), Verdict.INCONCLUSIVE),
        (script(VIOLATED, NO_GROUND), Verdict.FAIL),
        (script(HELD, broke="the broker is gone"), Verdict.ERROR),
        (script(VIOLATED, broke="the broker is gone"), Verdict.FAIL),
        (script(GROUND), Verdict.ERROR),
        (script(), Verdict.ERROR),
    ],
)
def test_statements_decide(written: Script, verdict: Verdict) -> None:
    """A violated claim wins over everything; without its precondition nothing was tested; no claim is an error."""
    judged = judge(written)
    assert judged.verdict is verdict
    assert [each.id for each in judged.requirements] == ["TXN-17"]
    assert judged.reason


@pytest.mark.parametrize(
    ("observed", "relation", "expected", "holds"),
    [
        (5, Relation.AT_LEAST, 5, True),
        (4, Relation.AT_LEAST, 5, False),
        (None, Relation.AT_LEAST, 5, False),
        (5, Relation.AT_MOST, 4, False),
        ("a", Relation.AT_MOST, 4, False),
        (48, Relation.ONE_OF, [48, 120], True),
        (0, Relation.ONE_OF, [48, 120], False),
        (0, Relation.DIFFERS, 0, False),
        (1, Relation.DIFFERS, 0, True),
    ],
)
def test_relations(observed: object, relation: Relation, expected: object, holds: bool) -> None:
    """Values that cannot be compared do not hold."""
    assert statement(observed, expected, relation).holds is holds


def test_a_script_survives_the_disk(tmp_path: Path) -> None:
    """A script is read as it was written."""
    written = script(GROUND, HELD, VIOLATED)
    written.write(tmp_path / "script.json")
    assert read(tmp_path / "script.json") == written


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"format": 1, "case": "x"}', '{"format": 1}'])
def test_a_foreign_file_is_refused(tmp_path: Path, text: str) -> None:
    """A truncated or foreign script is an error that names it, never an empty script."""
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(UnfitScriptError, match=r"script\.json"):
        read(path)


def test_values_are_shown_as_json() -> None:
    """Bytes are shortened with their length, uuids are text, every other value stays as it is."""
    shown = plain({"Records": b"\x00" * 100, "TopicId": UUID(int=1), "Topics": ({"Name": "a"},), "Flag": None})
    assert shown == {
        "Records": {"bytes": 100, "hex": "00" * 64},
        "TopicId": "00000000-0000-0000-0000-000000000001",
        "Topics": [{"Name": "a"}],
        "Flag": None,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        ([], "nothing"),
        ("", '""'),
        ("PrepareCommit", "PrepareCommit"),
        (True, "yes"),
        (7, "7"),
        (["a", "b"], '"a", "b"'),
        ([["a"], []], '("a"), (nothing)'),
        ([[0, [5, False], None]], "(0, (5, no), none)"),
        ({"open": "Ongoing", "ended": None}, 'open: "Ongoing", ended: none'),
        ([{"epoch": 1}], "(epoch: 1)"),
    ],
)
def test_a_value_is_shown_in_words(value: object, text: str) -> None:
    """No bracket at its ends, and no word of a programming language."""
    assert shown(value) == text


def test_a_failed_statement_says_what_was_expected_and_what_was_observed() -> None:
    """In this order, with the relation in words where it is not equality."""
    made = Statement(after=1, what="the offset", relation=Relation.AT_LEAST, expected=5, observed=None)
    assert str(made) == "the offset: expected at least 5, observed nothing"
    assert str(replace(made, relation=Relation.EQUALS)) == "the offset: expected 5, observed nothing"
