"""The lint of dropped answers, tried on programs that drop some. `tox -e types` runs it on the product."""

from __future__ import annotations

from pathlib import Path

from tests.support.lint.dropped_answers import dropped

PROGRAM = '''\
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from threading import Event


class Case:
    def ask(self) -> dict[str, Any]:
        """An answer."""
        return {}

    def poll_until(self, look: Callable[[], object]) -> Any:
        """The last value."""
        return look()

    def set_up(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Look at the answer."""
        return call()


def call(each: Callable[[], object]) -> None:
    """Drop the result."""
    each()


def script(case: Case, library: Any, event: Event, seen: list[str]) -> None:
    """The statements that are tried."""
'''
#: Each drops an answer: the call itself is the statement, or a function that gets the answer of another one.
DROPPING = (
    # The one of `runner.protocol.toolkit.share_groups` because of which a second delivery that is right was a violation.
    "library.commitSync()",
    "library.consumer().commit(asynchronous=False)",
    "library.flush(1.0)",
    "case.ask()",
    "case.poll_until(seen.clear)",
    "call(lambda: library.commitSync())",
    "call(case.ask)",
    "call(partial(case.ask))",
    "case.ask()  # answer dropped: why",
    "_ = case.ask()",
    "if seen: case.ask()",
)
#: A reason has three words at least; calls without an answer need none.
FINE = (
    "assert case.ask()",
    "case.set_up(case.ask)",
    "case.ask()  # answer dropped: the next claim needs it",
    "# answer dropped: the next claim needs it",
    "case.ask()",
    "event.wait(1.0)",
    "seen.append('')",
    "library.acknowledge()",
)
#: It would excuse the next call at its place.
LEFT = "seen.clear()  # answer dropped: the next claim needs it"


def test_dropped_answers_are_found(tmp_path: Path) -> None:
    """All of them, nothing else, and a reason that is no longer needed."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "".join(f"    {each}\n" for each in (*DROPPING, *FINE, LEFT)), encoding="utf-8")
    lines = program.read_text(encoding="utf-8").splitlines()
    found = {lines[each.line - 1].strip(): each.what for each in dropped(str(program))}
    assert found.pop(LEFT) == "a reason, but no answer is dropped"
    assert tuple(found) == DROPPING
    assert all(what.endswith("is dropped") for what in found.values())
