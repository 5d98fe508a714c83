"""Colours of charts as presentation attributes, for pages that are shown without a style sheet.

A style sheet overrides them, also for dark pages. They are mid-tones that differ on white and on black. Position, height
or dashes, and a table, have the same meaning without colours.
"""

from __future__ import annotations

_FILLED = {
    "ok": "#3f8f63",
    "fail": "#c9772b",
    "info": "#9163b6",
    "gap": "#c9463f",
    "alive": "#8a94a0",
    "phase": "#b9c1ca",
    "phase odd": "#98a2ad",
    "leadership": "#8fa8c4",
    "leadership odd": "#5f7f9f",
    "leaderless": "#c9463f",
    "alert": "#c9772b",
}
_STROKED = {
    "lag": ("#3f78c4", 1.6, ""),
    "metric": ("#6c7681", 1.2, ""),
    "high": ("#6c7681", 1.4, "5 3"),
    "stable": ("#3f78c4", 1.8, ""),
    "act ok": ("#3f8f63", 5, ""),
    "act fail": ("#c9772b", 11, ""),
    "act info": ("#9163b6", 11, "2 1.5"),
    "state open": ("#3f78c4", 3, ""),
    "state commit": ("#3f8f63", 11, ""),
    "state abort": ("#c9772b", 6, "2 1.5"),
    "grid": ("#8a94a0", 0.5, "2 3"),
    "axis": ("#8a94a0", 1, ""),
    "held": ("#c9463f", 1.5, "4 3"),
    "violation": ("#c01f1f", 2, ""),
    "subject": ("#3f78c4", 1.8, ""),
    "subject tail": ("#3f78c4", 1.8, "5 3"),
    "against": ("#c9772b", 1.8, ""),
    "against tail": ("#c9772b", 1.8, "5 3"),
    "plain": ("#3f8f63", 1.8, ""),
}


def paint(kind: str) -> dict[str, str]:
    """The attributes for one kind of shape, in the order in which they are written."""
    if kind == "band":
        return {"fill": "#c9463f", "fill-opacity": "0.14"}
    if kind in _FILLED:
        return {"fill": _FILLED[kind]}
    colour, width, dashes = _STROKED[kind]
    attributes = {"fill": "none", "stroke": colour, "stroke-width": f"{width:g}"}
    return {**attributes, "stroke-dasharray": dashes} if dashes else attributes
