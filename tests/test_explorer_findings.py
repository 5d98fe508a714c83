"""What becomes of a wrong answer: it is found, shrunk, named, kept, and written down."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from suites.explorer import page
from suites.explorer.known import NAMED, name_of
from suites.explorer.moves import Epoch, Send
from suites.explorer.performing import perform
from suites.explorer.state import Kind, Outcome, Request, State
from suites.explorer.store import Found, opened, read_plan
from suites.explorer.telling import lines
from suites.explorer.walk import Deviation, ModelAnswerer, Nature
from suites.protocol.generations import Generation
from tests.explorer_stand import (
    FRESH,
    Stand,
    aborted_data_shown,
    due_batch_refused,
    explored,
    joining,
    moves,
    rules,
    stale_end_accepted,
    stale_init_aborts,
)

TV1, TV2 = Generation.TV1, Generation.TV2
#: A late batch of the first transaction in the middle of the second, and the batch that is due then.
LATE = moves(
    (Kind.INIT, FRESH),
    (Kind.PRODUCE, {}),
    (Kind.END, {}),
    (Kind.PRODUCE, {}),
    (Kind.PRODUCE, {"send": Send.REPLAY, "of": 1}),
    (Kind.PRODUCE, {}),
)


def test_a_defect_is_named_only_on_the_releases_that_have_it() -> None:
    """What a late batch does to the open transaction has a name on 4.0, and is a new finding on later releases."""
    old, new = rules(TV2, "4.0.2"), rules(TV2, "4.3.1")
    walk = perform(LATE, old, ModelAnswerer(old, due_batch_refused))
    assert (walk.finding, walk.known) == (None, ["EX-06"])
    assert lines(walk)[4].startswith(
        "A: Produce(epoch 0, partition 0, sequence 0, 1 records), the bytes of 2, on another"
    )
    walk = perform(LATE, new, ModelAnswerer(new, due_batch_refused))
    assert walk.finding is not None
    assert (walk.finding.nature, walk.known) == (Nature.HARMED, [])
    assert name_of(walk.finding.signature, "4.3.1") == ""


def test_a_transaction_that_cannot_end_is_told_by_what_it_took() -> None:
    """On 3.9 a batch of a future epoch joins, and the transaction that hangs then is named after it."""
    old = rules(TV1, "3.9.2")
    signature = "TV1: after EndTxn(current epoch, commit) the coordinator says PrepareCommit"
    assert name_of(f"{signature} after EX-04", "3.9.2") == "EX-04"
    assert name_of(f"{signature} after EX-04", "4.3.1") == name_of(signature, "3.9.2") == ""
    future = moves((Kind.INIT, FRESH), (Kind.ADD, {}), (Kind.PRODUCE, {}), (Kind.PRODUCE, {"epoch": Epoch.FUTURE}))
    joins = perform(future, old, ModelAnswerer(old, joining))
    assert (joins.known, joins.state.tainted) == (["EX-04"], "EX-04")


def test_a_planted_answer_is_found_and_shrunk_to_its_script(tmp_path: Path) -> None:
    """A stale EndTxn that is accepted is found, and shrunk to the four requests that it takes."""
    store = explored(Stand(lambda _: stale_end_accepted), tmp_path)
    found = next(each for each in store.found.values() if "EndTxn(stale epoch" in each.signature)
    assert (found.shown, found.tries, found.name) == (10, 10, "")
    kinds = [each["kind"] for each in found.moves]
    # Two initialisations make an epoch stale, and a partition opens the transaction.
    assert sorted(kinds) == sorted([Kind.INIT, Kind.INIT, found.moves[2]["kind"], Kind.END])
    assert found.moves[2]["kind"] in (Kind.ADD, Kind.ADD_OFFSETS)
    assert found.script[4].startswith("an answer outside the allowed set: observed NONE (0)")
    assert found.signature in (tmp_path / "findings.md").read_text(encoding="utf-8")
    again = read_plan(next((tmp_path / "findings").glob(f"*{found.slug}.json")))
    walk = perform(again.moves, rules(TV1), ModelAnswerer(rules(TV1), stale_end_accepted))
    assert found.signature in walk.signatures


def test_visible_data_that_the_model_forbids_is_found(tmp_path: Path) -> None:
    """Aborted data before readers under read_committed is found by the look at the end, whatever was answered."""
    store = explored(Stand(lambda _: aborted_data_shown), tmp_path)
    assert {each.nature for each in store.found.values()} - {"an answer that is not lawful"} == {Nature.VISIBLE}
    found = next(each for each in store.found.values() if each.nature == Nature.VISIBLE)
    assert found.signature.endswith("look -> differs in committed")
    kinds = [each["kind"] for each in found.moves]
    assert kinds[0] == Kind.INIT
    assert kinds[-1] == Kind.LOOK
    assert Kind.PRODUCE in kinds
    assert len(kinds) <= 5


def test_harm_done_without_a_word_is_found_at_the_owner(tmp_path: Path) -> None:
    """When somebody else's request is refused and yet takes the owner's epoch, the owner's next request shows it."""
    store = explored(Stand(lambda _: stale_init_aborts), tmp_path)
    assert Nature.HARMED in {each.nature for each in store.found.values()}


def test_a_signature_has_no_numbers_but_codes_and_one_defect_has_few(tmp_path: Path) -> None:
    """Walks of different seeds that show one defect share its signature."""
    store = explored(Stand(lambda _: stale_end_accepted), tmp_path)
    new = {signature: count for signature, count in store.seen.items() if signature not in NAMED}
    assert len(new) <= 2  # a commit and an abort
    assert max(new.values()) > 1
    assert not any(re.search(r"[0-9]", re.sub(r"\([0-9]+\)|TV[12]", "", signature)) for signature in new)


def test_what_does_not_appear_again_is_fleeting(tmp_path: Path) -> None:
    """A wrong answer that no replay shows is counted and is no finding."""
    store = explored(Stand(_only_the_first()), tmp_path)
    assert list(store.fleeting) == [each for each in store.seen if each not in NAMED]
    assert len(store.fleeting) == 1
    assert not [each for each in store.found if each not in NAMED]


def _only_the_first() -> Callable[[int], Deviation | None]:
    told: list[int] = []

    def deviation(state: State, request: Request, outcome: Outcome) -> Outcome | None:
        wrong = None if told else aborted_data_shown(state, request, outcome)
        if wrong is not None and wrong.answer != outcome.answer:
            told.append(1)
            return wrong
        return None

    return lambda _: deviation


def test_an_exploration_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """After an interruption the seeds that are done stay done, and each seed is walked once."""

    def interrupt(walk: int) -> None:
        if walk == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explored(Stand(lambda _: None, before=interrupt, generations=(TV2,)), tmp_path, range(1, 31))
    assert opened(tmp_path, "4.3.1").done == set(range(1, 7))
    stand = Stand(lambda _: None, generations=(TV2,))
    assert explored(stand, tmp_path, range(1, 31)).walks == 30
    assert opened(tmp_path, "4.3.1").done == set(range(1, 31))
    assert stand.walks == 24


def test_the_page_keeps_other_entries_and_replaces_its_own(tmp_path: Path) -> None:
    """An entry is found again by release and signature; entries of other releases stay."""
    found = Found(
        signature="a -> b",
        name="",
        nature="x",
        release="4.3.1",
        generation="TV1",
        seed=1,
        shown=9,
        tries=10,
        moves=(),
        script=("one", "two"),
    )
    path = tmp_path / "findings.md"
    for each in (found, replace(found, release="3.9.2"), replace(found, shown=3)):
        page.write(path, each, "again")
    text = path.read_text(encoding="utf-8")
    assert text.count("<!-- finding:") == 2
    assert "shown by 3 of 10" in text
    assert "2. two" in text
