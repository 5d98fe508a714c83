"""The files of the checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.paths import ROOT

#: Evidence of real runs, and pages that keep the words of the runs that made them.
KEPT_AS_RECORDED = frozenset({"golden", "generated", "sample_runs", "real_segments"})


def tracked(*patterns: str) -> list[Path]:
    """The files of the checkout that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [path for path in map(ROOT.joinpath, listed) if path.is_file()]


def written(*patterns: str) -> list[Path]:
    """The tracked files that people write, without those that a run wrote."""
    return [path for path in tracked(*patterns) if not KEPT_AS_RECORDED & set(path.parts)]
