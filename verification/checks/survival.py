"""Checks that transactional producers can go on, where the subject claims it.

A producer may be stopped by its own machine: its process was suspended, or starved for a core. Brokers cannot tell that
from a dead producer. Once a transaction is open for its whole timeout, the coordinator aborts it and fences the producer,
by design (KIP-98). So a fatal answer counts only where the operation was shorter than the transaction timeout. The
coordinator measures from the first partition of the transaction, later than the operation was invoked: it can never have
timed out a shorter one. Limit: a cluster that itself makes an operation last so long is not found here. Such a scenario
needs a longer timeout than any of its faults (docs/writing/scenario.md).
"""

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
    before. Operations other than `init` that lasted as long as the transaction timeout do not count. Only where survival
    is a claim (`Experiment.survival_claimed`). One violation per operation.
    """
    claimed = F.broadcast(facts.frames.runs.where("survival_claimed").select("run", "transaction_timeout_ns"))
    told = facts.frames.operations.where("transactional_id is not null and completed_ns is not null")
    in_time = f"action = '{Action.INIT}' or completed_ns - invoked_ns < transaction_timeout_ns"
    fatal = told.where("fatal").join(claimed, "run").where(in_time)
    inits = told.where(f"action = '{Action.INIT}' and outcome = '{Outcome.OK}'").selectExpr(
        "run as its_run", "transactional_id as its_id", "process as successor", "completed_ns as since_ns"
    )
    superseded = F.expr(
        "run = its_run and transactional_id = its_id and successor > process and since_ns < completed_ns"
    )
    detail = "concat('told so ', (completed_ns - invoked_ns) div 1000000, ' ms after its operation had begun')"
    return violations(fatal.join(inits, superseded, "left_anti"), Anomaly.STRANDED_PRODUCER, detail=detail)
