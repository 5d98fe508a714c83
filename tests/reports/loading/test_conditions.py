"""The conditions of a proof, from the evidence of scenarios and scripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reports.deciding.proof_conditions import proof_conditions
from reports.formats import html, summary
from reports.loading.conditions import of_scenario, of_script
from reports.loading.run import load_run
from reports.model.report import FaultRow
from tests.support.plans import FAILED, SMOKE
from tests.support.protocol_run_directories import EVERY_SCRIPT, make_protocol_run
from tests.support.run_directories import make_run
from verification.scripts import script as scripts
from verification.scripts.script import OutageChange, TopicUsed
from verification.vocabulary import experiment as experiments
from verification.vocabulary.experiment import ExperimentTopic

CASE = next(each for each in EVERY_SCRIPT if len(each.exchanges) == 4)
ALONE = TopicUsed(name="placed-2", replicas=((2,),), min_in_sync=1, unclean_election=False)
OUTAGES = (
    OutageChange(after=2, what="crash of broker 2", at_ns=1),
    OutageChange(after=4, what="return of broker 2", at_ns=2),
)
CRASH = FaultRow(
    step=0,
    fault="CrashBroker",
    description="crash (SIGKILL) of the leader of orders-0, while every producer waits at before-commit, for 3 s",
    target="broker 2",
    began_s=4.0,
    confirmed_s=6.0,
    healed_s=9.5,
    proof="orders-0 has no leader",
    error="",
)


def test_a_case_says_who_was_taken_away_and_between_which_requests() -> None:
    """The leader is named as such; the end of the outage is said in terms of the script, too."""
    conditions = of_script(replace(CASE, topics=(ALONE,), outages=OUTAGES))
    assert str(conditions) == (
        "replication factor 1, min ISR 1; unclean elections off; "
        "broker 2, the leader, was killed before request 3, Produce, back after the last request"
    )
    follower = of_script(replace(CASE, topics=(replace(ALONE, replicas=((1, 2),)),), outages=OUTAGES))
    assert "broker 2 was killed" in str(follower)


def test_a_case_says_which_settings_it_changes(tmp_path: Path) -> None:
    """With Kafka's defaults such a proof may not show, so the line for the first screen counts them."""
    name = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    failing = next(each for each in EVERY_SCRIPT if scripts.judge(each).violated)
    fast = replace(failing, topics=(ALONE,), outages=(), cluster=f"3 brokers, min ISR 1, {name}=200, a.b=c")
    assert str(of_script(fast)).endswith(f"; with {name}=200, a.b=c")
    report = load_run(make_protocol_run(tmp_path / "run", [fast], strict=True))
    assert proof_conditions(report).endswith("; 1 of 1 proofs with other broker settings than Kafka's defaults.")
    assert of_script(replace(fast, cluster="1 broker, transaction.version 2")).settings == ()


def test_a_broker_that_is_back_before_the_next_request_is_back_by_then() -> None:
    """A kill and the return of the broker have the same place among the requests."""
    at_once = tuple(replace(each, after=2) for each in OUTAGES)
    assert str(of_script(replace(CASE, topics=(ALONE,), outages=at_once))).endswith(
        "before request 3, Produce, back by then"
    )


def test_older_scripts_say_that_nothing_was_recorded(tmp_path: Path) -> None:
    """Evidence from before these fields is read, and never guessed at; new evidence comes back from the disk whole."""
    assert str(of_script(CASE)) == "replication not recorded; outages not recorded"
    silent = of_script(replace(CASE, topics=(replace(ALONE, min_in_sync=None, unclean_election=None),), outages=()))
    assert str(silent) == "replication factor 1, min ISR not recorded; unclean elections not recorded"
    written = replace(CASE, topics=(ALONE,), outages=OUTAGES)
    for each in (CASE, written):
        each.write(tmp_path / "script.json")
        assert scripts.read(tmp_path / "script.json") == each


def test_a_scenario_names_topics_of_different_replication(tmp_path: Path) -> None:
    """The fewest replicas come first, and the brokers that a fault hit with their time."""
    experiment = experiments.read(make_run(tmp_path / "run", [SMOKE]) / "runs" / SMOKE.key / "scenario.json")
    alone = ExperimentTopic(name=f"{experiment.run}-orders", partitions=2, replication=1, min_in_sync=1)
    three = replace(alone, name=f"{experiment.run}-bills", replication=3, min_in_sync=2, unclean_election=True)
    conditions = of_scenario(replace(experiment, topics=(three, alone)), [CRASH, replace(CRASH, confirmed_s=None)])
    assert str(conditions) == (
        "orders: replication factor 1, min ISR 1; bills: replication factor 3, min ISR 2; unclean elections on; "
        "broker 2, the leader, was killed before the commit, from 4.0 s to 9.5 s of the scenario"
    )
    assert [each.factor for each in conditions.among(["bills"])] == [3]
    assert [each.factor for each in conditions.among(["unknown"])] == [1, 3]


def test_page_and_box_show_on_what_the_proof_was_made(tmp_path: Path) -> None:
    """Each place of a reason has its conditions; the box has one line for all proofs that decide."""
    run = make_run(tmp_path / "run", [SMOKE, FAILED])
    report = load_run(run)
    assert proof_conditions(report).startswith("Shown with replication factor 3, min ISR 2")
    page = html.render(report, run)
    assert "Shown with replication factor 3, min ISR 2; unclean elections not recorded" in page
    assert proof_conditions(report) in page[: page.index("<h2")]
    assert proof_conditions(report) in summary.render(report)
    assert proof_conditions(load_run(make_run(tmp_path / "clean", [SMOKE]))) == ""


def test_the_box_counts_proofs_of_different_replication(tmp_path: Path) -> None:
    """Proofs whose evidence is older are counted as such."""
    failing = next(each for each in EVERY_SCRIPT if scripts.judge(each).violated)
    alone = replace(failing, topics=(ALONE,), outages=OUTAGES)
    old = replace(failing, case="older")
    report = load_run(make_protocol_run(tmp_path / "run", [alone, old], strict=True))
    assert proof_conditions(report) == (
        "Shown with replication factor 1, min ISR 1 (1 of 2 proofs) and replication not recorded (1 of 2 proofs); "
        "broker 2, the leader, was killed before request 3, Produce."
    )
