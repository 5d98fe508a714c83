"""The commit of this checkout, stored with figures and verdicts so that they can be repeated."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNKNOWN, DIRTY = "unknown", "-dirty"


def commit(root: Path = ROOT) -> str:
    """The commit of the checkout, marked `-dirty` when files outside of docs differ; `unknown` outside of a checkout."""
    found = _git(root, "rev-parse", "--short", "HEAD").strip()
    # Programs write their pages into docs, and may read the commit after that.
    changed = _git(root, "status", "--porcelain", "--", ".", ":(exclude)docs")
    return f"{found}{DIRTY if changed else ''}" if found else UNKNOWN


def tool(root: Path = ROOT) -> str:
    """This program with its version and commit, for reports: repeating a run takes both."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"Onceproof {project['version']}, commit {commit(root)}"


def names_a_state(commit: str) -> bool:
    """Whether two checkouts of that commit hold the same files."""
    return commit != UNKNOWN and not commit.endswith(DIRTY)


def _git(root: Path, *arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False).stdout
    except OSError:
        # A run needs no git; without it the commit is unknown.
        return ""
