"""Chooses which repetitions of the nightly profile fit into a night, by their measured cost for each requirement.

Each experiment runs once, with the first seed. Further seeds are the same experiment at other moments, so only they are
left out, and only as many as the time asks for. The next one to be kept is always the one that adds most per second: a
requirement that `n` kept experiments decide already counts 1 / (n + 1). Ties are broken by the seed of the run, and nothing
depends on the machine. So the same seed keeps the same repetitions everywhere.
"""

from __future__ import annotations

import random
import tomllib
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from reports.model.run_record import Planned
from reports.model.wording import counted
from runner.config import Only, Profile, RunConfig

#: A night of 90 minutes on two processors, less an eighth: a whole run took 11 % longer than the sum of its scenarios.
NIGHT_S = 79 * 60.0
#: The choice must not depend on the machine, or a seed would not repeat a run.
LANES = 2
#: Judging, and its share of the start of the run: 810 processor seconds for the 28 scenarios and 327 cases of a quick run,
#: of which the scenarios themselves take all but some 3 s each.
SHARE_S = 3.0


def measured_s(scenario: str, client: str) -> float | None:
    """The measured seconds of a scenario in a lane, with its share of judging; None where it was not measured."""
    measured = _measured().get(client.partition("@")[0], {}).get(scenario)
    return None if measured is None else measured + SHARE_S


@cache
def _measured() -> dict[str, dict[str, float]]:
    return tomllib.loads(Path(__file__).with_name("seconds.toml").read_text(encoding="utf-8"))


def said_of(keys: Collection[str]) -> str:
    """The sentence about the repetitions that are left out; empty where all fit."""
    repetitions = counted(len(keys), "repetition")
    return (
        f"{repetitions} with another seed, so that the night ends within 90 minutes on two processors" if keys else ""
    )


def recorded(keys: Collection[str]) -> dict[str, str]:
    """The same for the record of the run, with their names and the command that runs one of them."""
    again = "To run one of them: tox -e conformance -- --profile nightly --seed SEED -k NAME"
    return {"left out": f"{said_of(keys)}: {', '.join(sorted(keys))}. {again}"} if keys else {}


def left_out(planned: Sequence[Planned], config: RunConfig) -> frozenset[str]:
    """The keys of the repetitions that do not fit into a night; none where the user narrowed the run or it is no night."""
    whole = config.only in (None, Only.SCENARIOS) and config.given is None and not (config.keyword or config.markers)
    if config.profile is not Profile.NIGHTLY or not whole:
        return frozenset()
    first = f"-{config.seed}"
    kept = [each for each in planned if each.control or each.key.endswith(first)]
    waiting = [each for each in planned if each not in kept]
    random.Random(config.seed).shuffle(waiting)
    decided = Counter(requirement for each in kept for requirement in each.requirements)
    left_s = NIGHT_S * LANES - sum(each.expected_s for each in kept)

    def worth(each: Planned) -> float:
        return sum(1 / (decided[requirement] + 1) for requirement in each.requirements) / each.expected_s

    while fitting := [each for each in waiting if each.expected_s <= left_s]:
        best = max(fitting, key=worth)
        waiting.remove(best)
        decided.update(best.requirements)
        left_s -= best.expected_s
    return frozenset(each.key for each in waiting)
