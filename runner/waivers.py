"""Reads the violations that the user accepts: `--accept ID`, or a waiver file with a reason and an end date for each id.

A waiver file is TOML:

    [[accept]]
    id = "KB-16"
    reason = "no partition of ours is ever without a leader while a transaction ends"
    until = 2027-03-31

An accepted violation stays in the report and does not change the exit code. A waiver without a reason or an end date
is refused: a waiver that need not be renewed would never be looked at again.
"""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

from fixtures.errors import UsageError
from reports.model.run_record import Acceptance
from verification.known_bugs.catalogue import load as load_known_bugs
from verification.requirements.catalogue import load as load_catalogue


def acceptances(ids: tuple[str, ...], waivers: Path | None) -> tuple[Acceptance, ...]:
    """All acceptances of a run; raises UsageError for an unknown id or an unfit file."""
    accepted = tuple(Acceptance(id=each, reason="given on the command line") for each in ids)
    if waivers is not None:
        accepted += _read(waivers)
    known = set(load_known_bugs()) | set(load_catalogue())
    for each in accepted:
        if each.id not in known:
            raise UsageError(
                f"{each.id} is neither a known bug nor a requirement.",
                hint="Ids look like KB-16 or TXN-25; docs/semantics.md lists them.",
            )
    return accepted


def _read(path: Path) -> tuple[Acceptance, ...]:
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"The waiver file {path} cannot be read: {error}.") from error
    waivers = body.get("accept", [])
    return tuple(_waiver(path, each) for each in (waivers if isinstance(waivers, list) else [waivers]))


def _waiver(path: Path, body: object) -> Acceptance:
    given = body if isinstance(body, dict) else {}
    until = given.get("until")
    if not (isinstance(given.get("id"), str) and given.get("reason") and isinstance(until, datetime.date)):
        raise UsageError(
            f"A waiver in {path} lacks id, reason or end date: {body}.",
            hint='Write id = "KB-16", reason = "…", until = 2027-03-31.',
        )
    return Acceptance(id=str(given["id"]), reason=str(given["reason"]), until=until.isoformat())
