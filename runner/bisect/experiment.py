"""The case or scenario that is repeated on each build: its run, and its result in `results.json`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixtures.clients.registry import CLIENTS
from fixtures.errors import UsageError
from runner.config import DEFAULT_CLIENT, PROTOCOL, ROOT, SEED_LIMIT, SUITES
from verification.vocabulary.verdict import Verdict

#: Folders of `suites` whose experiments are no scenarios of a conformance run.
_APART = ("protocol", "regressions", "upgrades", "pipelines", "exploration")
_VERSION = re.compile(r"-tv[0-9]$")
_KEY = re.compile(rf"(.+)-({'|'.join(CLIENTS)})-([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A protocol case or a scenario; `identity` is its permanent id, `place` the test that pytest runs."""

    identity: str
    place: str
    seed: int | None = None
    client: str = ""

    @property
    def scripted(self) -> bool:
        """Whether it is a protocol case."""
        return self.seed is None

    @property
    def name(self) -> str:
        """Its name in names of directories."""
        return self.identity.replace("/", "-") + ("" if self.scripted else f"-{self.client}-{self.seed}")

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of pytest, without the build."""
        if self.scripted:
            return (self.place, "--runtime=local", "-p", "no:hypothesispytest")
        return (self.place, "--runtime=local", f"--seed={self.seed}", f"--client={self.client}", "--lanes=1")

    @property
    def option(self) -> str:
        """The options of the command that name it."""
        if self.scripted:
            return f"--case {self.identity}"
        return f"--scenario {self.identity} --seed {self.seed} --client {self.client}"

    def row(self, results: dict[str, Any]) -> dict[str, Any] | None:
        """Its row in the results of a run; None when it was not run.

        Of several rows with one id, such as those of two clients, the worst one counts.
        """
        kind, key = ("cases", "id") if self.scripted else ("scenarios", "scenario")
        rows: Sequence[dict[str, Any]] = [each for each in results.get(kind, []) if each[key] == self.identity]
        own = [each for each in rows if each.get("client") == self.client] or rows
        return max(own, key=lambda each: Verdict[each["verdict"]], default=None)


def case(identity: str) -> Repeated:
    """The protocol case with this id. Raises UsageError."""
    without = _VERSION.sub("", identity)
    for path in sorted(PROTOCOL.glob("test_*.py")):
        family = path.stem.removeprefix("test_").replace("_", "-")
        if without.startswith(f"{family}-") and (found := _test(path, without.removeprefix(f"{family}-"))):
            return Repeated(identity=identity, place=found)
    raise UsageError(f"There is no protocol case {identity}.", hint="`tox -e protocol -- --list` shows their ids.")


def scenario(identity: str, *, seed: int | None, client: str | None) -> Repeated:
    """The scenario with this id, such as `coordinator/coordinator-crash-while-committing`.

    A key of a report or of `--list` ends with client and seed, which count where they are not given. Raises UsageError.
    """
    key = _KEY.fullmatch(identity)
    name, own_client, own_seed = key.groups() if key else (identity, DEFAULT_CLIENT, None)
    seed = int(own_seed) if seed is None and own_seed else seed
    if seed is None or not 0 <= seed < SEED_LIMIT:
        raise UsageError(f"--scenario needs --seed, a number from 0 to {SEED_LIMIT - 1}.")
    for family in sorted(path.name for path in SUITES.iterdir() if path.is_dir() and path.name not in _APART):
        if name.startswith((f"{family}/", f"{family}-")):
            own = name[len(family) + 1 :]
            for path in sorted((SUITES / family).glob("test_*.py")):
                if found := _test(path, own):
                    return Repeated(identity=f"{family}/{own}", place=found, seed=seed, client=client or own_client)
    raise UsageError(
        f"There is no scenario {identity}.", hint="`tox -e conformance -- --list --only scenarios` shows their ids."
    )


def _test(path: Path, name: str) -> str:
    """The node id of a test in a file, by the name in its id; empty when the file has none."""
    function = f"test_{name.replace('-', '_')}"
    defined = re.search(rf"^def {re.escape(function)}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    return f"{path.relative_to(ROOT)}::{function}" if defined else ""
