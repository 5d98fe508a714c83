"""Several walkers at the same time: one walk per seed, one follow-up per finding, and no loss at an end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.explorer.explorer import Explorer
from runner.explorer.parallel import explore
from runner.explorer.replay import AGAIN_TRIES
from runner.explorer.shared_state import SharedState
from runner.explorer.store import Store, opened
from runner.explorer.walk import Deviation
from suites.exploration.__main__ import main
from tests.runner.explorer.test_doubts import HIDDEN, showing
from tests.support.explorer_testbed import FakeTestbed, aborted_data_shown
from verification.vocabulary.verdict import ExitCode
from wire.transaction_versions import TransactionVersion

WALKERS = 4
PATIENT_S = 30.0


def together(
    store: Store,
    testbeds: list[FakeTestbed],
    shared: SharedState | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Explorer]:
    """A walker per testbed."""
    shared = shared or SharedState()
    return [Explorer(each, store, shared=shared, page_at=None, say=say) for each in testbeds]


def correct(before: Callable[[int], None] = lambda _: None) -> FakeTestbed:
    """A testbed without a deviation."""
    return FakeTestbed(lambda _: None, before=before, generations=(TransactionVersion.TV2,))


def test_each_seed_is_walked_once_by_walkers_that_walk_at_the_same_time(tmp_path: Path) -> None:
    """No walker ends its first walk before all walkers are in theirs."""
    barrier = threading.Barrier(WALKERS)

    def meet(walk: int) -> None:
        if walk == 1:
            barrier.wait(PATIENT_S)

    store, testbeds = opened(tmp_path, "4.3.1"), [correct(meet) for _ in range(WALKERS)]
    explorers = together(store, testbeds)
    explore(explorers, range(40), seconds=60)
    assert (store.done, store.walks) == (set(range(40)), 40)
    assert sum(each.walks for each in testbeds) == sum(each.walks for each in explorers) == 40
    assert opened(tmp_path, "4.3.1").walks == 40


def test_a_finding_that_all_show_at_once_is_followed_up_by_one(tmp_path: Path) -> None:
    """One walker replays the signature; the others only count it."""
    barrier, said = threading.Barrier(WALKERS), list[str]()

    def meet(walk: int) -> None:
        if walk == 1:
            barrier.wait(PATIENT_S)

    testbeds = [FakeTestbed(lambda _: aborted_data_shown, before=meet) for _ in range(WALKERS)]
    store = opened(tmp_path, "4.3.1")
    explore(together(store, testbeds, say=said.append), showing()[:WALKERS], seconds=60)
    assert list(store.found) == [HIDDEN]
    assert store.seen[HIDDEN] == WALKERS
    assert len([line for line in said if HIDDEN in line]) == 1
    assert len(list((tmp_path / "findings").iterdir())) == 1


def test_what_others_saw_meanwhile_is_followed_up_where_the_first_was_flaky(tmp_path: Path) -> None:
    """One walker's replays show nothing; the walk of another one, postponed meanwhile, is replayed next and shows it."""
    following, passed = threading.Event(), threading.Event()

    def first(walk: int) -> None:
        if walk == 2:
            following.set()
            assert passed.wait(PATIENT_S)

    def second(walk: int) -> None:
        assert following.wait(PATIENT_S)
        if walk == 2:
            passed.set()

    def racy(walk: int) -> Deviation | None:
        return aborted_data_shown if walk == 1 or walk > 1 + AGAIN_TRIES else None

    testbeds = [
        FakeTestbed(racy, before=first),
        FakeTestbed(lambda walk: aborted_data_shown if walk == 1 else None, before=second),
    ]
    store = opened(tmp_path, "4.3.1")
    explore(together(store, testbeds), showing()[:3], seconds=60)
    assert list(store.found) == [HIDDEN]
    assert store.flaky == {}
    assert len(list((tmp_path / "findings").iterdir())) == 2


def test_a_walk_during_which_another_walker_fails_keeps_nothing(tmp_path: Path) -> None:
    """The next call walks its seed again."""
    shared, walking = SharedState(), threading.Event()

    def stay(_: int) -> None:
        walking.set()
        assert shared.ended.wait(PATIENT_S)

    def fail(_: int) -> None:
        assert walking.wait(PATIENT_S)
        raise ConnectionError("the broker is gone")

    store = opened(tmp_path, "4.3.1")
    with pytest.raises(ConnectionError, match="the broker is gone"):
        explore(together(store, [correct(stay), correct(fail)], shared), range(40), seconds=60)
    assert (store.done, store.walks) == (set(), 0)
    again = opened(tmp_path, "4.3.1")
    explore(together(again, [correct()]), range(40), seconds=60)
    assert again.done == set(range(40))


@pytest.mark.parametrize("walkers", ["0", "17"])
def test_a_number_of_walkers_that_cannot_be_is_bad_usage(walkers: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with one sentence, before any walk."""
    with pytest.raises(SystemExit) as ended:
        main(["--walkers", walkers])
    assert ended.value.code == ExitCode.USAGE
    assert f"--walkers {walkers} is not in 1..16" in capsys.readouterr().err
