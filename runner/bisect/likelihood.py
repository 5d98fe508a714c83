"""How often a build must pass before it counts as good, when a bad one fails only sometimes.

At the bad end the case failed `failed` times in `tried` runs. Its rate of failure is not known better than that, so it has
the distribution Beta(failed + 1, tried - failed + 1): Bayes' rule with every rate equally likely before the first run. A
build with that rate passes the next run with likelihood (tried - failed + 1) / (tried + 2), the rule of succession. Each
pass makes the next one likelier, and the product over `passes` runs is the likelihood that a bad build passes them all.

For 95 % a build must pass 3 times in a row after 3 failures in 3 runs, and 19 times after 1 failure in 5 runs.
"""

from __future__ import annotations

#: A confidence that needs more runs than this is out of reach of any night.
PASSES_MAX = 1_000


def passes_unseen(passes: int, *, failed: int, tried: int) -> float:
    """The likelihood that a build as bad as the bad end passes so many runs in a row."""
    likelihood = 1.0
    for number in range(passes):
        likelihood *= (tried - failed + 1 + number) / (tried + 2 + number)
    return likelihood


def passes_needed(confidence: float, *, failed: int, tried: int) -> int:
    """The runs in a row that a good build must pass; at most PASSES_MAX."""
    for passes in range(1, PASSES_MAX):
        if passes_unseen(passes, failed=failed, tried=tried) <= 1 - confidence:
            return passes
    return PASSES_MAX
