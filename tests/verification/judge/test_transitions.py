"""The records that coordinators may write: both judges pass legal histories, and find every kind of illegal one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.planted.histories import Planted
from verification.checks.transaction_log import illegal_transitions
from verification.checks.transaction_states import TransactionLogResult, judge
from verification.evidence.row_types import Row
from verification.evidence.transaction_log_file import LogHeader, LogRange, TransactionLog
from verification.reference import judge_rows
from verification.vocabulary.transaction_log import TOPIC_INDEX, Entry, State
from verification.vocabulary.violations import RawViolation

#: No deadline: the machine may be busy with brokers. No database: a failure prints how to repeat it.
QUICK = settings(
    max_examples=600, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
NEVER, ALWAYS = None, (0, 1 << 62)


def history(*steps: str, first: int = 0, name: str = "a") -> list[Entry]:
    """Entries from `State producer-id/epoch [places] [TV2] [L<leader epoch>] [gap]`; gap: the offset before is gone."""
    entries: list[Entry] = []
    offset = first
    for step in steps:
        state, *rest = step.split()
        identity = next((each for each in rest if "/" in each), "-1/-1").split("/")
        offset += "gap" in rest
        entries.append(
            Entry(
                partition=0,
                offset=offset,
                transactional_id=name,
                state=State(state),
                producer_id=int(identity[0]),
                epoch=int(identity[1]),
                places=frozenset(each for each in rest if "-" in each and "/" not in each),
                client_version=2 if "TV2" in rest else 0,
                leader_epoch=next((int(each[1:]) for each in rest if each[0] == "L"), 0),
                appended_ms=1_000,
            )
        )
        offset += 1
    return entries


def frame(entries: list[Entry], *, start: int = 0, new: bool = True, failing: tuple[int, int] | None = NEVER) -> Row:
    """The entries as a run's evidence."""
    stop = max((each.offset for each in entries), default=start - 1) + 1
    header = LogHeader(
        run="planted",
        ranges=(LogRange(partition=0, start=start, end=stop),),
        new_ids=tuple(sorted({each.transactional_id for each in entries})) if new else (),
    )
    log = TransactionLog(header=header, entries=tuple(entries))
    return {"run": "planted", "log": log, "failing_ms": failing, "undisturbed_ms": (), "looks_ms": {}, "answers": ()}


HONEST = Planted().finish().rows


def found(row: Row) -> list[int]:
    """The offsets of illegal records, on which both judges must agree."""
    walked = sorted(illegal_transitions([row]), key=offset_of)
    looked_up = sorted(judge_rows({**HONEST, "transaction_log": [row]}), key=offset_of)
    assert walked == looked_up
    assert {each.topic_index for each in walked} <= {TOPIC_INDEX}
    return [offset_of(each) for each in walked]


def offset_of(violation: RawViolation) -> int:
    """Its offset."""
    assert violation.offset is not None
    return violation.offset


LEGAL = [
    ["Empty 1/0"],
    ["Empty 1/0", "Ongoing 1/0 t-0", "Ongoing 1/0 t-0 t-1", "PrepareCommit 1/0 t-0 t-1", "CompleteCommit 1/0"],
    ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareAbort 1/1 t-0", "CompleteAbort 1/1", "Empty 1/2"],
    ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/1 t-0 TV2", "CompleteCommit 1/1 TV2", "Ongoing 1/1 t-0 TV2"],
    ["Empty 1/0", "PrepareAbort 1/1 TV2", "CompleteAbort 1/1 TV2", "PrepareAbort 1/2 TV2", "CompleteAbort 1/2 TV2"],
    ["Empty 1/0", "Empty 1/1", "Dead", "Empty 2/0", "Ongoing 2/0 t-0"],
    ["Empty 9/32766", "Empty 2/0", "Ongoing 2/0 t-0"],
    ["Empty 1/32766", "Ongoing 1/32766 t-0", "PrepareCommit 1/32767 t-0 TV2", "CompleteCommit 2/0 TV2"],
    # A fence of TV1 uses the last epoch up; an abort of TV2 then goes through with it, and gives the id a successor.
    [
        *("Empty 1/32766", "Ongoing 1/32766 t-0", "PrepareAbort 1/32767 t-0", "CompleteAbort 1/32767"),
        *("PrepareAbort 1/32767 TV2", "CompleteAbort 2/0 TV2", "Ongoing 2/0 t-0 TV2"),
    ],
    # 4.0.0 raises the epoch twice when it fences.
    ["Empty 1/0", "Ongoing 1/0 t-0 TV2", "PrepareAbort 1/2 t-0 TV2", "CompleteAbort 1/2 TV2"],
]
ILLEGAL = [
    (["Ongoing 1/0 t-0"], "begins with Empty"),
    (["Empty 1/0", "PrepareCommit 1/0"], "cannot follow Empty"),
    (["Empty 1/0", "PrepareAbort 1/0"], "cannot follow Empty"),
    (["Empty 1/0", "CompleteCommit 1/0"], "cannot follow Empty"),
    (["Empty 1/0", "PrepareEpochFence 1/1"], "cannot follow Empty"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "Empty 1/1"], "cannot follow Ongoing"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "CompleteCommit 1/0"], "cannot follow Ongoing"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "Dead"], "cannot follow Ongoing"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "CompleteAbort 1/0"], "cannot follow PrepareCommit"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "Ongoing 1/0 t-0"], "cannot follow PrepareCommit"),
    (["Empty 1/0", "Dead", "Ongoing 1/0 t-0"], "cannot follow Dead"),
    (["Empty 1/5", "Empty 1/4"], "epoch 4 after epoch 5"),
    (["Empty 1/5", "Empty 2/0", "Empty 1/6"], "was replaced"),
    (["Empty 1/5", "Dead", "Empty 2/0", "Dead", "Empty 1/6"], "was replaced"),
    (["Empty 1/5", "Dead", "Empty 1/0"], "epoch 0 after epoch 5"),
    (["Empty 1/5", "Ongoing 2/0 t-0"], "within a transaction"),
    (["Empty 1/0", "PrepareAbort 1/1 t-0 TV2"], "but open are []"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "Ongoing 1/0 t-1"], "left the open transaction"),
    (["Empty 1/0", "Ongoing 1/0 t-0 t-1", "PrepareCommit 1/0 t-0"], "is decided for"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "PrepareAbort 1/0 t-0", "CompleteAbort 1/0 t-0"], "that is over"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0 TV2"], "though each end in TV2 raises it"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "PrepareAbort 1/0 t-0 TV2"], "though each end in TV2 raises it"),
    (["Empty 1/0", "PrepareAbort 1/0 TV2"], "though each end in TV2 raises it"),
    (["Empty 1/32767", "Ongoing 1/32767 t-0", "PrepareCommit 1/32767 t-0 TV2"], "though each end in TV2 raises it"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "CompleteCommit 2/0"], "only TV2 replaces it"),
    (["Empty 1/0", "Ongoing 1/0 t-0", "PrepareAbort 1/1 t-0", "CompleteAbort 2/0 TV2"], "only TV2 replaces it"),
]


@pytest.mark.parametrize("steps", LEGAL)
def test_legal_histories_pass(steps: list[str]) -> None:
    """A correct coordinator's records are legal: TV1, TV2, expiry, rotation of an exhausted producer id."""
    judgement = judge(history(*steps))
    assert judgement == TransactionLogResult(histories=1, entries=len(steps), illegal=(), compacted=())
    assert found(frame(history(*steps))) == []


@pytest.mark.parametrize(("steps", "why"), ILLEGAL)
def test_illegal_steps_are_found(steps: list[str], why: str) -> None:
    """Both judges find one wrong step at the end of a history, at its place, with its reason."""
    (illegal,) = judge(history(*steps)).illegal
    assert why in illegal.why
    assert f"@{len(steps) - 1}: " in str(illegal)
    assert found(frame(history(*steps))) == [len(steps) - 1]


def test_a_transaction_keeps_its_start() -> None:
    """A start that moves while the transaction is open would move its timeout."""
    entries = history("Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0")
    moved = [*entries[:2], replace(entries[2], began_ms=5)]
    assert ["began" in each.why for each in judge(moved).illegal] == [True]
    assert found(frame(moved)) == [2]


def test_histories_are_separate() -> None:
    """Interleaved ids do not affect each other, nor does the order of entries."""
    one, other = history("Empty 1/0", name="a"), history("Empty 2/0", "Ongoing 2/0 t-0", first=1, name="b")
    judgement = judge([*reversed(other), *one])
    assert (judgement.histories, judgement.illegal) == (2, ())
    assert found(frame([*reversed(other), *one])) == []


#: Legal, though a step is not visible: (the history, whether its beginning is known).
COMPACTED = [
    (["CompleteCommit 1/4 gap"], True),
    (["CompleteCommit 1/4 gap", "Empty 1/5", "Ongoing 1/5 t-0"], True),
    (["Empty 1/0", "CompleteCommit 1/0 gap", "Ongoing 1/0 t-0"], True),
    (["Empty 1/0", "PrepareAbort 2/0 t-0 gap", "CompleteAbort 2/0"], False),
    (["Dead gap"], True),
    (["Empty 1/0", "Empty 2/0 gap"], True),
    (["PrepareCommit 1/0 t-0", "CompleteCommit 1/0"], False),
]


@pytest.mark.parametrize(("steps", "new"), COMPACTED)
def test_what_compaction_took_is_not_held_against_a_log(steps: list[str], *, new: bool) -> None:
    """If an offset is missing, or a history began before the run, an invisible step may have happened."""
    assert found(frame(history(*steps), new=new)) == []


#: Illegal whatever steps are missing: an epoch that goes back, a producer id that returns, partitions after the end.
UNDER_A_HOLE = [
    ["Empty 1/5", "Ongoing 1/4 t-0 gap"],
    ["Empty 1/5", "Ongoing 2/0 t-0 gap", "PrepareAbort 1/6 t-0 gap"],
    ["Empty 1/0", "CompleteCommit 1/0 t-0 gap"],
]


@pytest.mark.parametrize("steps", UNDER_A_HOLE)
def test_what_no_missing_step_explains_is_found(steps: list[str]) -> None:
    """A hole excuses the step across it, and nothing else."""
    assert found(frame(history(*steps))) == [history(*steps)[-1].offset]


def test_the_partition_that_was_compacted_is_named() -> None:
    """Rules that hold across missing steps are judged, and the judgement says where steps may be missing."""
    judgement = judge(history("CompleteCommit 1/4", first=9) + history("Ongoing 1/3 t-0", first=12))
    assert judgement.compacted == (0,)
    assert ["epoch 3 after epoch 4" in each.why for each in judgement.illegal] == [True]


def test_a_run_is_judged_from_where_it_began() -> None:
    """A log that is read from the middle on has no hole there, and new ids begin with Empty there too."""
    entries = history("Empty 1/0", "Ongoing 1/0 t-0", "Empty 1/1", first=500)
    assert found(frame(entries, start=500)) == [502]
    assert found(frame(entries[1:], start=501)) == [501, 502]
    assert found(frame(entries[1:], start=501, new=False)) == [502]
    assert judge(entries, starts={0: 500}).compacted == ()


#: Legal when an append may fail after it was done: the record is there, and the next step follows the one before it.
FAILED_APPENDS = [
    ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "PrepareCommit 1/0 t-0", "CompleteCommit 1/0"],
    ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "PrepareAbort 1/1 t-0", "CompleteAbort 1/1"],
    ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "CompleteCommit 1/0", "CompleteCommit 1/0"],
    ["Empty 1/0", "Ongoing 1/0 t-0", "Ongoing 1/0 t-0 t-1", "PrepareAbort 1/1 t-0", "CompleteAbort 1/1"],
    ["Empty 1/0", "Empty 1/1", "Ongoing 1/0 t-0"],
    ["Empty 1/32766", "Empty 2/0", "Ongoing 1/32766 t-0"],
    ["Empty 1/0", "Dead", "Ongoing 1/0 t-0"],
]


@pytest.mark.parametrize("steps", FAILED_APPENDS)
def test_a_failed_append_is_forgiven_where_it_can_fail(steps: list[str]) -> None:
    """Where appends may fail, the next step may follow the record before.

    Elsewhere, or after a change of leader, it may not.
    """
    assert found(frame(history(*steps), failing=ALWAYS)) == []
    assert found(frame(history(*steps), failing=NEVER)) != []
    assert found(frame(history(*steps), failing=(1_001, 2_000))) != []
    changed = [replace(each, leader_epoch=int(number >= 2)) for number, each in enumerate(history(*steps))]
    loaded = [replace(each, leader_epoch=number) for number, each in enumerate(history(*steps))]
    assert found(frame(loaded, failing=ALWAYS)) != []
    assert set(found(frame(changed, failing=ALWAYS))) <= set(found(frame(loaded, failing=ALWAYS)))


@pytest.mark.parametrize("new", [True, False])
def test_the_append_after_a_hole_may_have_failed_too(*, new: bool) -> None:
    """The coordinator then goes back to a state that is not visible: with its lower epoch, and from any step."""
    hole = "gap" if new else ""
    for steps in (
        [f"PrepareCommit 1/4 t-0 {hole}", "PrepareCommit 1/4 t-0", "CompleteCommit 1/4"],
        [f"Empty 1/5 {hole}", "Ongoing 1/4 t-0", "PrepareAbort 1/5 t-0", "CompleteAbort 1/5"],
    ):
        entries = history(*steps)
        assert found(frame(entries, new=new, failing=ALWAYS)) == []
        assert found(frame(entries, new=new, failing=NEVER)) == [entries[1].offset]
        loaded = [replace(each, leader_epoch=number) for number, each in enumerate(entries)]
        assert found(frame(loaded, new=new, failing=ALWAYS)) == [entries[1].offset]
    forgotten = history(f"Empty 1/5 {hole}", "Ongoing 1/5 t-0", "CompleteCommit 1/5")
    assert found(frame(forgotten, new=new, failing=(2_000, 3_000))) == [forgotten[2].offset]


@pytest.mark.parametrize(
    "steps",
    [
        ["Empty 1/0", "Ongoing 1/0 t-0", "CompleteCommit 1/0"],
        ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "CompleteAbort 1/0"],
        ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "CompleteCommit 1/0", "PrepareAbort 1/0 t-0"],
        ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "Empty 1/1"],
        ["Empty 1/0", "Ongoing 1/0 t-0", "PrepareCommit 1/0 t-0", "CompleteCommit 1/0 t-0"],
        ["Empty 1/4", "Ongoing 1/4 t-0", "PrepareCommit 1/4 t-0", "CompleteCommit 1/4", "Ongoing 1/3 t-0"],
    ],
)
def test_what_no_failed_append_explains_is_found(steps: list[str]) -> None:
    """Even where appends may fail, a step must be one that the state machine allows from some state."""
    assert found(frame(history(*steps), failing=ALWAYS)) == [len(steps) - 1]


STEPS = st.tuples(
    st.sampled_from([str(state) for state in State]),
    st.sampled_from(["1/0", "1/0", "1/1", "2/0"]),
    st.sampled_from(["", "t-0", "t-0 t-1"]),
    st.sampled_from(["", "", "", "TV2", "gap"]),
)


def test_both_judges_find_the_same() -> None:
    """On every generated history, legal or not, the walk and the look-up find the same records; there are many of both."""
    convicted: list[bool] = []

    @QUICK
    @given(
        st.lists(STEPS, min_size=1, max_size=9),
        st.lists(st.integers(0, 9), max_size=2),
        st.booleans(),
        st.sampled_from([NEVER, ALWAYS]),
    )
    def judged(
        steps: Iterable[tuple[str, ...]], changes: list[int], new: bool, failing: tuple[int, int] | None
    ) -> None:
        entries = history(*(" ".join(each) for each in steps))
        moved = [
            replace(each, leader_epoch=sum(change <= number for change in changes))
            for number, each in enumerate(entries)
        ]
        convicted.append(bool(found(frame(moved, new=new, failing=failing))))

    judged()
    assert len(convicted) >= 500
    assert min(convicted.count(True), convicted.count(False)) >= 50
