"""What an exploration of one release has done and found, on disk after every few walks, so that it can go on.

It belongs to one version of the explorer: with another model the same seed shows other things. A state of another version
is put aside, and the exploration begins anew.
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

#: Of state.json, and of a list of moves.
FORMAT, PLAN_FORMAT = 2, 1
#: What only keeps and tells does not change what a seed shows.
_TELLING = frozenset({"describe", "findings_page", "store"})
SLUG_MOST = 90


class UnfitStoreError(OnceproofError):
    """A file of an exploration cannot be read."""


class UnfitPlanError(UsageError):
    """A file that should hold the moves of a walk does not."""


def version() -> str:
    """A short digest of the files of the explorer and of its model, by which versions are told apart."""
    found = hashlib.sha256()
    for path in sorted([*Path(__file__).parent.glob("*.py"), *Path(specification.__file__).parent.glob("*.py")]):
        if path.stem not in _TELLING:
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:8]


def slug(text: str) -> str:
    """A name for files; what is too long ends with a digest, so that two of them stay two."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(plain) <= SLUG_MOST:
        return plain
    return f"{plain[:SLUG_MOST].strip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaky:
    """A signature that no replay showed; `seeds` are those at which it was followed up."""

    nature: str
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """One finding, by its signature: where it was seen first, the fewest moves, and how often they showed it.

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
    """Seeds that are done, how often each signature was seen, and the findings.

    `begun` is when, in UTC; `slow` walks are among the `walks` and say nothing.
    """

    directory: Path
    release: str
    model: str
    begun: str
    done: set[int] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    found: dict[str, StoredFinding] = field(default_factory=dict)
    fleeting: dict[str, Flaky] = field(default_factory=dict)
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
            "model": self.model,
            "begun": self.begun,
            "done": ranges(self.done),
            "seen": dict(self.seen),
            "found": [asdict(each) for each in self.found.values()],
            "fleeting": {signature: asdict(each) for signature, each in self.fleeting.items()},
            "walks": self.walks,
            "requests": self.requests,
            "slow": self.slow,
            "seconds": round(self.seconds, 1),
        }
        atomic_write(self.file, json.dumps(body, indent=1) + "\n")


def opened(directory: Path, release: str, *, model: str = "", say: Callable[[str], None] = lambda _: None) -> Store:
    """What was done before with this version, or nothing yet; raises UnfitStoreError.

    A state of another version is kept beside as `state-….json`, and that is said.
    """
    model = model or version()
    now = datetime.now(tz=UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
    store = Store(directory=directory, release=release, model=model, begun=now)
    if not store.file.is_file():
        return store
    try:
        body = json.loads(store.file.read_text(encoding="utf-8"))
        if body["release"] != release:
            raise UnfitStoreError(f"{store.file} is what an exploration of {body['release']} left, not of {release}.")
        of = str(body.get("model", "before")) if body["format"] == FORMAT else f"of format {body['format']}"
        if of == model:
            _fill(store, body)
            return store
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnfitStoreError(f"{store.file} is not what an exploration of {release} left ({error}).") from error
    aside = store.file.with_name(f"state-{slug(of)}.json")
    store.file.replace(aside)
    say(f"The exploration begins anew: its state is of another version of the explorer, and is kept as {aside.name}.")
    return store


def _fill(store: Store, body: dict[str, Any]) -> None:
    store.begun = body["begun"]
    store.done = {seed for first, last in body["done"] for seed in range(first, last + 1)}
    store.seen = Counter(body["seen"])
    store.found = {each["signature"]: _found(each) for each in body["found"]}
    store.fleeting = {
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
    """A list of moves that `--replay` performs."""
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
    """The moves of a file; raises UnfitPlanError."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        moves: tuple[Move, ...] = tuple(move_of(each) for each in body["moves"])
        planned = WalkPlan(int(body["seed"]), TransactionVersion(body["generation"]), int(body["timeout_ms"]), moves)
        planned.check()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnfitPlanError(f"{path} is no list of moves ({error}).") from error
    return planned
