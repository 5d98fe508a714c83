"""Several walkers at a time: each seed is walked once, each finding followed up by one, and an end loses nothing."""

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
from tests.support.explorer_testbed import Stand, aborted_data_shown
from verification.vocabulary.verdict import ExitCode
from wire.transaction_versions import TransactionVersion

WALKERS = 4
PATIENT_S = 30.0


def together(
    store: Store, stands: list[Stand], share: SharedState | None = None, say: Callable[[str], None] = lambda _: None
) -> list[Explorer]:
    """A walker per stand."""
    share = share or SharedState()
    return [Explorer(each, store, share=share, page_at=None, say=say) for each in stands]


def lawful(before: Callable[[int], None] = lambda _: None) -> Stand:
    """A ground that shows nothing."""
    return Stand(lambda _: None, before=before, generations=(TransactionVersion.TV2,))


def test_each_seed_is_walked_once_by_walkers_that_walk_at_the_same_time(tmp_path: Path) -> None:
    """No walker gets past its first walk before all are in theirs."""
    barrier = threading.Barrier(WALKERS)

    def meet(walk: int) -> None:
        if walk == 1:
            barrier.wait(PATIENT_S)

    store, stands = opened(tmp_path, "4.3.1"), [lawful(meet) for _ in range(WALKERS)]
    explorers = together(store, stands)
    explore(explorers, range(40), seconds=60)
    assert (store.done, store.walks) == (set(range(40)), 40)
    assert sum(each.walks for each in stands) == sum(each.walks for each in explorers) == 40
    assert opened(tmp_path, "4.3.1").walks == 40


def test_a_finding_that_all_show_at_once_is_followed_up_by_one(tmp_path: Path) -> None:
    """What one walker replays the others only count."""
    barrier, said = threading.Barrier(WALKERS), list[str]()

    def meet(walk: int) -> None:
        if walk == 1:
            barrier.wait(PATIENT_S)

    stands = [Stand(lambda _: aborted_data_shown, before=meet) for _ in range(WALKERS)]
    store = opened(tmp_path, "4.3.1")
    explore(together(store, stands, say=said.append), showing()[:WALKERS], seconds=60)
    assert list(store.found) == [HIDDEN]
    assert store.seen[HIDDEN] == WALKERS
    assert len([line for line in said if HIDDEN in line]) == 1
    assert len(list((tmp_path / "findings").iterdir())) == 1


def test_what_others_saw_meanwhile_is_followed_up_where_the_first_was_fleeting(tmp_path: Path) -> None:
    """One walker's replays show nothing; what another one saw at its seed during them is replayed next, and shows."""
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

    stands = [Stand(racy, before=first), Stand(lambda walk: aborted_data_shown if walk == 1 else None, before=second)]
    store = opened(tmp_path, "4.3.1")
    explore(together(store, stands), showing()[:3], seconds=60)
    assert list(store.found) == [HIDDEN]
    assert store.fleeting == {}
    assert len(list((tmp_path / "findings").iterdir())) == 2


def test_a_walk_during_which_another_walker_fails_keeps_nothing(tmp_path: Path) -> None:
    """Its seed is walked again by the next call."""
    share, walking = SharedState(), threading.Event()

    def stay(_: int) -> None:
        walking.set()
        assert share.ended.wait(PATIENT_S)

    def fail(_: int) -> None:
        assert walking.wait(PATIENT_S)
        raise ConnectionError("the broker is gone")

    store = opened(tmp_path, "4.3.1")
    with pytest.raises(ConnectionError, match="the broker is gone"):
        explore(together(store, [lawful(stay), lawful(fail)], share), range(40), seconds=60)
    assert (store.done, store.walks) == (set(), 0)
    again = opened(tmp_path, "4.3.1")
    explore(together(again, [lawful()]), range(40), seconds=60)
    assert again.done == set(range(40))


@pytest.mark.parametrize("walkers", ["0", "17"])
def test_a_number_of_walkers_that_cannot_be_is_bad_usage(walkers: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and nothing is begun."""
    with pytest.raises(SystemExit) as ended:
        main(["--walkers", walkers])
    assert ended.value.code == ExitCode.USAGE
    assert f"--walkers {walkers} is none of 1..16" in capsys.readouterr().err
