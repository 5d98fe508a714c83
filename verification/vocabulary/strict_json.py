"""JSON files of evidence, read strictly into dataclasses: a foreign or cut file is refused with a sentence.

Evidence is JSON from any source. Without this check a text in place of a time would be found by the first report that
calculates with it, far from the file that is wrong. Fields that the dataclass lacks are ignored: the format number
defines the meaning of a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta, convert

Content = TypeVar("Content")
#: Whole numbers fit 64 bits, like those of Kafka's protocol; a greater one cannot be laid out on an axis.
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
#: Other numbers have the same bounds, for the same reason.
Float64 = Annotated[float, Meta(gt=-(2**63), lt=2**63)]


def read(
    path: Path,
    kind: type[Content],
    *,
    of: str,
    format_: int,
    error: type[Exception],
    missing: str,
    required: tuple[str, ...] = (),
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: body,
) -> Content:
    """Read one JSON object, whose `format` is `format_`, into a dataclass.

    `of` names the file's kind in messages, `missing` explains its absence. `required` are fields that a file must have
    although the dataclass has a default: a forgotten list would otherwise be an empty one. `prepare` receives the object
    without its format, and may raise `error`. Raises `error` for a file that is missing, cut, foreign,
    of another format, or has a value of another type; the message names the field (`$.planned[0].expected_s`).
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path} does not exist; {missing}") from None
    except (OSError, ValueError) as problem:
        raise error(f"{path} is not readable JSON ({problem}); the file is cut or foreign") from problem
    if not isinstance(body, dict) or body.pop("format", None) != format_:
        raise error(f"{path} is not of {of} format {format_}, the one that this version reads")
    if lacking := [name for name in required if name not in body]:
        raise error(f"{path} does not fit {of} format {format_}: it lacks {', '.join(lacking)}")
    try:
        return convert(prepare(body), kind)
    except (KeyError, TypeError, ValueError) as problem:
        raise error(f"{path} does not fit {of} format {format_}: {problem}") from problem
