"""A dropped marker without a witness: by its log the coordinator completed before the partition had a leader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pytest

from tests.verification.test_signatures import MARKED, UNMARKED, S, name_of, told
from tests.verification.test_signatures import Story as Transaction
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.transaction_completions import sending_ns
from verification.evidence.transaction_log_file import LogHeader, LogRange, TransactionLog
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import NO_LEADER, UNSEEN, Intent, Operation, Sample
from verification.vocabulary.transaction_log import Entry, State

#: A look: seconds after the asking, who leads, and whether that leader answered.
Look = tuple[float, int, bool]
BEFORE: Look = (-0.3, 1, True)
#: All brokers were killed and come back; the one that is named first is remembered from before and does not answer.
STARTING: tuple[Look, ...] = ((0.3, UNSEEN, False), (1.2, 1, False), (5.0, UNSEEN, False))
AFTER: tuple[Look, ...] = ((9.0, 3, False), (9.6, 3, True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How a coordinator ended a transaction while all brokers came back; the defaults are the known bug.

    Times are seconds after the request; `later_s` is added to those of the log. A coordinator makes Complete at `sent_s`,
    when it begins to send markers, and writes it at `done_s`.
    """

    looks: tuple[Look, ...] = (BEFORE, *STARTING, *AFTER)
    prepared_s: float = 0.01
    sent_s: float = 6.9
    done_s: float = 8.5
    later_s: float = 0.0
    intent: str = "Commit"
    places: frozenset[str] = frozenset({"a-0", "b-0"})
    complete: bool = True
    transactional_id: str = "tx-0"
    has_log: bool = True
    release: str = "4.3.1"
    runtime: str = "local"


def _sample(look: Look, asked_ns: int) -> Sample:
    at_s, leader, answered = look
    stable = 0 if answered else -1
    return Sample(
        at_ns=asked_ns + int(at_s * S),
        topic="b",
        partition=0,
        leader=leader,
        high_watermark=stable,
        last_stable_offset=stable,
    )


def _log(story: Story, asked_ms: int) -> TransactionLog:
    """Empty, Ongoing, Prepare and Complete of one transactional id, as a coordinator writes them."""

    def entry(number: int, state: str, at_s: float, appended_s: float | None = None) -> Entry:
        idle = state == "Empty" or state.startswith("Complete")
        updated_ms, appended_ms = (
            asked_ms + round((each + story.later_s) * 1_000)
            for each in (at_s, at_s if appended_s is None else appended_s)
        )
        return Entry(
            partition=1,
            offset=7 + number,
            transactional_id=story.transactional_id,
            state=State(state),
            producer_id=1_000,
            epoch=0,
            places=frozenset() if idle else story.places,
            began_ms=-1 if state == "Empty" else asked_ms + round((story.later_s - 0.2) * 1_000),
            updated_ms=updated_ms,
            appended_ms=appended_ms,
        )

    entries = [
        entry(0, "Empty", -0.5),
        entry(1, "Ongoing", -0.2),
        entry(2, f"Prepare{story.intent}", story.prepared_s),
        entry(3, f"Complete{story.intent}", story.sent_s, story.done_s),
    ][: 4 if story.complete else 3]
    ranges = (LogRange(partition=1, start=7, end=7 + len(entries)),)
    # The records before these are there, of other ids.
    return TransactionLog(header=LogHeader(run="story", ranges=ranges), entries=tuple(reversed(entries)))


def _ended(evidence: RunEvidence) -> Operation:
    return next(each for each in evidence.history.of(Operation) if each.decided_ns is not None)


def completing(story: Story, root: Path) -> RunEvidence:
    """The evidence of a story: one partition of a committed transaction has no marker."""
    evidence = told(Transaction(leaderless=None, release=story.release), root)
    asked_ns = _ended(evidence).decided_ns or 0
    zero_ms = round(datetime.fromisoformat(evidence.history.wall_clock_anchor).timestamp() * 1_000)
    looks = [_sample(look, asked_ns) for look in story.looks]
    return replace(
        evidence,
        experiment=replace(evidence.experiment, runtime=story.runtime),
        history=replace(evidence.history, entries=(*evidence.history.entries, *looks)),
        transaction_log=_log(story, zero_ms + asked_ns // 1_000_000) if story.has_log else None,
    )


@pytest.mark.parametrize(
    "story",
    [
        Story(),
        Story(looks=(BEFORE, (0.3, UNSEEN, False), *AFTER)),
        Story(looks=(BEFORE, *STARTING)),
        Story(looks=(BEFORE, *STARTING, (8.502, 3, True))),
        Story(looks=(BEFORE, (60.0, NO_LEADER, False), (62.0, 2, True)), done_s=61.0),
        Story(prepared_s=0.0),
        Story(looks=(BEFORE, (0.1, 1, True), *STARTING, *AFTER)),
    ],
    ids=[
        "killed",
        "one look",
        "never seen again",
        "led right after",
        "leaderless, later than markers are",
        "same millisecond",
        "answered before the coordinator was back",
    ],
)
def test_who_is_done_before_anybody_led_has_dropped_the_marker(story: Story, tmp_path: Path) -> None:
    """Without a look at the metadata the coordinator's own log names the bug."""
    assert name_of(completing(story, tmp_path / "run")) == {Anomaly.HUNG_TRANSACTION: "KB-16"}


@pytest.mark.parametrize(
    "story",
    [
        Story(has_log=False),
        Story(looks=()),
        Story(looks=(BEFORE, *STARTING[:2], *AFTER)),
        Story(looks=(BEFORE, *STARTING, (8.4, 3, False), *AFTER)),
        Story(looks=(BEFORE, (0.1, 1, True), *STARTING, *AFTER), sent_s=0.02),
        Story(looks=(BEFORE, *STARTING, (8.0, 3, True), (8.3, UNSEEN, False), *AFTER)),
        Story(later_s=-0.02),
        Story(later_s=-20),
        Story(later_s=0.3),
        Story(places=frozenset({"a-0", "b-1"})),
        Story(complete=False),
        Story(intent="Abort"),
        Story(transactional_id="tx-1"),
        Story(release="4.2.1"),
        Story(runtime="elsewhere"),
    ],
    ids=[
        "no transaction log",
        "no looks",
        "paused",
        "named by the last look",
        "answered after the asking, to a coordinator that lives on",
        "answered while markers were sent",
        "decided just before the asking",
        "an earlier transaction",
        "a later transaction",
        "another partition",
        "not done",
        "decided otherwise",
        "another",
        "release",
        "another clock",
    ],
)
def test_a_completion_that_proves_nothing_gives_no_name(story: Story, tmp_path: Path) -> None:
    """A leader that may have been sent the marker, or a log that does not speak of this transaction and partition."""
    assert name_of(completing(story, tmp_path / "run")) == {Anomaly.HUNG_TRANSACTION: None}


def _hole(log: TransactionLog) -> TransactionLog:
    return replace(log, entries=tuple(each for each in log.entries if each.state is not State.PREPARE_COMMIT))


def _undecided(log: TransactionLog) -> TransactionLog:
    return _retold(log, State.PREPARE_COMMIT)


def _open_again(log: TransactionLog) -> TransactionLog:
    return _retold(log, State.COMPLETE_COMMIT)


def _retold(log: TransactionLog, state: State) -> TransactionLog:
    found = (replace(each, state=State.ONGOING) if each.state is state else each for each in log.entries)
    return replace(log, entries=tuple(found))


def _unavailable(log: TransactionLog) -> TransactionLog:
    return replace(log, header=replace(log.header, ranges=(), unavailable="not allowed"), entries=())


@pytest.mark.parametrize("change", [_hole, _undecided, _open_again, _unavailable])
def test_what_the_log_lacks_is_not_guessed(change: Callable[[TransactionLog], TransactionLog], tmp_path: Path) -> None:
    """Complete without the Prepare before it may belong to any transaction, and Prepare without Complete is not done."""
    evidence = completing(Story(), tmp_path / "run")
    assert evidence.transaction_log is not None
    assert sending_ns(evidence, _ended(evidence), UNMARKED) is not None
    evidence = replace(evidence, transaction_log=change(evidence.transaction_log))
    assert sending_ns(evidence, _ended(evidence), UNMARKED) is None


def test_a_completion_is_dated_on_the_runs_clock(tmp_path: Path) -> None:
    """From when markers began to be sent to the append, and the end of its millisecond; aborts as commits."""
    for intent, word in ((Intent.COMMIT, "Commit"), (Intent.ABORT, "Abort")):
        evidence = completing(Story(intent=word), tmp_path / word)
        ended = replace(_ended(evidence), intent=intent)
        asked_ms = (ended.decided_ns or 0) // 1_000_000
        for place in (MARKED, UNMARKED):
            assert sending_ns(evidence, ended, place) == (
                (asked_ms + 6_900) * 1_000_000,
                (asked_ms + 8_501) * 1_000_000,
            )
        assert sending_ns(evidence, replace(ended, decided_ns=None), UNMARKED) is None
