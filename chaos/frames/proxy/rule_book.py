"""The rules of a proxy by their numbers: from the command line, a file, and the control port."""

from __future__ import annotations

from functools import partial
from typing import Any

from chaos.frames.actions import FrameAction
from chaos.frames.links import FrameLinks
from chaos.frames.proxy.frame_log import FrameLog
from chaos.frames.proxy.rule_filter import RuleFilter
from chaos.frames.proxy.rule_language import RuleError
from chaos.frames.rule import Disposition, Rule


class RuleBook:
    """Rules are numbered from 1 in the order of their coming. A rule that was removed stays in the list."""

    def __init__(self, links: FrameLinks, log: FrameLog) -> None:
        self._links, self._log = links, log
        self._rules: dict[int, Rule] = {}

    def add(self, frames: RuleFilter, action: FrameAction) -> int:
        """Put a rule in force; returns its number."""
        number = len(self._rules) + 1
        watch = partial(self._log.met, number, action.verb, self._links.reader)
        self._rules[number] = self._links.add(frames, action, watch=watch)
        return number

    def remove(self, number: object) -> None:
        """End a rule and release its frames; raises RuleError when there is no such rule."""
        self._links.remove(self._rule(number))

    def release(self, number: object) -> None:
        """Release the frames that a rule holds now; raises RuleError when there is no such rule."""
        self._rule(number).release()

    def list(self) -> list[dict[str, Any]]:
        """Each rule with its counts."""
        return [
            {
                "rule": number,
                "text": rule.frames.describe(),
                "active": rule.active,
                "met": rule.count,
                "kept": sum(each.disposition is Disposition.KEPT for each in rule.met),
                "missed": rule.missed,
            }
            for number, rule in self._rules.items()
        ]

    def _rule(self, number: object) -> Rule:
        if not isinstance(number, int) or number not in self._rules:
            raise RuleError(f"there is no rule {number}; there are {len(self._rules)} rules, numbered from 1")
        return self._rules[number]
