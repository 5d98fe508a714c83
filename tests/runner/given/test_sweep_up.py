"""The names that `tox -e sweep-up` touches."""

from __future__ import annotations

from runner.given.sweep_up import of_runs


def test_names_of_runs_alone_are_touched() -> None:
    """A topic that only begins with the prefix may belong to others."""
    ours = ["onceproof-0123456789ab-billing-events", "onceproof-fedcba987654-copiers"]
    others = ["onceproof-notes", "onceproof-0123456789ab", "onceproof-0123456789AB-x", "x-onceproof-0123456789ab-y"]
    assert of_runs(iter([*others, *ours]), "onceproof-") == ours
    assert of_runs(iter(["on.eproof-0123456789ab-x", "onceproof-0123456789ab-x"]), "on.eproof-") == [
        "on.eproof-0123456789ab-x"
    ]
