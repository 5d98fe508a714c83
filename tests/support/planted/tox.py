"""`python -m tests.support.planted.tox -e conformance|upgrade|upgrade-matrix|trend -- OPTIONS`: what tox would do.

A planted run stands in place of a cluster's; an upgrade does what its target does. The trend is a real one. The matrix
has no result yet, and its page is rendered.

PLANTED says as a JSON object what each release does (`tests.support.workflows`); one that it does not name leaves nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reports import __main__ as command
from reports.retention import point_latest
from runner import matrix_run, upgrade_matrix
from runner.config import OUT, ROOT
from runner.options import add_options
from tests.support.plans import CONTROL, FAILED, SMOKE, STARTED
from tests.support.run_directories import make_run
from tests.support.workflows import CLEAN, ENDLESS, VIOLATING
from verification.vocabulary.verdict import ExitCode, Verdict

#: What a run takes that names no release.
NEWEST = "4.4.0"
_PASSED = replace(FAILED, verdict=Verdict.PASS, reason="nothing was found", findings=())
SUBJECTS = {CLEAN: (SMOKE, _PASSED, CONTROL), VIOLATING: (SMOKE, FAILED, CONTROL), ENDLESS: (SMOKE,)}


def main(arguments: list[str]) -> int:
    """Leave a run and its report where the options say; the exit code is that of the decision."""
    if arguments[:3] == ["-e", "trend", "--"]:
        return int(command.main(["trend", *arguments[3:]]))
    if arguments[:3] == ["-e", "upgrade-matrix", "--"]:
        return _matrix(arguments[3:])
    assert arguments[0] == "-e", arguments
    assert arguments[1:3] in (["conformance", "--"], ["upgrade", "--"]), arguments
    parser = pytest.Parser(_ispytest=True)
    add_options(parser)
    options = parser.parse(arguments[3:])
    release = options.upgrade_to or options.kafka or ""
    does = json.loads(os.environ["PLANTED"]).get(release)
    if does is None:
        return int(ExitCode.ENVIRONMENT)
    out = Path.cwd() / OUT.relative_to(ROOT)
    directory = Path(options.run_dir) if options.run_dir else out / f"{STARTED}-7"
    plans = [replace(each, release=release or NEWEST) for each in SUBJECTS[does]]
    make_run(directory, plans, release=release or NEWEST, profile=options.profile)
    if not options.run_dir:
        point_latest(out, directory)
    compared = ["--baseline", options.baseline] if options.baseline else []
    code = int(command.main([str(directory), *compared]))
    if does == ENDLESS:
        Path(os.environ["HOME"], ENDLESS).touch()
        signal.pause()
    return code


def _matrix(arguments: list[str]) -> int:
    """Read the options of the matrix as it does, choose its paths, and write its page."""
    assert arguments[:2] == ["--rerun", "--paths"], arguments
    assert matrix_run.chosen(upgrade_matrix.matrix(), arguments[2:])
    page, lines = (
        Path.cwd() / upgrade_matrix.TABLE.relative_to(ROOT),
        Path.cwd() / upgrade_matrix.LINES.relative_to(ROOT),
    )
    for path, text in ((page, upgrade_matrix.render([])), (lines, "")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return int(ExitCode.INCONCLUSIVE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
