"""What controllers call UNCLEAN: lines as Kafka 4.4.0 and 4.3.1 write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.loading.alerts import Election, election_of, explained
from reports.model.timeline import FiredAlert, Timeline

_HEAD = "[QuorumController id=1] UNCLEAN partition change for {at} with topic ID DQoBEy8oSvat7r_j0cE0Aw: "
LAST = _HEAD + (
    "isr: [] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, "
    "lastKnownElr: [2] -> [], partitionEpoch: 2 -> 3 (ReplicationControlManager)"
)
ELIGIBLE = _HEAD + ("isr: [] -> [3], leader: -1 -> 3, leaderEpoch: 2 -> 3, elr: [1, 3] -> [1], partitionEpoch: 5 -> 6")
REAL = _HEAD + (
    "isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 2 -> 3, "
    "partitionEpoch: 5 -> 6"
)
#: The last leader is another broker than the one that is elected.
OTHER = _HEAD + "isr: [] -> [2], leader: -1 -> 2, leaderEpoch: 1 -> 2, lastKnownElr: [3] -> [], partitionEpoch: 2 -> 3"


@pytest.mark.parametrize(
    ("line", "election"),
    [
        (LAST, Election.LAST_LEADER),
        (ELIGIBLE, Election.ELIGIBLE),
        (REAL, Election.REAL),
        (OTHER, Election.REAL),
        ("[Broker id=2] Loaded 22 logs in 564ms (unclean log dirs = [data])", None),
    ],
)
def test_an_election_is_named_as_what_it_is(line: str, election: Election | None) -> None:
    """Only a replica that was neither the last leader nor eligible lacks records."""
    assert election_of(line.format(at="orders-0")) is election


def _explained(directory: Path, *lines: str) -> FiredAlert:
    directory.mkdir()
    for broker in (1, 2):
        text = "".join(f"[2026-11-29T10:05:17.01{broker}Z] INFO [a] {line}\n" for line in lines)
        (directory / f"broker-{broker}.log").write_text(text, encoding="utf-8")
    alert = FiredAlert(name="unclean", text="risen", place="broker 1", shows=("lost-write",), began_s=2.0, ended_s=None)
    timeline = Timeline(
        bin_s=1.0, end_s=60.0, bins=(), windows=(), phases=(), lags=(), alerts=(alert,), began_us=1_795_946_700_000_000
    )
    (shown,) = explained(timeline, directory).alerts or ()
    return shown


def test_the_alert_says_what_the_elections_were(tmp_path: Path) -> None:
    """Each partition counts once; an alert on elections of last leaders reveals nothing, one on real ones does."""
    last, another = LAST.format(at="orders-0"), LAST.format(at="bills-1")
    harmless = _explained(tmp_path / "a", last, another)
    assert (harmless.note, harmless.shows) == (f"2 partitions: {Election.LAST_LEADER}", ())
    real = _explained(tmp_path / "b", last, REAL.format(at="bills-1"))
    assert real.shows == ("lost-write",)
    assert f"1 partition: {Election.REAL}" in real.note
    assert _explained(tmp_path / "c").note == ""
