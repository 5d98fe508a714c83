"""`trend.json`: the trend for programs. Its schema is `docs/trend.schema.json`; `format` changes with it.

It has every run, requirement, violation and flaky case; the page shows a part of them when there are many.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from reports.model.trend import TREND_FORMAT, RequirementTrend, Trend
from reports.model.wording import UNTESTED


def trend_object(trend: Trend) -> dict[str, Any]:
    """The object that `trend.json` holds."""
    return {
        "format": TREND_FORMAT,
        "runs": [{**asdict(each), "duration_s": round(each.duration_s, 3)} for each in trend.runs],
        "requirements": [_requirement(each) for each in trend.requirements],
        "violations": [asdict(each) for each in trend.violations],
        "flaky": [
            {**asdict(each), "results": dict(each.results), "runs": each.runs, "rate": round(each.rate, 4)}
            for each in trend.flaky
        ],
        "unread": [asdict(each) for each in trend.unread],
    }


def dumps(trend: Trend) -> str:
    """The text of the file; equal trends give equal bytes."""
    return json.dumps(trend_object(trend), indent=1, ensure_ascii=True) + "\n"


def _requirement(row: RequirementTrend) -> dict[str, Any]:
    return {"id": row.id, "verdicts": [UNTESTED if each is None else each.name for each in row.verdicts]}
