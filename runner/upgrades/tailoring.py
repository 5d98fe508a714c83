"""Fits the scenario of an upgrade to what the user asked for: fewer stages.

`--stop-after` ends the schedule with a stage. `-k` keeps the steps whose stage or description it matches, besides whole
scenarios as usual. What changes the cluster for good (rolls, feature levels) stays as long as a selected step follows, and
leaders are placed where their stage has a selected step (`stays` in `steps.toml`). Either way the run is PARTIAL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression

from chaos.schedule import Schedule, Step
from runner.upgrades.options import UpgradeOptions
from runner.upgrades.step_facts import Stays, facts_of

#: Floors that only a run with a certain stage can meet: producers speak TV2 at the latest when that stage has replaced them,
#: and the group has members of both releases in it.
_NEEDS = {"tv2_producers": "clients", "copied_together": "clients"}


def tailored(values: Mapping[str, Any], options: UpgradeOptions, keyword: str, item: pytest.Item) -> dict[str, Any]:
    """The arguments of `run`, with the stages of this run. A schedule without stages stays as it is."""
    if not has_stages(schedule := values.get("schedule", ())):
        return dict(values)
    schedule = until(schedule, options.stop_after)
    if keyword:
        schedule = selected(schedule, keyword, item)
    names = {step.stage for step in schedule}
    return {
        **values,
        "schedule": schedule,
        "floors": tuple(each for each in values["floors"] if _NEEDS.get(each.name) in (None, *names)),
    }


def has_stages(schedule: Schedule) -> bool:
    """Whether this is the schedule of an upgrade."""
    return any(step.stage for step in schedule)


def until(schedule: Schedule, stage: str) -> Schedule:
    """The schedule up to the end of a stage: all of it for an empty name, nothing without that stage."""
    ends = [number for number, step in enumerate(schedule, start=1) if step.stage == stage]
    return schedule[: max(ends, default=0)] if stage else schedule


def selected(schedule: Schedule, keyword: str, item: pytest.Item) -> Schedule:
    """The steps that `-k` matches, and the changes of the cluster that they need.

    A word of `-k` with which a word of some step begins is looked for in each step, any other one in the names of the
    test, as always. So `not back` leaves the way back out, and the name of the test keeps all steps.

    Raises pytest.UsageError for an expression that pytest could not read.
    """
    expression, own = _expression(keyword), KeywordMatcher.from_item(item)
    everywhere = " ".join(map(_text, schedule))

    def matched(step: Step) -> bool:
        def has(word: str, /, **_: str | int | bool | None) -> bool:
            return _begins_a_word(word, _text(step)) if _begins_a_word(word, everywhere) else own(word)

        return expression.evaluate(has)

    matches = [matched(step) for step in schedule]
    last = max((number for number, match in enumerate(matches) if match), default=-1)
    met = {step.stage for step, match in zip(schedule, matches, strict=True) if match}

    def needed(number: int, step: Step) -> bool:
        stays = facts_of(step).stays
        return (stays is Stays.RUN and number < last) or (stays is Stays.STAGE and step.stage in met)

    return tuple(step for number, step in enumerate(schedule) if matches[number] or needed(number, step))


def named(keyword: str, item: pytest.Item) -> bool:
    """Whether `-k` selects a test by its own names. Raises pytest.UsageError like `selected`."""
    return _expression(keyword).evaluate(KeywordMatcher.from_item(item))


def only_leaves_out(keyword: str) -> bool:
    """Whether `-k` names nothing to select, only what to leave out, as `not back` does."""
    return bool(keyword) and _expression(keyword).evaluate(lambda _, /, **__: False)


def _expression(keyword: str) -> Expression:
    try:
        return Expression.compile(keyword)
    except SyntaxError as error:
        raise pytest.UsageError(f"Wrong expression passed to '-k': {keyword}: {error.msg}") from None


def _text(step: Step) -> str:
    return f"{step.stage} {step.describe()} {type(step.fault).__name__}"


def _begins_a_word(word: str, text: str) -> bool:
    """Not anywhere in a word, as pytest looks for names: a controller is no roll."""
    return re.search(rf"\b{re.escape(word)}", text, re.IGNORECASE) is not None
