"""The language of rules, as one line of text or as a table of a TOML file with the same fields.

::

    ACTION DIRECTION API [#COUNT] [[of] FIELD VALUE]...
    drop response EndTxn #2 of transactional id billing-*

ACTION is `hold`, `delay SECONDS`, `drop [alone]`, `duplicate [times N] [after SECONDS]`, `answer CODE` or `cut`.
DIRECTION is `request` or `response`. API is a name of Kafka's, or `any`. `#2` means the second frame that matches,
`#2-4` the second to the fourth, `#2-` all from the second on; without it the rule meets every one.
"""

from __future__ import annotations

import difflib
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from chaos.errors import ChaosError
from chaos.frames.actions import Cut, Delay, Drop, Duplicate, FrameAction, Hold, Respond, flaw
from chaos.frames.proxy.rule_filter import RuleFilter
from chaos.frames.selector import Direction
from wire.codes import ErrorCode
from wire.messages import Definitions

ACTIONS: dict[str, tuple[str, ...]] = {
    "hold": (),
    "delay": ("seconds",),
    "drop": ("alone",),
    "duplicate": ("times", "after"),
    "answer": ("code",),
    "cut": (),
}
CRITERIA = ("transactional id", "client id", "group", "topic", "partition", "producer id", "epoch")
_TEXTS = ("transactional id", "client id", "group", "topic")
_COUNT = "#2, #2-4 or #2-"

Fields = Mapping[str, Any]
Number = TypeVar("Number", int, float)


class RuleError(ChaosError):
    """A rule that cannot be understood or could never act."""


def parse(text: str, definitions: Definitions) -> tuple[RuleFilter, FrameAction]:
    """A rule of one line; raises RuleError with the allowed words."""
    try:
        return build(_read(shlex.split(text)), text, definitions)
    except ValueError as error:
        raise RuleError(f"the rule '{text}' cannot be read: {error}") from error
    except RuleError as error:
        raise RuleError(f"the rule '{text}' cannot be read: {error}") from None


def load(path: Path, definitions: Definitions) -> list[tuple[RuleFilter, FrameAction]]:
    """The tables `[[rule]]` of a TOML file, in order; raises RuleError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RuleError(f"the rules file {path} cannot be read: {error}") from error
    tables = content.get("rule")
    if set(content) != {"rule"} or not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise RuleError(f"the rules file {path} must have tables [[rule]] and nothing else")
    rules = []
    for number, table in enumerate(tables, start=1):
        try:
            fields = {name.replace("_", " "): value for name, value in table.items()}
            rules.append(build(fields, _text(fields), definitions))
        except RuleError as error:
            raise RuleError(f"rule {number} of {path} cannot be read: {error}") from None
    return rules


def build(fields: Fields, text: str, definitions: Definitions) -> tuple[RuleFilter, FrameAction]:
    """A rule of its fields; raises RuleError."""
    action = _one_of(fields.get("action"), ACTIONS, "an action")
    allowed = ("action", "direction", "api", "count", *CRITERIA, *ACTIONS[action])
    for name in fields:
        _one_of(name, allowed, f"a field of a rule with the action {action}")
    for name in _TEXTS:
        if not isinstance(fields.get(name, ""), str):
            raise RuleError(f"{name} must be a text, not {fields[name]}")
    skip, count = _count(str(fields["count"]).removeprefix("#")) if "count" in fields else (0, None)
    done = _action(action, fields)
    direction = Direction(_one_of(fields.get("direction"), [str(each) for each in Direction], "a direction"))
    frames = RuleFilter(
        text=text,
        api=_api(fields.get("api"), definitions),
        direction=direction,
        skip=skip,
        count=count,
        producer_id=_optional(fields, "producer id"),
        index=_optional(fields, "partition"),
        epoch=_optional(fields, "epoch"),
        transactional_id=fields.get("transactional id"),
        client_id=fields.get("client id"),
        group=fields.get("group"),
        topic=fields.get("topic"),
    )
    if why := flaw(frames, done):
        raise RuleError(why)
    return frames, done


def _read(words: list[str]) -> Fields:
    """The fields of a line."""
    rest = iter(words)
    fields: dict[str, Any] = {"action": next(rest, None)}
    word = next(rest, None)
    for name in ACTIONS.get(str(fields["action"]), ()):
        if name in ("seconds", "code"):  # the one argument, without its name
            fields[name], word = word, next(rest, None)
        elif word == name:
            fields[name], word = name == "alone" or next(rest, None), next(rest, None)
    fields |= {"direction": word, "api": next(rest, None)}
    _read_criteria(rest, fields)
    return fields


def _read_criteria(rest: Iterator[str], fields: dict[str, Any]) -> None:
    for word in rest:
        if word in ("of", "and"):
            continue
        if word.startswith("#"):
            name, value = "count", word
        else:
            name = f"{word} {next(rest, '')}" if word in ("transactional", "client", "producer") else word
            _one_of(name, CRITERIA, f"a field (a count is {_COUNT})")
            value = next(rest, "")
            if not value:
                raise RuleError(f"a value must follow '{name}'")
        if name in fields:
            raise RuleError(f"'{name}' is given twice")
        fields[name] = value


def _action(name: str, fields: Fields) -> FrameAction:
    if name == "delay":
        return Delay(delay_s=_number(fields.get("seconds"), float, "the seconds of a delay"))
    if name == "duplicate":
        times = _number(fields.get("times", 1), int, "times")
        return Duplicate(times=times, after_s=_number(fields.get("after", 0), float, "after"))
    if name == "answer":
        return Respond(error_code=_code(fields.get("code")))
    if name == "drop":
        return Drop(alone=fields.get("alone", False) is True)
    return Hold() if name == "hold" else Cut()


def _code(value: Any) -> int:
    text = str(value)
    if text in ErrorCode.__members__:
        return int(ErrorCode[text])
    if text.lstrip("-").isdecimal():
        return int(text)
    near = difflib.get_close_matches(text.upper(), ErrorCode.__members__) or ["NOT_COORDINATOR"]
    raise RuleError(f"{_said(value)} is not an error code; give a number or a name such as {_or(near)}")


def _api(name: Any, definitions: Definitions) -> str | None:
    apis = definitions.apis()
    if name == "any" or name in apis:
        return None if name == "any" else str(name)
    near = difflib.get_close_matches(str(name), apis) or ["EndTxn", "Produce", "any"]
    raise RuleError(f"{_said(name)} is not an API that the message definitions know; say for instance {_or(near)}")


def _count(text: str) -> tuple[int, int | None]:
    """How many frames to skip, and how many to meet (None: all)."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or not last) or not 1 <= int(first) <= int(last or first):
        raise RuleError(f"'#{text}' is not a count; say {_COUNT}, where the first frame is #1")
    return int(first) - 1, None if dash and not last else int(last or first) - int(first) + 1


def _optional(fields: Fields, name: str) -> int | None:
    return _number(fields[name], int, name) if name in fields else None


def _number(value: Any, kind: Callable[[str], Number], name: str) -> Number:
    try:
        return kind(str(value).removesuffix("s") if kind is float else str(value))
    except ValueError:
        raise RuleError(f"{_said(value)} is not a number for {name}") from None


def _one_of(word: Any, allowed: Any, kind: str) -> str:
    if word in allowed:
        return str(word)
    raise RuleError(f"{_said(word)} is not {kind}; say {_or(list(allowed))}")


def _said(word: Any) -> str:
    return "the end of the rule" if word is None else f"'{word}'"


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _text(fields: Fields) -> str:
    """The table as one line, for the log."""
    return ", ".join(f"{name} {value}" for name, value in fields.items())
