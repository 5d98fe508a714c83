"""Checks that transactional producers can go on, where the subject claims it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.violation import violations
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Action, Outcome


def stranded_producer(facts: EvidenceFacts) -> DataFrame:
    """Operations of a transactional producer that ended with a fatal error although no instance had superseded it.

    Superseded means that a later instance (a higher process) of the transactional id had completed its initialisation
    before. Only where survival is a claim (`Experiment.survival_claimed`). One violation per operation.
    """
    claimed = F.broadcast(facts.frames.runs.where("survival_claimed").select("run"))
    told = facts.frames.operations.where("transactional_id is not null and completed_ns is not null")
    fatal = told.where("fatal").join(claimed, "run", "left_semi")
    inits = told.where(f"action = '{Action.INIT}' and outcome = '{Outcome.OK}'").selectExpr(
        "run as its_run", "transactional_id as its_id", "process as successor", "completed_ns as since_ns"
    )
    superseded = F.expr(
        "run = its_run and transactional_id = its_id and successor > process and since_ns < completed_ns"
    )
    detail = "concat('told so ', (completed_ns - invoked_ns) div 1000000, ' ms after its operation had begun')"
    return violations(fatal.join(inits, superseded, "left_anti"), Anomaly.STRANDED_PRODUCER, detail=detail)
