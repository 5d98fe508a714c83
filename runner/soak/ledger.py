"""The ledger of a soak: which run is next, which verdicts nothing explains, and which differ between equal experiments."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

from runner import acceptance
from runner.soak.load import LOADS
from verification.vocabulary.verdict import Verdict

RELEASES = ("4.2.2", "4.3.1", "4.4.0")
#: Few, so that runs of equal release and seed soon meet.
SEEDS = (1, 2)
#: What a soak repeats: whole default runs, or protocol cases alone.
RUN, PROTOCOL = "run", "protocol"
_PASS = Verdict.PASS.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakRun:
    """One run of a soak: its options and its load."""

    what: str
    release: str
    load: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its directory."""
        return f"soak-{self.what}-{self.release}-{self.load}-{self.seed}"


def runs(what: str) -> list[SoakRun]:
    """Every run of a soak once; protocol cases do not depend on the seed."""
    return [
        SoakRun(what=what, release=release, load=load, seed=seed)
        for seed, load, release in product(SEEDS if what == RUN else SEEDS[:1], LOADS, RELEASES)
    ]


def run_of(line: dict[str, Any]) -> SoakRun:
    """The run of a line."""
    return SoakRun(**{each.name: line[each.name] for each in fields(SoakRun)})


def next_run(lines: Sequence[dict[str, Any]], chosen: Sequence[SoakRun]) -> SoakRun:
    """The run that was made least often so far; of several the first."""
    made = Counter(map(run_of, lines))
    return min(chosen, key=lambda run: made[run])


def line_of(run: SoakRun, line: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
    """The line of a run. It names the cases that did not pass; `catalogue` identifies the set of all its cases."""
    cases = "\n".join(sorted(each["id"] for each in results["cases"]))
    catalogue = hashlib.sha256(cases.encode()).hexdigest()[:12]
    return {**asdict(run), **line, "catalogue": catalogue, **acceptance.summed(results, unremarkable=(_PASS,))}


def unexplained(line: dict[str, Any]) -> list[str]:
    """The sentences about a run that are a defect of ours until proved otherwise."""
    if broke := line.get("broke"):
        return [] if "explained" in line else [broke]
    found = acceptance.objections(line)
    return [each for each in found if not any(key in each for key in line.get("explained", {}))]


def differing(lines: Sequence[dict[str, Any]]) -> dict[tuple[str, str], Counter[str]]:
    """The outcomes of each experiment that did not always end in one way at a release, by how often each was seen.

    The key of a scenario has its seed, so only equal seeds are compared.
    """
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    whole = [line for line in lines if "broke" not in line]
    for line in whole:
        for row in line["scenarios"]:
            found[line["release"], row["key"]][_outcome(row)] += 1
    for (release, catalogue), count in Counter((each["release"], each["catalogue"]) for each in whole).items():
        named: dict[str, Counter[str]] = defaultdict(Counter)
        for line in whole:
            if (line["release"], line["catalogue"]) == (release, catalogue):
                for row in line["cases"]:
                    named[row["key"]][_outcome(row)] += 1
        for key, outcomes in named.items():
            outcomes[_PASS] += count - outcomes.total()
            # Runs of another catalogue are compared among themselves.
            found[release, key] = max(+outcomes, found[release, key], key=len)
    return {where: outcomes for where, outcomes in found.items() if len(outcomes) > 1}


def _outcome(row: dict[str, Any]) -> str:
    """A verdict with the known bugs that explain it."""
    bugs = sorted({bug or "unnamed" for bug in row["known_bugs"]})
    return f"{row['verdict']} ({', '.join(bugs)})" if bugs and row["verdict"] == Verdict.FAIL.name else row["verdict"]
