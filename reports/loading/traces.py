"""Look in passed scenarios and cases for the signatures of known bugs: in statements of scripts, in logs of brokers.

A case passes in spite of a known bug where it claims something else. A scenario passes where the bug hit nothing: a marker
that was dropped had already been written. The pass stays, and the report names the bug.
"""

from __future__ import annotations

from pathlib import Path

from reports.loading.broker_log import matching
from reports.loading.exchange import statement_row
from reports.model.protocol_case import Trace
from reports.model.vocabulary import bugs
from reports.model.wording import counted
from verification.known_bugs.script_matching import shown_by_pass
from verification.known_bugs.signatures.recognise import concerns
from verification.scripts.script import Script
from verification.vocabulary.experiment import Experiment


def of_script(script: Script) -> tuple[Trace, ...]:
    """The known bugs that a passed case shows."""
    shown = shown_by_pass(script, bugs().values())
    return tuple(Trace(bug=bug.id, text=f"{said.what}: {statement_row(said).observed}") for bug, said in shown)


def of_scenario(brokers: Path, experiment: Experiment) -> tuple[Trace, ...]:
    """The known bugs that the brokers' logs of a passed scenario name, on partitions and ids of the run."""
    found = []
    for bug in bugs().values():
        lines = matching(brokers, bug.log, experiment.run) if bug.log and concerns(bug, experiment) else []
        if lines:
            text = f"brokers logged {counted(len(lines), 'line')} such as: {lines[0]}"
            found.append(Trace(bug=bug.id, text=text))
    return tuple(found)
