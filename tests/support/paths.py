"""Paths in the checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Files of users; names, hosts and secrets are made up.
FIELD_FILES = ROOT / "tests" / "field_files"
#: For commands that tests run: the import of this plugin takes 1.7 of the 6 s in which a run starts.
WITHOUT_HYPOTHESIS = "-p no:hypothesispytest"
