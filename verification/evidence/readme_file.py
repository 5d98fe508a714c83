"""README.txt of a scenario's directory: explains the evidence to a reader without the report, months later."""

from __future__ import annotations

import textwrap

from verification.evidence.run_directory import CONTENTS, RunDirectory
from verification.vocabulary.experiment import Experiment

_WIDTH = 100


def text(experiment: Experiment) -> str:
    """The text: the claim, the experiment, how to run and judge it again, and the use of each file."""
    began = "\n".join(f"  {step}" for step in experiment.schedule) or "  no fault"
    width = max(len(name) for name, _ in CONTENTS)
    files = "\n".join(f"  {name:{width}}  {what}" for name, what in CONTENTS)
    claim = textwrap.fill(experiment.claim, _WIDTH)
    return f"""\
Evidence of {experiment.scenario}, Kafka {experiment.release} ({experiment.runtime}), seed {experiment.seed}

{claim}

What was tried:
  {experiment.workload}
{began}

Run it again:
  {experiment.replay}

Judge this evidence again, and render it, without a cluster; in a checkout of onceproof in which tox has run:
  .tox/shared/bin/python -m verification DIRECTORY
  .tox/shared/bin/python -m reports DIRECTORY

Files (docs/evidence.md has every field):
{files}
"""


def write(directory: RunDirectory, experiment: Experiment) -> None:
    """Write README.txt."""
    directory.readme.write_text(text(experiment), encoding="utf-8")
