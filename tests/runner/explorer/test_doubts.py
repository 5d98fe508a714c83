"""Signatures that the explorer cannot show at will: races, slow walks, lucky replays, and an older version."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from runner.explorer.broker import Broker, WalkConnections
from runner.explorer.execute import cut, perform
from runner.explorer.exit_codes import CONCLUSIVE_LEAST, doubtful, of_exploration, of_walk, too_few_walks
from runner.explorer.explorer import FOLLOW_MOST, Explorer
from runner.explorer.finding import Nature, WalkFinding
from runner.explorer.generate import plan
from runner.explorer.moves import SHORT_MS, Move, Send, WalkPlan
from runner.explorer.parallel import explore
from runner.explorer.replay import AGAIN_TRIES, RATE_TRIES, followed
from runner.explorer.store import Flaky, UnfitPlanError, opened, read_plan, version, write_plan
from runner.explorer.walk import ModelBroker, Walk
from tests.support.explorer_testbed import FOUND, FRESH, SEEDS, FakeTestbed, Played, aborted_data_shown, moves, rules
from verification.specification.state import ModelAnswer, ModelRequest, RequestKind
from verification.vocabulary.verdict import ExitCode
from wire.transaction_versions import TransactionVersion

TV1 = TransactionVersion.TV1
HIDDEN = "TV1 CompleteAbort: look -> differs in committed after EndTxn(current epoch, abort) -> NONE (0)"


@cache
def showing() -> tuple[int, ...]:
    """Seeds whose walks show that aborted data is visible, where it is."""
    return tuple(
        seed
        for seed in range(2 * SEEDS)
        if HIDDEN in perform(plan(seed, rules(TV1)).moves, rules(TV1), _wrong()).signatures
    )


def _wrong() -> ModelBroker:
    return ModelBroker(rules(TV1), aborted_data_shown)


class Racy:
    """A testbed on which only some walks, counted from 1, show aborted data."""

    def __init__(self, directory: Path, shows: Callable[[int], bool]) -> None:
        self.testbed = FakeTestbed(lambda walk: aborted_data_shown if shows(walk) else None)
        self.store = opened(directory, "4.3.1")
        self.explorer = Explorer(self.testbed, self.store, page_at=None, say=lambda _: None)


def test_a_race_at_one_seed_is_followed_up_at_the_next(tmp_path: Path) -> None:
    """A signature becomes a finding that no replay of one seed shows, and every replay of another one."""
    racy = Racy(tmp_path, lambda walk: walk == 1 or walk > 1 + AGAIN_TRIES)
    racy.explorer.walk(showing()[0])
    assert racy.store.flaky == {HIDDEN: Flaky(nature=Nature.VISIBLE, seeds=(showing()[0],))}
    assert of_exploration(racy.store, walks=1) is ExitCode.INCONCLUSIVE
    racy.explorer.walk(showing()[1])
    assert racy.store.flaky == {}
    assert racy.store.found[HIDDEN].shown == RATE_TRIES
    assert of_exploration(racy.store, walks=2) is ExitCode.VIOLATION


def test_a_race_is_followed_up_at_a_bounded_number_of_seeds(tmp_path: Path) -> None:
    """Each of the first seeds is replayed, later ones are not; the state on disk keeps the replayed seeds."""
    racy = Racy(tmp_path, lambda walk: walk % (1 + AGAIN_TRIES) == 1)
    for seed in showing()[:FOLLOW_MOST]:
        racy.explorer.walk(seed)
    assert racy.testbed.walks == FOLLOW_MOST * (1 + AGAIN_TRIES)
    racy.explorer.walk(showing()[FOLLOW_MOST])
    assert racy.testbed.walks == FOLLOW_MOST * (1 + AGAIN_TRIES) + 1
    racy.store.write()
    assert opened(tmp_path, "4.3.1").flaky[HIDDEN].seeds == showing()[:FOLLOW_MOST]


@pytest.mark.parametrize(
    ("nature", "seen", "signature", "expected"),
    [
        (Nature.OUTSIDE, 1, "a -> b", ExitCode.CONFORMANT),
        (Nature.OUTSIDE, 2, "a -> b", ExitCode.INCONCLUSIVE),
        (Nature.SERVER, 1, "a -> b", ExitCode.INCONCLUSIVE),
        (Nature.VISIBLE, 1, "a -> b", ExitCode.INCONCLUSIVE),
        (Nature.OUTSIDE, 2, "EX-01", ExitCode.CONFORMANT),
    ],
)
def test_a_flaky_signature_keeps_a_release_from_passing(
    nature: Nature, seen: int, signature: str, expected: ExitCode, tmp_path: Path
) -> None:
    """A flaky signature counts when it was seen twice or is grave, unless it has a name."""
    store = opened(tmp_path, "4.3.1")
    store.flaky[signature] = Flaky(nature=nature, seeds=(1,))
    store.seen[signature] = seen
    store.walks = CONCLUSIVE_LEAST
    assert of_exploration(store, walks=1) is expected
    assert doubtful(store) == ([signature] if expected is ExitCode.INCONCLUSIVE else [])


class Stuck(ModelBroker):
    """The model, but a transaction stays in Prepare forever."""

    def settle(self) -> ModelAnswer:
        """The state after a long wait."""
        return ModelAnswer(seen={"state": "PrepareCommit", "epoch": self.state.epoch})


def test_a_wait_that_found_something_is_replayed_with_the_move_that_waited() -> None:
    """Moves after the last request that mean nothing do not cut off the wait that showed the finding."""
    nothing = {"send": Send.REPLAY, "of": 99}
    made = moves(
        (RequestKind.INIT, FRESH),
        (RequestKind.ADD, {}),
        (RequestKind.END, {}),
        (RequestKind.END, nothing),
        (RequestKind.LOOK, {}),
        (RequestKind.LOOK, {}),
    )
    walk = perform(made, rules(TV1), Stuck(rules(TV1)))
    assert walk.finding is not None
    assert walk.finding.nature is Nature.STUCK
    kept = cut(WalkPlan(1, TV1, 60_000, made), walk, walk.finding.signature)
    assert kept == made[:5]
    assert perform(kept, rules(TV1), Stuck(rules(TV1))).signatures == walk.signatures


def test_what_follows_from_a_finding_is_not_followed_up(tmp_path: Path) -> None:
    """The consequence of a kept finding has its name, and is counted without replays."""
    follows = "TV1: after EndTxn(current epoch, commit) the coordinator says PrepareCommit after EX-04"
    store = opened(tmp_path, "3.9.2")
    explorer = Explorer(FakeTestbed(lambda _: None), store, page_at=None, say=lambda _: None)
    assert explorer.due(follows, 1)
    store.found["EX-04"] = replace(FOUND, signature="EX-04", release="3.9.2")
    assert not explorer.due(follows, 1)


# -- time ----------------------------------------------------------------------------------------------------------


def test_a_slow_replay_shows_nothing(tmp_path: Path) -> None:
    """When every replay was too slow for the transaction timeout, the signature of the walk is flaky."""
    testbed = FakeTestbed(lambda _: aborted_data_shown, slow=lambda walk: walk > 1)
    store = opened(tmp_path, "4.3.1")
    Explorer(testbed, store, page_at=None, say=lambda _: None).walk(showing()[0])
    assert (list(store.flaky), list(store.found)) == ([HIDDEN], [])


@pytest.mark.parametrize(("slow", "expected"), [(True, ExitCode.INCONCLUSIVE), (False, ExitCode.VIOLATION)])
def test_one_slow_walk_proves_nothing(slow: bool, expected: ExitCode) -> None:
    """A wrong answer in a slow walk is inconclusive; the same answer in time is a violation."""
    planned, broker = plan(showing()[0], rules(TV1)), Played(_wrong(), slow=slow)
    assert of_walk(planned, perform(planned.moves, rules(TV1), broker), broker, "4.3.1") is expected


def test_a_look_that_comes_late_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late look may show that the coordinator aborted by itself a transaction that is open in the model."""
    unused: Any = None
    connections = WalkConnections(instances=[], other=unused)
    for late_s, slow in ((0.0, False), (SHORT_MS / 1000, True)):
        broker = Broker(unused, connections, rules(TV1), name="a", topic="a", timeout_ms=SHORT_MS)
        monkeypatch.setattr(broker._observer, "everything", dict)
        broker._began_s -= late_s
        assert broker.ask(Move(number=0, kind=RequestKind.LOOK), ModelRequest(kind=RequestKind.LOOK)) == ModelAnswer(
            seen={}
        )
        assert broker.slow is slow


# -- luck ----------------------------------------------------------------------------------------------------------

MANY = moves(*((RequestKind.INIT, FRESH) for _ in range(6)))


def scripted(shows: Callable[[int, int], bool]) -> tuple[Callable[[Sequence[Move]], Walk], Walk]:
    """A replay that shows "it", depending on the number of moves and on earlier replays of so many; and such a walk."""
    played: dict[int, int] = {}
    clean, wrong = Walk(rules(TV1)), Walk(rules(TV1))
    wrong.finding = WalkFinding(nature=Nature.OUTSIDE, signature="it", observed="", expected="")

    def play(chosen: Sequence[Move]) -> Walk:
        before = played.get(len(chosen), 0)
        played[len(chosen)] = before + 1
        return wrong if shows(len(chosen), before) else clean

    return play, wrong


@pytest.mark.parametrize("lucky", [{0}, {0, 5}])
def test_moves_that_showed_it_by_luck_are_not_published(lucky: set[int]) -> None:
    """Where the fewest moves show it never or seldom, all moves stay, with their own rate and one of their walks."""
    play, wrong = scripted(lambda count, before: count == len(MANY) or before in lucky)
    found = followed(MANY, "it", play)
    assert found is not None
    assert (found.moves, found.shown, found.tries) == (MANY, AGAIN_TRIES + RATE_TRIES, AGAIN_TRIES + RATE_TRIES)
    assert found.walk is wrong


def test_a_race_is_shrunk_by_several_replays() -> None:
    """One replay of fewer moves that shows a race proves nothing: all moves stay."""
    play, _ = scripted(lambda count, before: before % (2 if count == len(MANY) else 8) == 0)
    found = followed(MANY, "it", play)
    assert found is not None
    assert (found.moves, found.shown, found.tries) == (MANY, RATE_TRIES // 2, RATE_TRIES)


def test_fewer_moves_that_show_a_race_as_often_are_kept() -> None:
    """A race that needs three moves is shrunk to three."""
    play, _ = scripted(lambda count, before: count >= 3 and before % 2 == 0)
    found = followed(MANY, "it", play)
    assert found is not None
    assert (len(found.moves), found.shown, found.tries) == (3, RATE_TRIES // 2, RATE_TRIES)


# -- versions, and files -------------------------------------------------------------------------------------------


def test_a_state_of_another_version_is_put_aside(tmp_path: Path) -> None:
    """Its seeds count as not done and its findings are not kept; a message says so, and the file stays."""
    old = opened(tmp_path, "4.3.1", model="0ld")
    old.done, old.walks, old.seconds = {1, 2, 3}, 3, 1.0
    old.write()
    assert opened(tmp_path, "4.3.1", model="0ld").done == {1, 2, 3}
    said: list[str] = []
    new = opened(tmp_path, "4.3.1", say=said.append)
    assert (new.done, new.walks, new.model) == (set(), 0, version())
    assert said == [
        "The exploration begins anew: another version of the explorer wrote its state, which is kept as state-0ld.json."
    ]
    assert json.loads((tmp_path / "state-0ld.json").read_text(encoding="utf-8"))["walks"] == 3


@pytest.mark.parametrize(
    ("walks", "slow", "expected"),
    [
        (CONCLUSIVE_LEAST, 0, ExitCode.CONFORMANT),
        (2 * CONCLUSIVE_LEAST, CONCLUSIVE_LEAST, ExitCode.CONFORMANT),
        (CONCLUSIVE_LEAST - 1, 0, ExitCode.INCONCLUSIVE),
        (2 * CONCLUSIVE_LEAST, CONCLUSIVE_LEAST + 1, ExitCode.INCONCLUSIVE),
        (3 * CONCLUSIVE_LEAST, 2 * CONCLUSIVE_LEAST, ExitCode.INCONCLUSIVE),
        (1000, 999, ExitCode.INCONCLUSIVE),
    ],
)
def test_few_walks_pass_no_release(walks: int, slow: int, expected: ExitCode, tmp_path: Path) -> None:
    """Most walks must have been in time, and there must be as many of them as the rarest known finding took."""
    store = opened(tmp_path, "4.3.1")
    store.walks, store.slow = walks, slow
    assert of_exploration(store, walks=1) is expected
    assert bool(too_few_walks(store)) is (expected is ExitCode.INCONCLUSIVE)


def test_a_call_without_a_walk_passes_no_release_and_forgets_nothing(tmp_path: Path) -> None:
    """A violation of an earlier call stays one; without any, a call without a conclusive walk ends with 2."""
    store = opened(tmp_path, "4.3.1")
    testbed = FakeTestbed(lambda _: aborted_data_shown)
    explorer = Explorer(testbed, store, page_at=None, say=lambda _: None)
    explore([explorer], showing()[:1], seconds=60)
    assert of_exploration(store, walks=explorer.walks) is ExitCode.VIOLATION
    again = Explorer(testbed, opened(tmp_path, "4.3.1"), page_at=None, say=lambda _: None)
    explore([again], showing()[:1], seconds=60)
    assert again.walks == 0
    assert of_exploration(again.store, walks=again.walks) is ExitCode.VIOLATION
    again.store.found.clear()
    again.store.walks = CONCLUSIVE_LEAST
    assert of_exploration(again.store, walks=1) is ExitCode.CONFORMANT
    assert of_exploration(again.store, walks=0) is ExitCode.INCONCLUSIVE
    slow = Explorer(
        FakeTestbed(lambda _: aborted_data_shown, slow=lambda _: True), store, page_at=None, say=lambda _: None
    )
    explore([slow], showing()[1:2], seconds=60)
    assert (slow.walks, slow.store.slow) == (0, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"place": 7}, r"place 7 is not in 0\.\.1"),
        ({"who": 12}, r"who 12 is not in -1\.\.3"),
        ({"back": 0}, r"back 0 is not in 1\.\.5"),
        ({"count": "2"}, r"count '2' is not in 1\.\.100"),
        ({"commit": "yes"}, r"commit 'yes' is neither true nor false"),
        ({"kind": "look", "send": "hold"}, r"a look has no bytes to hold"),
        ({"number": 1}, r"the numbers of its moves do not increase"),
        ({"moves": [1]}, r"is not a file of moves"),
        ({"timeout_ms": 0}, r"timeout_ms 0 is not in"),
        ({"colour": 1}, r"is not a file of moves"),
    ],
)
def test_moves_that_mean_nothing_are_one_sentence(change: dict[str, object], sentence: str, tmp_path: Path) -> None:
    """A file of moves that no walk could make is bad usage, and is refused before any request."""
    path = tmp_path / "moves.json"
    write_plan(path, plan(7, rules(TV1)), "4.3.1")
    body = json.loads(path.read_text(encoding="utf-8"))
    of_plan = change.keys() <= {"moves", "timeout_ms"}
    (body if of_plan else body["moves"][0]).update(change)
    path.write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(UnfitPlanError, match=sentence) as refused:
        read_plan(path)
    assert refused.value.exit_code == ExitCode.USAGE


def test_requests_that_a_release_does_not_offer_are_bad_usage(tmp_path: Path) -> None:
    """Moves of TV2 are refused on brokers without it: they would be sent as other requests, and judged wrongly."""
    explorer = Explorer(FakeTestbed(lambda _: None), opened(tmp_path, "3.9.2"), page_at=None, say=lambda _: None)
    with pytest.raises(UnfitPlanError, match=r"TV2 requests, which Kafka 3\.9\.2 does not offer"):
        explorer.perform(plan(7, rules(TransactionVersion.TV2)))
