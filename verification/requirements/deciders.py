"""The tests that decide each requirement, from the declarations in `suites/`, and the command that runs one of them.

A test declares its requirements with `@requirement("TXN-25")`. The files are read and not imported, because a report must
not load what starts brokers. A control (`@convict`) decides nothing about a subject.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SUITES = Path(__file__).parents[2] / "suites"

#: The job and its options for the tests of a directory; the others belong to the main job.
_JOBS = {
    "protocol": "protocol -- --kafka {release}",
    "pipelines": "pipelines -- --kafka {release}",
    "upgrades": "upgrade -- --from OLDER --to {release}",
    "watch": "watch -- --bootstrap HOST:PORT --kafka {release} --for 30m",
}
_MAIN = "conformance -- --kafka {release}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """One test: its directory in `suites/`, its name, its marks, and the requirements that it declares."""

    suite: str
    test: str
    marks: frozenset[str]
    requirements: tuple[str, ...]

    def command(self, release: str) -> str:
        """The command that runs it on a release."""
        if "zookeeper" in self.marks:
            return "tox -e upgrade -- --from 3.9.2 --migrate"
        job = _JOBS.get(self.suite, _MAIN).format(release=release or "RELEASE")
        nightly = "nightly" in self.marks
        if self.suite == "upgrades":
            # There `-k` selects stages, and names only what the nightly profile adds.
            return f"tox -e {job}{f' -k {self.test}' if nightly else ''}"
        return f"tox -e {job}{' --profile nightly' if nightly else ''} -k {self.test}"

    @property
    def scenario(self) -> bool:
        """Whether it is a scenario, with clients and faults, and not a protocol case."""
        return self.suite != "protocol"


@cache
def deciders() -> tuple[Decider, ...]:
    """Every test that decides a requirement, those of the main job first."""
    found = [each for path in sorted(SUITES.glob("*/test_*.py")) for each in _declared(path)]
    return tuple(
        sorted(found, key=lambda each: (each.suite in _JOBS and each.suite != "protocol", "nightly" in each.marks))
    )


@cache
def deciders_of() -> Mapping[str, Decider]:
    """The test of the most usual job that decides each requirement."""
    return {id_: each for each in reversed(deciders()) for id_ in each.requirements}


def _declared(path: Path) -> Iterator[Decider]:
    for function in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        decorators = {_name(each): each for each in function.decorator_list}
        declared = decorators.get("requirement")
        if "convict" in decorators or not isinstance(declared, ast.Call):
            continue
        yield Decider(
            suite=path.parent.name,
            test=function.name,
            marks=frozenset(decorators),
            requirements=tuple(str(each.value) for each in declared.args if isinstance(each, ast.Constant)),
        )


def _name(decorator: ast.expr) -> str:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return named.id if isinstance(named, ast.Name) else ""
