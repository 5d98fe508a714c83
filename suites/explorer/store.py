"""What an exploration of one release has done and found, on disk after every few walks, so that it can go on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fixtures.errors import OnceproofError
from suites.explorer.moves import Move, Plan, move_of
from suites.protocol.generations import Generation

FORMAT = 1


class UnfitStoreError(OnceproofError):
    """A file of an exploration cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One finding, by its signature: where it was seen first, the fewest moves, and how often they showed it."""

    signature: str
    name: str
    nature: str
    release: str
    generation: str
    seed: int
    shown: int
    tries: int
    moves: tuple[dict[str, Any], ...]
    script: tuple[str, ...]

    @property
    def slug(self) -> str:
        """A name for files."""
        text = self.signature if self.name in self.signature else f"{self.name} {self.signature}"
        return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:100]


@dataclass(slots=True, kw_only=True)
class Store:
    """Seeds that are done, how often each signature was seen, and the findings."""

    directory: Path
    release: str
    done: set[int] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)
    fleeting: dict[str, int] = field(default_factory=dict)
    walks: int = 0
    requests: int = 0
    slow: int = 0
    seconds: float = 0.0

    @property
    def file(self) -> Path:
        """Where it is kept."""
        return self.directory / "state.json"

    def write(self) -> None:
        """Write state.json as a whole: an interruption leaves the one before."""
        self.directory.mkdir(parents=True, exist_ok=True)
        body = {
            "format": FORMAT,
            "release": self.release,
            "done": ranges(self.done),
            "seen": dict(self.seen),
            "found": [asdict(each) for each in self.found.values()],
            "fleeting": self.fleeting,
            "walks": self.walks,
            "requests": self.requests,
            "slow": self.slow,
            "seconds": round(self.seconds, 1),
        }
        beside = self.file.with_suffix(".new")
        beside.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
        beside.replace(self.file)


def opened(directory: Path, release: str) -> Store:
    """What was done before, or nothing yet; raises UnfitStoreError."""
    store = Store(directory=directory, release=release)
    if not store.file.is_file():
        return store
    try:
        body = json.loads(store.file.read_text(encoding="utf-8"))
        if (body["format"], body["release"]) != (FORMAT, release):
            foreign = f"it is of format {body['format']} and of {body['release']}"
            raise UnfitStoreError(f"{store.file} is not what an exploration of {release} left ({foreign}).")
        store.done = {seed for first, last in body["done"] for seed in range(first, last + 1)}
        store.seen = Counter(body["seen"])
        store.found = {each["signature"]: _found(each) for each in body["found"]}
        store.fleeting, store.walks, store.requests = body["fleeting"], body["walks"], body["requests"]
        store.slow, store.seconds = body["slow"], body["seconds"]
    except (ValueError, KeyError, TypeError) as error:
        raise UnfitStoreError(f"{store.file} is not what an exploration of {release} left ({error}).") from error
    return store


def _found(body: dict[str, Any]) -> Found:
    return Found(**{**body, "moves": tuple(body["moves"]), "script": tuple(body["script"])})


def ranges(seeds: Iterable[int]) -> list[list[int]]:
    """Seeds as [first, last] pairs."""
    found: list[list[int]] = []
    for seed in sorted(seeds):
        if found and found[-1][1] == seed - 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return found


def write_plan(path: Path, plan: Plan, release: str) -> None:
    """A list of moves that `--replay` performs."""
    body = {
        "format": FORMAT,
        "release": release,
        "seed": plan.seed,
        "generation": plan.generation,
        "timeout_ms": plan.timeout_ms,
        "moves": [each.plain() for each in plan.moves],
    }
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def read_plan(path: Path) -> Plan:
    """The moves of a file; raises UnfitStoreError."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        moves: tuple[Move, ...] = tuple(move_of(each) for each in body["moves"])
        return Plan(int(body["seed"]), Generation(body["generation"]), int(body["timeout_ms"]), moves)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnfitStoreError(f"{path} is no list of moves ({error}).") from error
