"""Finds calls whose answer is dropped: `python -m tests.support.lint.dropped_answers suites runner …`.

A broker, a client library or a process may refuse without an exception: by a code for each partition, an error in a map,
a future, a number of records that are left, an exit code. To drop such an answer is a fault, unless a comment in the
statement or above it says why it is right: `# answer dropped: …`.

The types are those of mypy. A call has an answer if it returns one of `TYPES`, or if it has one of the names in
`METHODS`, because libraries without types return `Any`. If a function with an answer is handed to another one, the
result of the other one must not be dropped either.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mypy import build, nodes
from mypy.fscache import FileSystemCache
from mypy.main import process_options
from mypy.types import CallableType, Instance, NoneType, Type, get_proper_type

#: Types of answers as mypy writes them. A decoded answer of a broker, or of a driver, is a `dict[str, Any]`.
TYPES = frozenset(
    {
        "runner.protocol.toolkit.responses.Response",
        "runner.protocol.toolkit.context.Sent",
        "wire.connection.Pending",
        "dict[str, Any]",
        "typing.Sequence[dict[str, Any]]",
    }
)
#: Methods of libraries, and `poll_until`, each with the part of its result that may be a refusal.
METHODS: Mapping[str, str] = {
    "commitSync": "a share consumer's error for each partition",
    "commitAsync": "errors that reach a callback only",
    "commit": "librdkafka's error for each partition",
    "send": "a future",
    "submit": "a future",
    "flush": "librdkafka's number of records that are not delivered",
    **dict.fromkeys(
        [
            *("create_topics", "create_partitions", "delete_topics", "delete_records", "alter_configs"),
            *("incremental_alter_configs", "elect_leaders", "createTopics", "createPartitions", "deleteTopics"),
            *("deleteRecords", "incrementalAlterConfigs", "electLeaders", "fenceProducers", "all"),
        ],
        "futures of an admin",
    ),
    "poll_until": "the last value, which may not be the wanted one",
}
#: Methods of processes whose `int` is an exit code.
EXITS = frozenset({"wait", "await_exit"})
#: Functions that look at the answer that they return, or that a function which they are given returns.
LOOK = frozenset({"set_up", "require_code", "expect_code", "plain"})
MARK = "# answer dropped:"
_REASON = re.compile(rf"{MARK} \S+ \S+ \S+")
_PARTS = ("body", "defs", "else_body", "finally_body", "handlers", "func", "items", "bodies")


@dataclass(frozen=True, slots=True, order=True)
class Dropped:
    """A statement that drops an answer without a reason, or a reason without such a statement."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


def dropped(*paths: str) -> list[Dropped]:
    """The dropped answers in these files and folders; raises CompileError where mypy cannot read them."""
    cache = FileSystemCache()
    sources, options = process_options(list(paths), fscache=cache)
    # Types of expressions are not in mypy's cache.
    options.export_types, options.preserve_asts, options.incremental = True, True, False
    options.cache_dir = os.devnull
    built = build.build(sources, options, fscache=cache)
    files = [built.files[each.module] for each in sources]
    return sorted(found for each in files for found in _of_file(each, built.types))


def _of_file(file: nodes.MypyFile, types: Mapping[nodes.Expression, Type]) -> Iterator[Dropped]:
    lines = Path(file.path).read_text(encoding="utf-8").splitlines()
    reasons = {number for number, line in enumerate(lines, 1) if MARK in line}
    used = set()
    for statement, value in _dropping(file):
        what = next(_answers(value, types), None)
        if what is None:
            continue
        own = reasons & {*range(statement.line - 1, (statement.end_line or statement.line) + 1)}
        used |= own
        if not any(_REASON.search(lines[each - 1]) for each in own):
            yield Dropped(file.path, statement.line, f"{what} is dropped")
    for left in reasons - used:
        yield Dropped(file.path, left, "a reason, but no answer is dropped")


def _dropping(file: nodes.MypyFile) -> Iterator[tuple[nodes.Statement, nodes.Expression]]:
    """The statements that drop the value of an expression."""
    waiting: list[object] = [file]
    while waiting:
        each = waiting.pop()
        if isinstance(each, nodes.ExpressionStmt):
            yield each, each.expr
        elif isinstance(each, nodes.AssignmentStmt):
            if all(isinstance(to, nodes.NameExpr) and to.name == "_" for to in each.lvalues):
                yield each, each.rvalue
        elif isinstance(each, Sequence) and not isinstance(each, str):
            waiting.extend(each)
        elif isinstance(each, nodes.Statement | nodes.MypyFile | nodes.FuncItem | nodes.OverloadedFuncDef):
            waiting.extend(getattr(each, part, None) for part in _PARTS)


def _answers(expression: nodes.Expression, types: Mapping[nodes.Expression, Type]) -> Iterator[str]:
    """The answers that a dropped expression has, in words."""
    value = expression.expr if isinstance(expression, nodes.AwaitExpr) else expression
    if not isinstance(value, nodes.CallExpr) or _name(value) in LOOK:
        return
    handed = [(_name(value), types.get(expression))]
    for each in value.args:
        inner = each.body.body[0] if isinstance(each, nodes.LambdaExpr) else None
        if isinstance(inner, nodes.ReturnStmt) and isinstance(inner.expr, nodes.CallExpr):
            handed.append((_name(inner.expr), types.get(inner.expr)))
        else:
            handed.append((each.name if isinstance(each, nodes.MemberExpr) else "", _returned(types.get(each))))
    yield from (what for name, kind in handed if (what := _answer(name, kind)))


def _answer(name: str, kind: Type | None) -> str:
    """The answer that a function of this name and result has, in words; empty if it has none."""
    text = "None" if kind is None else str(get_proper_type(kind)).replace("builtins.", "")
    if name in LOOK or text.startswith(("None", "bool", "Never")):
        return ""
    if text in TYPES:
        return f"the answer of {name}"
    if name in EXITS and text.startswith("int"):
        return f"the exit code of {name}"
    return f"{METHODS[name]}: the result of {name}" if name in METHODS else ""


def _returned(kind: Type | None) -> Type:
    """The type that a function or a `partial` returns; None of anything else."""
    kind = None if kind is None else get_proper_type(kind)
    if isinstance(kind, CallableType):
        return kind.ret_type
    if isinstance(kind, Instance) and kind.type.fullname == "functools.partial":
        return kind.args[0]
    return NoneType()


def _name(call: nodes.CallExpr) -> str:
    return call.callee.name if isinstance(call.callee, nodes.MemberExpr | nodes.NameExpr) else ""


if __name__ == "__main__":
    sys.exit("\n".join(map(str, dropped(*sys.argv[1:]))) or 0)
