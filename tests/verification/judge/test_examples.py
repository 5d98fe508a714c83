"""Examples of a finding begin with its victims, however many others are before them in the log."""

from __future__ import annotations

from random import Random

from tests.support.planted.busy import A0, busy
from verification.checks.examples import examples
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Intent
from verification.vocabulary.verdict import EXAMPLES_MAX
from verification.vocabulary.violations import RawViolation


def late() -> list[RawViolation]:
    """Transactions that the next marker decided: more than are shown as acknowledged, then one hidden, then one aborted."""
    planted = busy("victims")
    client = planted.client("tx-9")
    for _ in range(EXAMPLES_MAX + 3):
        planted.transaction(client, (A0,), decision=None)
        planted.transaction(client, (A0,))
    _, hidden = planted.transaction(client, (A0,), decision=None)
    planted.transaction(client, (A0,))
    planted.transaction(client, (A0,), decision=None)
    planted.transaction(client, (A0,), intent=Intent.ABORT, decision="abort")
    plant = planted.finish()
    for reader in ("committed", "observations"):
        plant.drop(reader, *A0, hidden[0]["offset"])
    return [each for each in judge_rows(plant.rows) if each.anomaly is Anomaly.DECIDED_LATE]


def test_victims_are_the_first_examples_and_are_never_cut_off() -> None:
    """The one that was aborted after its commit was acknowledged, the one that no reader received, then the rest."""
    found = late()
    assert len(found) == EXAMPLES_MAX + 5
    shown = examples(found)
    assert [each.harm for each in shown] == [2, 1, *[0] * (EXAMPLES_MAX - 2)]
    last = sorted(each.offset or 0 for each in found)[-2:]
    assert [each.offset for each in shown[:2]] == last[::-1]


def test_the_order_of_violations_does_not_matter() -> None:
    """The same violations in another order give the same examples."""
    found = late()
    shown = examples(found)
    Random(7).shuffle(found)
    assert examples(found) == shown
