"""The attack as a short timeline, from planted and from real evidence."""

from __future__ import annotations

from pathlib import Path

from reports.formats import html
from reports.loading.examples import Context
from reports.loading.moments import moments
from reports.loading.run import load_run
from reports.model.report import FaultRow
from tests.support.plans import FAILED, SMOKE
from tests.support.run_directories import make_run

GOLDEN = Path(__file__).parents[1] / "golden"
NOTHING = Context(operations={}, faults=())


def fault(description: str, **changed: object) -> FaultRow:
    """A fault on broker 2 from 3 s to 9 s."""
    row = {"step": 0, "fault": "CrashBroker", "target": "broker 2", "began_s": 3.0, "confirmed_s": 6.0, "healed_s": 9.0}
    return FaultRow(description=description, proof="it has no leader", error="", **{**row, **changed})  # type: ignore[arg-type]


def test_a_long_description_is_cut_to_its_first_clause() -> None:
    """The times say the rest."""
    long = fault("once all is in sync: crash (SIGKILL) of the leader of orders-0, while every producer waits, for 3 s")
    assert moments([long], (), NOTHING, None) == (
        (3.0, "step 0: crash (SIGKILL) of the leader of orders-0 (broker 2)"),
        (6.0, "step 0 took effect: it has no leader"),
        (9.0, "step 0 was healed"),
    )


def test_what_did_not_happen_is_left_out() -> None:
    """A fault that never took effect or was never healed has no such moment; without a fault there is no timeline."""
    shown = moments([fault("", confirmed_s=None, healed_s=None)], (), NOTHING, None)
    assert shown == ((3.0, "step 0: CrashBroker (broker 2)"),)
    assert moments((), (), NOTHING, None) == ()


def test_steps_are_in_the_order_of_time() -> None:
    """Two faults can overlap."""
    shown = moments([fault("pause"), fault("cut", step=1, began_s=5.0)], (), NOTHING, None)
    assert [at for at, _ in shown] == [3.0, 5.0, 6.0, 6.0, 9.0, 9.0]


def test_real_evidence_is_told_in_five_moments() -> None:
    """Crash, no leader, ten acknowledged commits, leader back, first commit."""
    (run,) = GOLDEN.glob("scenarios-*/run")
    (shown,) = (each for each in load_run(run).scenarios if each.findings)
    assert [what.partition(":")[0].partition(",")[0] for _, what in shown.moments] == [
        "step 0",
        "step 0 took effect",
        "10 operations of the findings acknowledged to the client",
        "step 0 was healed",
        "first commit after step 0 was healed",
    ]
    assert all(len(what.split()) <= 25 for _, what in shown.moments)


def test_a_failed_scenario_shows_it_and_a_pass_does_not(tmp_path: Path) -> None:
    """A pass has its faults in a table."""
    run = make_run(tmp_path, [SMOKE, FAILED])
    page = html.render(load_run(run), run)
    assert page.count("<caption>What happened.") == 1
    assert page.index(f'<article id="{FAILED.key}"') < page.index("<caption>What happened.")
