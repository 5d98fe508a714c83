"""Acknowledged records of an idempotent producer are in the log exactly once, in the order of sending."""

from __future__ import annotations

from chaos.cluster import Site
from chaos.faults.brokers import CrashBroker
from chaos.faults.sites import LoseResponses
from chaos.schedule import Step
from chaos.targets import LeaderOf
from fixtures.workloads import IdempotentAppend
from runner.scenarios.scenario import THREE_BROKERS, RunScenario, requirement


@requirement("IDEMP-28", "IDEMP-18", "IDEMP-20", "REC-04", "EXP-12")
def test_leader_crash_while_sending(run: RunScenario) -> None:
    """A leader's crash between append and acknowledgement neither loses nor duplicates nor reorders a record."""
    run(
        cluster=THREE_BROKERS,
        workload=IdempotentAppend(partitions=4),
        schedule=(Step(fault=CrashBroker(LeaderOf("billing-events", 0)), hold_s=3),),
    )


@requirement("IDEMP-28", "IDEMP-17", "IDEMP-04")
def test_responses_lost(run: RunScenario) -> None:
    """A record whose acknowledgement was lost on the way is retried and still stands in the log once."""
    run(
        cluster=THREE_BROKERS,
        workload=IdempotentAppend(partitions=4, producers=12),
        schedule=(Step(fault=LoseResponses(Site("app"), "billing-events", 0), hold_s=5),),
    )
