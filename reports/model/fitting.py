"""Whether values have the types of their fields.

Evidence is JSON of anybody, and a dataclass takes whatever it is given: a text where a time belongs would be found by
the first face that reckons with it, far from the file that is wrong. Whole numbers must fit 64 bits, like those of
Kafka's protocol, and others be finite, because nothing else can be laid out on an axis.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Value = TypeVar("Value")
_Fits = Callable[[Any], bool]
_WHOLE_MAX = 2**63


def fit(value: Value) -> Value:
    """The dataclass itself; raises TypeError that names the first field with a value of another type."""
    kind: Any = type(value)
    for name, fits in _checks(kind):
        if not fits(getattr(value, name)):
            raise TypeError(f"{name} of {kind.__name__} cannot be {getattr(value, name)!r:.80}")
    return value


@cache
def _checks(kind: Any) -> tuple[tuple[str, _Fits], ...]:
    hints = get_type_hints(kind)
    return tuple((each.name, _fits(hints[each.name])) for each in fields(kind))


def _fits(hint: Any) -> _Fits:
    """Whether a value is what an annotation says; the annotations are those of evidence, and no others are known."""
    inner = get_args(hint)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        choices = tuple(map(_fits, inner))
        return lambda value: any(fits(value) for fits in choices)
    if origin is tuple and inner[1:] == (...,):
        each_fits = _fits(inner[0])
        return lambda value: isinstance(value, tuple) and all(map(each_fits, value))
    if origin is tuple:
        members = tuple(map(_fits, inner))
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(members)
            and all(fits(each) for fits, each in zip(members, value, strict=True))
        )
    if origin is dict:
        of_key, of_value = map(_fits, inner)
        return lambda value: isinstance(value, dict) and all(of_key(k) and of_value(v) for k, v in value.items())
    return _fits_plainly(hint)


def _fits_plainly(kind: type) -> _Fits:
    if kind is int:
        return lambda value: type(value) is int and -_WHOLE_MAX <= value < _WHOLE_MAX
    if kind is float:
        return lambda value: type(value) in (int, float) and abs(value) < _WHOLE_MAX and math.isfinite(value)
    if is_dataclass(kind):
        return lambda value: isinstance(value, kind) and fit(value) is value
    return lambda value: isinstance(value, kind)
