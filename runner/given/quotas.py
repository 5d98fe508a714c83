"""The quotas of a user's cluster that hold for this principal (KIP-13, KIP-546).

A cluster that throttles clients makes operations slow, and a run is then INCONCLUSIVE for a reason that no fault explains.
So the preflight shows the quotas before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wire.client import Client
from wire.errors import WireError
from wire.router import check

#: How a filter matches the name of an entity: this one, or the default of its kind.
_EXACT, _DEFAULT = 0, 1


def quotas(client: Client, user: str) -> Iterator[str]:
    """A line for each quota of the user and of the defaults of users and clients, or one why they are not known."""
    filters = [("user", _EXACT, user), ("user", _DEFAULT, None), ("client-id", _DEFAULT, None)]
    try:
        found = [each for one in filters for each in _described(client, *one)]
    except WireError as error:
        yield f"quotas are not known: {error}"
        return
    for entry in found:
        entity = ", ".join(
            f"{each['EntityType']} {each['EntityName'] or '(default)'}" for each in entry["Entity"] or []
        )
        values = ", ".join(f"{each['Key']} {each['Value']:.10g}" for each in entry["Values"])
        yield f"quota of {entity}: {values}"
    if not found:
        yield "no quota holds for this principal"


def _described(client: Client, kind: str, match: int, name: str | None) -> list[dict[str, Any]]:
    component = {"EntityType": kind, "MatchType": match, "Match": name}
    answer = client.call("DescribeClientQuotas", {"Components": [component], "Strict": False})
    check(answer["ErrorCode"], "DescribeClientQuotas")
    entries: list[dict[str, Any]] = answer["Entries"] or []
    return entries
