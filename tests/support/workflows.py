"""The examples of `docs/ci`, carried out as their systems would: every script in its own shell, variables, conditions.

Two things differ from a real runner. `python3 -m venv` and `pip install tox` use the packages that are installed here
(`tests.support.planted.tox`), because half a gigabyte of packages proves nothing about an example. And runs have planted
evidence instead of clusters. The product itself renders, compares, decides and sets the exit code.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.paths import ROOT

GITHUB, GITLAB = "github", "gitlab"
#: The results of a planted run. Any other text leaves no results, like a run that could not start.
CLEAN, VIOLATING = "clean", "violating"
#: A run that leaves results and never ends by itself. It makes the file `ENDLESS` at home when it waits for its end, and
#: then the time limits of an example are over.
ENDLESS = "endless"
#: Four short scripts, each of which starts a Python or two.
WITHIN_S = 120.0
#: The exit code of `timeout` after the limit.
TIMED_OUT = 124
_PYTHON = f"""#!/bin/sh -e
[ "$1 $2" = "-m venv" ]
mkdir -p "$3/bin"
cat > "$3/bin/pip" <<'PIP'
#!/bin/sh -e
[ "$*" = "install tox" ]
printf '#!/bin/sh\\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.support.planted.tox "$@"\\n' > "${{0%pip}}tox"
chmod +x "${{0%pip}}tox"
PIP
chmod +x "$3/bin/pip"
"""
_TIMEOUT = f"""#!/bin/sh -e
[ "$1" = "--kill-after=3m" ]
shift 2
"$@" &
while kill -0 $! 2>/dev/null; do
  if [ -e "$HOME/{ENDLESS}" ]; then
    kill $!
    wait $! || exit {TIMED_OUT}
  fi
  sleep 0.1
done
wait $!
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A script; `always` is True for one that runs even after another has failed."""

    script: str
    always: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The one job of an example: its steps, its variables as they are written, and the paths that it keeps.

    `kept` are paths below the checkout that the system stores, `junit` the file that it reads test results from.
    """

    system: str
    steps: tuple[Step, ...]
    variables: dict[str, str]
    kept: tuple[str, ...]
    junit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The end of a job: the exit code of the first script that failed, 0 when none did, and the summary page."""

    code: int
    summary: str
    checkout: Path


def body_of(path: Path) -> dict[str, Any]:
    """The workflow as its system reads it: a key `on` is a word there, and a truth value in YAML 1.1."""
    body: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else str(key): value for key, value in body.items()}


def job_of(path: Path) -> Job:
    """Read an example; it has one job."""
    body = body_of(path)
    if "jobs" in body:
        (job,) = body["jobs"].values()
        return _github(job)
    (job,) = body.values()
    artifacts = job["artifacts"]
    return Job(
        system=GITLAB,
        steps=(
            Step(script="\n".join(job["script"]), always=False),
            *(Step(script="\n".join(job[name]), always=True) for name in ("after_script",) if name in job),
        ),
        variables=job["variables"],
        kept=tuple(artifacts["paths"]),
        junit=artifacts["reports"]["junit"],
    )


def _github(job: Mapping[str, Any]) -> Job:
    steps = job["steps"]
    assert {each["if"] for each in steps if "if" in each} <= {"always()"}, "only this condition is known here"
    uploads = [each["with"] for each in steps if each.get("uses", "").startswith("actions/upload-artifact@")]
    return Job(
        system=GITHUB,
        steps=tuple(Step(script=each["run"], always="if" in each) for each in steps if "run" in each),
        variables=job["env"],
        kept=tuple(each["path"] for each in uploads),
        junit="",
    )


def carry_out(job: Job, place: Path, *, given: Mapping[str, str], planted: Mapping[str, str]) -> Done:
    """Run the job in a checkout below `place`.

    `given` are the inputs of the workflow or the variables of the pipeline, `planted` the result of each release, CLEAN,
    VIOLATING or ENDLESS; the release of a run that names none is the empty name.
    """
    checkout, tools, summary = place / "checkout", place / "tools", place / "summary.md"
    checkout.mkdir(exist_ok=True)
    tools.mkdir()
    (tools / "python3").write_text(_PYTHON, encoding="utf-8")
    (tools / "python3").chmod(0o755)
    if ENDLESS in planted.values():
        (tools / "timeout").write_text(_TIMEOUT, encoding="utf-8")
        (tools / "timeout").chmod(0o755)
    summary.touch()
    environment = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(place),
        "GITHUB_STEP_SUMMARY": str(summary),
        "PLANTED": json.dumps(dict(planted)),
        **({} if job.system == GITHUB else given),
        **dict(_expanded(job, checkout, given)),
    }
    code = 0
    for step in job.steps:
        if code and not step.always:
            continue
        # GitHub starts `bash -e`, GitLab sets the same option in the one shell that all lines of a script go through.
        done = subprocess.run(
            ["bash", "-e"], input=step.script, text=True, cwd=checkout, env=environment, timeout=WITHIN_S, check=False
        )
        code = code or done.returncode
    return Done(code=code, summary=summary.read_text(encoding="utf-8"), checkout=checkout)


def _expanded(job: Job, checkout: Path, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The job's variables with their values; an expression that is not known here is a KeyError."""
    known = {"github.workspace": str(checkout), **{f"inputs.{name}": value for name, value in given.items()}}
    for name, text in job.variables.items():
        if job.system == GITHUB:
            yield name, re.sub(r"\$\{\{ (\S+) \}\}", lambda found: known[found[1]], text)
        else:
            yield name, text.replace("$CI_PROJECT_DIR", str(checkout))
