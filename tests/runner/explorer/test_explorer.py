"""The explorer: its model, the walks that a seed gives, its command line, and a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.locks.releases import default_release, definition_jars, fetch_release
from runner.explorer.describe import lines
from runner.explorer.execute import perform
from runner.explorer.explorer import Explorer
from runner.explorer.generate import plan
from runner.explorer.known_findings import name_of
from runner.explorer.moves import Epoch, Send, SequenceChoice
from runner.explorer.parallel import explore
from runner.explorer.shared_state import SharedState
from runner.explorer.store import opened, read_plan, write_plan
from runner.explorer.testbed import BrokerTestbed, spec
from runner.explorer.walk import ModelBroker, Walk
from suites.exploration.__main__ import main
from tests.support.explorer_testbed import FRESH, SEEDS, moves, rules
from tests.support.real_cluster import RELEASE, Launch, launcher
from verification.specification.state import ModelAnswer, RequestKind, TransactionPhase
from wire.messages import Definitions
from wire.transaction_versions import TransactionVersion

TV1, TV2 = TransactionVersion.TV1, TransactionVersion.TV2
#: Sequences of the catalogue with the expected answers: (code, epoch) or (code, None).
EXPECTED: dict[
    str, tuple[TransactionVersion, tuple[tuple[RequestKind, dict[str, object]], ...], list[tuple[int, int | None]]]
] = {
    "TXN-02, FENCE-01: a successor fences": (
        TV1,
        (
            (RequestKind.INIT, FRESH),
            (RequestKind.INIT, FRESH | {"who": 1}),
            (RequestKind.ADD, {}),
            (RequestKind.ADD_OFFSETS, {}),
            (RequestKind.PRODUCE, {}),
            (RequestKind.COMMIT_OFFSET, {}),
            (RequestKind.END, {}),
            (RequestKind.INIT, {}),
        ),
        [(0, 0), (0, 1), (90, None), (90, None), (47, None), (47, None), (90, None), (90, None)],
    ),
    "TXN-03: an initialisation aborts and ends two epochs above": (
        TV1,
        (
            (RequestKind.INIT, FRESH),
            (RequestKind.ADD, {}),
            (RequestKind.INIT, FRESH | {"who": 1}),
            (RequestKind.PRODUCE, {}),
        ),
        [(0, 0), (0, None), (51, None), (0, 2), (47, None)],
    ),
    "TXN-05: a producer that continues gets the same epoch again": (
        TV1,
        (
            (RequestKind.INIT, FRESH),
            (RequestKind.INIT, {}),
            (RequestKind.INIT, {"send": Send.REPLAY, "of": 1}),
            (RequestKind.INIT, {}),
            (RequestKind.INIT, {"send": Send.REPLAY, "of": 1}),
        ),
        [(0, 0), (0, 1), (0, 1), (0, 2), (90, None)],
    ),
    "TXN-17, TXN-22: TV1 ends, repeats, and needs its partitions": (
        TV1,
        (
            (RequestKind.INIT, FRESH),
            (RequestKind.END, {}),
            (RequestKind.PRODUCE, {}),
            (RequestKind.ADD, {}),
            (RequestKind.PRODUCE, {}),
            (RequestKind.END, {}),
            (RequestKind.END, {}),
            (RequestKind.END, {"commit": False}),
        ),
        [(0, 0), (48, None), (120, None), (0, None), (0, None), (0, None), (0, None), (48, None)],
    ),
    "TV2-02, TV2-05, TV2-06: TV2 ends with the next epoch": (
        TV2,
        (
            (RequestKind.INIT, FRESH),
            (RequestKind.PRODUCE, {}),
            (RequestKind.END, {}),
            (RequestKind.PRODUCE, {"epoch": Epoch.STALE, "sequence": SequenceChoice.NEXT}),
            (RequestKind.END, {"send": Send.REPLAY, "of": 2}),
            (RequestKind.END, {}),
            (RequestKind.END, {"commit": False}),
            (RequestKind.PRODUCE, {}),
            (RequestKind.END, {"send": Send.REPLAY, "of": 2}),
        ),
        [(0, 0), (0, None), (0, 1), (47, None), (0, 1), (48, None), (0, 2), (0, None), (90, None)],
    ),
    "IDEMP-04, IDEMP-06, IDEMP-07: the leader knows its batches": (
        TV2,
        (
            (RequestKind.INIT, FRESH),
            (RequestKind.PRODUCE, {"sequence": SequenceChoice.GAP}),
            (RequestKind.PRODUCE, {"count": 2}),
            (RequestKind.PRODUCE, {}),
            (RequestKind.PRODUCE, {"sequence": SequenceChoice.AGAIN, "back": 2}),
            (RequestKind.PRODUCE, {"sequence": SequenceChoice.LONGER}),
            (RequestKind.PRODUCE, {}),
        ),
        [(0, 0), (45, None), (0, None), (0, None), (0, None), (45, None), (0, None)],
    ),
    "TV2-14: a timed-out owner may abort, not commit": (
        TV2,
        (
            (RequestKind.INIT, FRESH),
            (RequestKind.PRODUCE, {}),
            (RequestKind.EXPIRE, {}),
            (RequestKind.END, {}),
            (RequestKind.END, {"commit": False}),
        ),
        [(0, 0), (0, None), (0, None), (48, None), (0, 1)],
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_model_answers_as_the_catalogue_says(name: str) -> None:
    """The expected outcomes of the catalogue's sequences are exactly its codes and epochs."""
    generation, sequence, expected = EXPECTED[name]
    walk = perform(moves(*sequence), rules(generation), ModelBroker(rules(generation)))
    told = [(int(each.answer.code), each.answer.epoch) for each in walk.steps if each.answer]
    assert told == expected
    assert walk.finding is None


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("4.0.1", [(0, 0), (0, None), (0, None), (0, 1), (0, 2), (90, None), (0, 3)]),
        ("4.0.0", [(0, 0), (0, None), (0, None), (90, None), (90, None), (0, 2), (0, 3)]),
    ],
)
def test_an_abort_of_the_coordinator_raises_the_epoch_by_release(
    release: str, expected: list[tuple[int, int | None]]
) -> None:
    """At level 2 of 4.0.0 an abort raises the epoch twice: its owner is fenced, and the last epoch is the one between."""
    sequence = moves(
        (RequestKind.INIT, FRESH),
        (RequestKind.PRODUCE, {}),
        (RequestKind.EXPIRE, {}),
        (RequestKind.END, {"commit": False}),
        (RequestKind.INIT, {"who": 0}),
        (RequestKind.INIT, {"epoch": Epoch.FUTURE}),
        (RequestKind.INIT, FRESH | {"who": 1}),
    )
    old = rules(TV2, release)
    walk = perform(sequence, old, ModelBroker(old))
    assert [(int(each.answer.code), each.answer.epoch) for each in walk.steps if each.answer] == expected
    assert walk.finding is None


class Patient(ModelBroker):
    """The model, but a wait while a transaction is open fails: at a real broker it would time out."""

    def settle(self) -> ModelAnswer:
        """Complete a transaction that has ended."""
        assert self.state.phase is not TransactionPhase.ONGOING
        return super().settle()


@pytest.mark.parametrize("generation", TransactionVersion)
def test_a_broker_that_keeps_to_the_model_has_no_findings(generation: TransactionVersion) -> None:
    """Walks against the model itself end without a finding, and reach every kind of answer."""
    codes = set()
    for seed in range(SEEDS):
        walk = perform(plan(seed, rules(generation)).moves, rules(generation), Patient(rules(generation)))
        assert walk.finding is None, (seed, walk.finding)
        codes |= {int(each.answer.code) for each in walk.steps if each.answer}
    assert codes >= {0, 45, 47, 48, 49, 51, 90}


def test_a_seed_always_gives_the_same_moves() -> None:
    """The moves of a seed do not change from one call to the next, and differ from those of another seed."""
    several = [plan(seed, rules(TV2)) for seed in range(20)]
    assert several == [plan(seed, rules(TV2)) for seed in range(20)]
    assert len({each.moves for each in several}) == len(several)


def test_a_list_of_moves_survives_its_file(tmp_path: Path) -> None:
    """`--replay` reads the same moves that were written."""
    planned = plan(7, rules(TV1))
    write_plan(tmp_path / "moves.json", planned, "4.3.1")
    assert read_plan(tmp_path / "moves.json") == planned


@pytest.mark.parametrize(
    "arguments", [["--seeds", "9..1"], ["--minutes", "0"], ["--seed", "1", "--replay", "x"], ["--seeds", "few"]]
)
def test_bad_options_end_with_4(arguments: list[str]) -> None:
    """A backward range, no time, and two names of one walk are bad usage."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 4


def test_a_release_that_the_model_does_not_cover_ends_with_4(tmp_path: Path) -> None:
    """Before brokers verified transactions other answers were correct; no broker of them is started."""
    assert main(["--kafka", "3.5.2", "--run-dir", str(tmp_path)]) == 4
    assert not list(tmp_path.iterdir())


# -- a real broker -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker of the default release."""
    launch: Launch = launcher(tmp_path_factory)
    with launch(spec(RELEASE)) as running:
        yield running


@pytest.mark.cluster
def test_a_real_broker_is_explored(cluster: LocalCluster, tmp_path: Path) -> None:
    """Forty walks of two walkers against a real broker have only known findings, and end with a look."""
    definitions = Definitions.load(*definition_jars(fetch_release(default_release())))
    store, shared = opened(tmp_path, RELEASE), SharedState()
    with BrokerTestbed(cluster, definitions, RELEASE) as one, BrokerTestbed(cluster, definitions, RELEASE) as other:
        explorers = [Explorer(each, store, shared=shared, page_at=None, say=print) for each in (one, other)]
        explore(explorers, range(1, 41), seconds=120)
        walk, _ = explorers[0].perform(explorers[0].plan(3))
    assert [each for each in store.found if not name_of(each, RELEASE)] == []
    assert store.walks >= 10
    assert isinstance(walk, Walk)
    assert "everything is looked at" in lines(walk)[-1]
