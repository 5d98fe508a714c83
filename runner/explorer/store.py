"""Stores the state of an exploration of one release on disk, so that an interrupted exploration can go on.

A state belongs to one version of the explorer: with another model the same seed shows other signatures. A state of
another version is put aside, and the exploration begins anew.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fixtures.errors import OnceproofError, UsageError
from runner.explorer.moves import Move, WalkPlan, move_of
from verification import specification
from verification.evidence.atomic_write import atomic_write
from wire.transaction_versions import TransactionVersion

#: The formats of state.json and of a file of moves.
FORMAT, PLAN_FORMAT = 2, 1
#: Modules that only keep and describe findings do not change the signatures of a seed.
_DISPLAY_ONLY = frozenset({"describe", "findings_page", "store"})
SLUG_MOST = 90


class UnfitStoreError(OnceproofError):
    """A file of an exploration cannot be read."""


class UnfitPlanError(UsageError):
    """A file that should hold the moves of a walk does not."""


def version() -> str:
    """The version of the explorer: a short digest of its files and of those of its model."""
    found = hashlib.sha256()
    for path in sorted([*Path(__file__).parent.glob("*.py"), *Path(specification.__file__).parent.glob("*.py")]):
        if path.stem not in _DISPLAY_ONLY:
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:8]


def slug(text: str) -> str:
    """A name for files; a shortened one ends with a digest, so that two names stay different."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(plain) <= SLUG_MOST:
        return plain
    return f"{plain[:SLUG_MOST].strip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaky:
    """A signature that no replay showed; `seeds` are those whose walks were replayed."""

    nature: str
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """One finding by its signature, with its first seed, the fewest moves, and how often they showed it.

    `model` is the version of the explorer.
    """

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
    model: str

    @property
    def slug(self) -> str:
        """A name for files."""
        return slug(self.signature if self.name in self.signature else f"{self.name} {self.signature}")


@dataclass(slots=True, kw_only=True)
class Store:
    """The seeds that are done, how often each signature was seen, and the findings.

    `begun` is the time of its begin in UTC. `slow` counts those of `walks` that were too slow to be conclusive.
    """

    directory: Path
    release: str
    model: str
    begun: str
    done: set[int] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    found: dict[str, StoredFinding] = field(default_factory=dict)
    flaky: dict[str, Flaky] = field(default_factory=dict)
    walks: int = 0
    requests: int = 0
    slow: int = 0
    seconds: float = 0.0

    @property
    def file(self) -> Path:
        """The file that holds it."""
        return self.directory / "state.json"

    def write(self) -> None:
        """Write state.json as a whole: an interruption leaves the earlier one."""
        self.directory.mkdir(parents=True, exist_ok=True)
        body = {
            "format": FORMAT,
            "release": self.release,
            "model": self.model,
            "begun": self.begun,
            "done": ranges(self.done),
            "seen": dict(self.seen),
            "found": [asdict(each) for each in self.found.values()],
            "fleeting": {signature: asdict(each) for signature, each in self.flaky.items()},
            "walks": self.walks,
            "requests": self.requests,
            "slow": self.slow,
            "seconds": round(self.seconds, 1),
        }
        atomic_write(self.file, json.dumps(body, indent=1) + "\n")


def opened(directory: Path, release: str, *, model: str = "", say: Callable[[str], None] = lambda _: None) -> Store:
    """The state that this version left, or a new one; raises UnfitStoreError.

    A state of another version is renamed to `state-….json`, with a message.
    """
    model = model or version()
    now = datetime.now(tz=UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
    store = Store(directory=directory, release=release, model=model, begun=now)
    if not store.file.is_file():
        return store
    try:
        body = json.loads(store.file.read_text(encoding="utf-8"))
        if body["release"] != release:
            raise UnfitStoreError(f"{store.file} holds an exploration of Kafka {body['release']}, not of {release}.")
        of = str(body.get("model", "before")) if body["format"] == FORMAT else f"of format {body['format']}"
        if of == model:
            _fill(store, body)
            return store
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnfitStoreError(
            f"{store.file} is not the state of an exploration of Kafka {release} ({error})."
        ) from error
    aside = store.file.with_name(f"state-{slug(of)}.json")
    store.file.replace(aside)
    say(f"The exploration begins anew: another version of the explorer wrote its state, which is kept as {aside.name}.")
    return store


def _fill(store: Store, body: dict[str, Any]) -> None:
    store.begun = body["begun"]
    store.done = {seed for first, last in body["done"] for seed in range(first, last + 1)}
    store.seen = Counter(body["seen"])
    store.found = {each["signature"]: _found(each) for each in body["found"]}
    store.flaky = {
        signature: Flaky(nature=each["nature"], seeds=tuple(each["seeds"]))
        for signature, each in body["fleeting"].items()
    }
    store.walks, store.requests = body["walks"], body["requests"]
    store.slow, store.seconds = body["slow"], body["seconds"]


def _found(body: dict[str, Any]) -> StoredFinding:
    return StoredFinding(**{**body, "moves": tuple(body["moves"]), "script": tuple(body["script"])})


def ranges(seeds: Iterable[int]) -> list[list[int]]:
    """Seeds as [first, last] pairs."""
    found: list[list[int]] = []
    for seed in sorted(seeds):
        if found and found[-1][1] == seed - 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return found


def write_plan(path: Path, plan: WalkPlan, release: str) -> None:
    """Write a file of moves, which `--replay` performs."""
    body = {
        "format": PLAN_FORMAT,
        "release": release,
        "seed": plan.seed,
        "generation": plan.generation,
        "timeout_ms": plan.timeout_ms,
        "moves": [each.plain() for each in plan.moves],
    }
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def read_plan(path: Path) -> WalkPlan:
    """Read the moves of a file; raises UnfitPlanError."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        moves: tuple[Move, ...] = tuple(move_of(each) for each in body["moves"])
        planned = WalkPlan(int(body["seed"]), TransactionVersion(body["generation"]), int(body["timeout_ms"]), moves)
        planned.check()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnfitPlanError(f"{path} is not a file of moves ({error}).") from error
    return planned
