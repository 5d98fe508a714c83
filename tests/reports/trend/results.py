"""Results of many runs without evidence: each a small `results.json` of this format, with the given verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Verdicts = Mapping[str, str]


def started(day: int) -> str:
    """The start of the run of one night."""
    return f"2026{1 + day // 28 % 12:02}{1 + day % 28:02}T02{day // 336 % 60:02}00Z"


def finding(anomaly: str = "torn-transaction", known_bug: str | None = "KB-16", **more: Any) -> dict[str, Any]:
    """A finding, without the fields that a trend does not read."""
    return {"anomaly": anomaly, "known_bug": known_bug, "accepted": False, **more}


def scenario(name: str, verdict: str = "PASS", *findings: dict[str, Any], seed: int = 7, **more: Any) -> dict[str, Any]:
    """A scenario with client `confluent`."""
    return {
        "id": f"{name}-confluent-{seed}",
        "verdict": verdict,
        "seed": seed,
        "client": "confluent",
        "findings": list(findings),
        **more,
    }


def control(name: str, *, convicted: bool) -> dict[str, Any]:
    """A control."""
    return scenario(name, "FAIL" if convicted else "PASS", finding("lost-write", None), convicted=convicted)


def case(name: str, verdict: str = "PASS", requirement: str = "IDEMP-10", known: str = "") -> dict[str, Any]:
    """A protocol case that decides one requirement."""
    return {
        "id": name,
        "verdict": verdict,
        "accepted": False,
        "requirements": [{"id": requirement, "verdict": verdict}],
        "known": [{"id": known, "named": True}] if known else [],
    }


def body(day: int = 0, **changes: Any) -> dict[str, Any]:
    """The object of a results.json; `release`, `runtime`, `profile` and `requirements` (a mapping) may be given."""
    requirements: Verdicts = changes.pop("requirements", {"TXN-25": "PASS", "ISO-01": "UNTESTED"})
    return {
        "format": 1,
        "decision": "GO",
        "partial": "",
        "subject": {
            "release": changes.pop("release", "4.3.1"),
            "runtime": changes.pop("runtime", "local"),
            "clients": [{"name": "confluent", "library": "confluent-kafka 2.16.1"}],
        },
        "run": {
            "started": changes.pop("started", started(day)),
            "duration_s": changes.pop("duration_s", 700.0 + day),
            "seed": 7,
            "profile": changes.pop("profile", "nightly"),
        },
        "scenarios": [],
        "controls": [],
        "requirements": [{"id": id_, "verdict": verdict} for id_, verdict in requirements.items()],
        **changes,
    }


def plant(directory: Path, given: Mapping[str, Any]) -> Path:
    """Write the results of one run into its directory; returns the directory."""
    directory.mkdir(parents=True)
    (directory / "results.json").write_text(json.dumps(given), encoding="utf-8")
    return directory
