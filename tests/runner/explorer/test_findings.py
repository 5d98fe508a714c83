"""A wrong answer is found, shrunk, named, kept, and written to the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.explorer import findings_page
from runner.explorer.broker import Broker, WalkConnections
from runner.explorer.describe import lines
from runner.explorer.execute import perform
from runner.explorer.finding import Nature
from runner.explorer.known_findings import NAMED, name_of
from runner.explorer.moves import Epoch, Send
from runner.explorer.store import opened, read_plan
from runner.explorer.walk import Deviation, ModelBroker, Walk, step
from tests.support.explorer_testbed import (
    FOUND,
    FRESH,
    FakeTestbed,
    aborted_data_shown,
    due_batch_refused,
    explored,
    joining,
    moves,
    rules,
    stale_end_accepted,
    stale_init_aborts,
)
from verification.specification.state import AllowedOutcome, ModelRequest, ModelState, RequestKind, TransactionPhase
from wire.client import Client
from wire.deadline import Deadline
from wire.transaction_versions import TransactionVersion
from wire.values import CoordinatorType, TopicPartition

TV1, TV2 = TransactionVersion.TV1, TransactionVersion.TV2
Said = dict[str, Any]
#: A late batch of the first transaction in the middle of the second, and the batch that is due then.
LATE = moves(
    (RequestKind.INIT, FRESH),
    (RequestKind.PRODUCE, {}),
    (RequestKind.END, {}),
    (RequestKind.PRODUCE, {}),
    (RequestKind.PRODUCE, {"send": Send.REPLAY, "of": 1}),
    (RequestKind.PRODUCE, {}),
)


def test_a_defect_is_named_only_on_the_releases_that_have_it() -> None:
    """The effect of a late batch on the open transaction has a name on 4.0; on later releases it is a new finding."""
    old, new = rules(TV2, "4.0.2"), rules(TV2, "4.3.1")
    walk = perform(LATE, old, ModelBroker(old, due_batch_refused))
    assert (walk.finding, walk.known) == (None, ["EX-06"])
    assert lines(walk)[4].startswith(
        "A: Produce(epoch 0, partition 0, sequence 0, 1 records), the bytes of 2, on another"
    )
    walk = perform(LATE, new, ModelBroker(new, due_batch_refused))
    assert walk.finding is not None
    assert (walk.finding.nature, walk.known) == (Nature.HARMED, [])
    assert name_of(walk.finding.signature, "4.3.1") == ""


def test_a_transaction_that_cannot_end_is_told_by_what_it_took() -> None:
    """On 3.9 a batch of a future epoch joins, and the transaction that hangs then is named after it."""
    old = rules(TV1, "3.9.2")
    signature = "TV1: after EndTxn(current epoch, commit) the coordinator says PrepareCommit"
    assert name_of(f"{signature} after EX-04", "3.9.2") == "EX-04"
    assert name_of(f"{signature} after EX-04", "4.3.1") == name_of(signature, "3.9.2") == ""
    future = moves(
        (RequestKind.INIT, FRESH),
        (RequestKind.ADD, {}),
        (RequestKind.PRODUCE, {}),
        (RequestKind.PRODUCE, {"epoch": Epoch.FUTURE}),
    )
    joins = perform(future, old, ModelBroker(old, joining))
    assert (joins.known, joins.state.tainted) == (["EX-04"], "EX-04")


def test_a_planted_answer_is_found_and_shrunk_to_its_script(tmp_path: Path) -> None:
    """An accepted stale EndTxn is found, and shrunk to the four requests that it needs."""
    store = explored(FakeTestbed(lambda _: stale_end_accepted), tmp_path)
    found = next(each for each in store.found.values() if "EndTxn(stale epoch" in each.signature)
    assert (found.shown, found.tries, found.name) == (10, 10, "")
    kinds = [each["kind"] for each in found.moves]
    # Two initialisations make an epoch stale, and a partition opens the transaction.
    assert sorted(kinds) == sorted([RequestKind.INIT, RequestKind.INIT, found.moves[2]["kind"], RequestKind.END])
    assert found.moves[2]["kind"] in (RequestKind.ADD, RequestKind.ADD_OFFSETS)
    assert found.script[4].startswith("an answer outside the allowed set: observed NONE (0)")
    assert found.signature in (tmp_path / "findings.md").read_text(encoding="utf-8")
    again = read_plan(next((tmp_path / "findings").glob(f"*{found.slug}.json")))
    walk = perform(again.moves, rules(TV1), ModelBroker(rules(TV1), stale_end_accepted))
    assert found.signature in walk.signatures


def test_visible_data_that_the_model_forbids_is_found(tmp_path: Path) -> None:
    """Aborted data that a reader under read_committed gets is found by the look at the end, without a wrong answer."""
    store = explored(FakeTestbed(lambda _: aborted_data_shown), tmp_path)
    assert {each.nature for each in store.found.values()} - {"an answer that is not lawful"} == {Nature.VISIBLE}
    found = next(each for each in store.found.values() if "EndTxn" in each.signature)
    assert found.signature.startswith(
        "TV1 CompleteAbort: look -> differs in committed after EndTxn(current epoch, abort)"
    )
    kinds = [each["kind"] for each in found.moves]
    assert kinds[0] == RequestKind.INIT
    assert kinds[-1] == RequestKind.LOOK
    assert RequestKind.PRODUCE in kinds
    assert len(kinds) <= 5


def test_harm_done_without_a_word_is_found_at_the_owner(tmp_path: Path) -> None:
    """When a zombie's request is refused and yet raises the epoch, the owner's next request shows it."""
    store = explored(FakeTestbed(lambda _: stale_init_aborts), tmp_path)
    assert Nature.HARMED in {each.nature for each in store.found.values()}


def test_a_signature_has_no_numbers_but_codes_and_one_defect_has_few(tmp_path: Path) -> None:
    """Walks of different seeds that show one defect share its signature."""
    store = explored(FakeTestbed(lambda _: stale_end_accepted), tmp_path)
    new = {signature: count for signature, count in store.seen.items() if signature not in NAMED}
    assert len(new) <= 2  # a commit and an abort
    assert max(new.values()) > 1
    assert not any(re.search(r"[0-9]", re.sub(r"\([0-9]+\)|TV[12]", "", signature)) for signature in new)


def test_what_does_not_appear_again_is_flaky(tmp_path: Path) -> None:
    """A wrong answer that no replay shows is counted and is no finding."""
    store = explored(FakeTestbed(_only_the_first()), tmp_path)
    assert list(store.flaky) == [each for each in store.seen if each not in NAMED]
    assert len(store.flaky) == 1
    assert not [each for each in store.found if each not in NAMED]


def _only_the_first() -> Callable[[int], Deviation | None]:
    told: list[int] = []

    def deviation(state: ModelState, request: ModelRequest, outcome: AllowedOutcome) -> AllowedOutcome | None:
        wrong = None if told else aborted_data_shown(state, request, outcome)
        if wrong is not None and wrong.answer != outcome.answer:
            told.append(1)
            return wrong
        return None

    return lambda _: deviation


def test_an_exploration_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """Seeds that are done stay done after an interruption, and each seed is walked once."""

    def interrupt(walk: int) -> None:
        if walk == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explored(FakeTestbed(lambda _: None, before=interrupt, generations=(TV2,)), tmp_path, range(1, 31))
    assert opened(tmp_path, "4.3.1").done == set(range(1, 7))
    testbed = FakeTestbed(lambda _: None, generations=(TV2,))
    assert explored(testbed, tmp_path, range(1, 31)).walks == 30
    assert opened(tmp_path, "4.3.1").done == set(range(1, 31))
    assert testbed.walks == 24


def test_the_page_keeps_other_entries_and_replaces_its_own(tmp_path: Path) -> None:
    """Release and signature identify an entry; entries of other releases stay."""
    path = tmp_path / "findings.md"
    for each in (FOUND, replace(FOUND, release="3.9.2"), replace(FOUND, shown=3)):
        findings_page.write(path, each, "again")
    text = path.read_text(encoding="utf-8")
    assert text.count("<!-- finding:") == 2
    assert text.count("version 0123abcd") == 2
    assert "shown by 3 of 10" in text
    assert "2. two" in text


def test_the_page_says_how_long_each_release_was_explored(tmp_path: Path) -> None:
    """Each exploration has one row that follows its state; other rows and earlier entries stay."""
    path = tmp_path / "findings.md"
    path.write_text(
        f"{findings_page.HEAD}\n<!-- finding: 4.3.1 x -->\n### x\n<!-- end of finding -->\n", encoding="utf-8"
    )
    testbed = FakeTestbed(lambda _: None)
    for seeds in (range(1, 6), range(9, 10)):
        store = explored(testbed, tmp_path, seeds)
    other = replace(store, release="3.9.2", begun="2026-01-01 00:00:00")
    for each in (other, replace(other, release="3.10.0"), other):
        findings_page.explored(path, each)
    text = path.read_text(encoding="utf-8")
    lines_of = [each for each in text.splitlines() if re.match(r"\| [0-9]", each)]
    row = f"| {store.begun} | {store.model} | 6 | 0 | {store.requests} | {store.seconds:.0f} | 1..5, 9 |"
    assert lines_of[0] == f"| 4.3.1 {row}"
    assert [each.split()[1] for each in lines_of] == ["4.3.1", "3.10.0", "3.9.2"]
    assert text.startswith(findings_page.HEAD)
    assert text.endswith("<!-- finding: 4.3.1 x -->\n### x\n<!-- end of finding -->\n")
    assert text.count("Each release with the time") == 1


#: The requests of a look, with the expected answers where both partitions are empty.
ANSWERS: dict[str, Said] = {
    "DescribeTransactions": {
        "TransactionStates": [{"ErrorCode": 0, "TransactionState": "Empty", "ProducerEpoch": 0, "Topics": []}]
    },
    "ListOffsets": {
        "Topics": [
            {
                "Name": "x",
                "Partitions": [{"PartitionIndex": index, "ErrorCode": 0, "Offset": 0} for index in (0, 1)],
            }
        ]
    },
    "OffsetFetch": {
        "ErrorCode": 0,
        "Topics": [
            {
                "Name": "x",
                "Partitions": [{"PartitionIndex": 0, "ErrorCode": 0, "CommittedOffset": -1, "Metadata": ""}],
            }
        ],
    },
}


class AnsweredClient(Client):
    """A client whose calls are answered from a table, in order; the last answer stays. Broker 1 leads everything."""

    def __init__(self, says: dict[str, list[Said]]) -> None:
        # The client gives up before its pause of half a second, with half a second left for a machine under load.
        self.says, self.timeout_s, self.attempt_s = says, 0.85, 0.85

    def find_coordinator(self, key: str, kind: CoordinatorType, deadline: Deadline | None = None) -> int:
        return 1

    def leaders(
        self, partitions: Iterable[TopicPartition], deadline: Deadline | None = None
    ) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 1)

    def connection(self, broker: int | None = None, deadline: Deadline | None = None) -> Any:
        return SimpleNamespace(version_for=lambda *_, at_most: at_most)

    def call(self, api: str, body: object, *_: object, **__: object) -> Said:
        several = self.says.get(api) or [ANSWERS[api]]
        return several.pop(0) if len(several) > 1 else several[0]


def looked(says: dict[str, list[Said]]) -> Walk:
    """A walk of an initialisation and a look, which is answered like this."""
    connections = WalkConnections(instances=[], other=None)  # type: ignore[arg-type]
    broker = Broker(AnsweredClient(says), connections, rules(TV1), name="x", topic="x", timeout_ms=60_000)
    walk, answers = Walk(rules(TV1)), ModelBroker(rules(TV1))
    start, look = moves((RequestKind.INIT, FRESH), (RequestKind.LOOK, {}))
    step(walk, start, answers)
    step(walk, look, broker)
    return walk


def test_a_refused_look_keeps_its_code() -> None:
    """UNKNOWN_SERVER_ERROR to a part of a look is the finding, with its request; no code counts as a missing answer."""
    offset: Said = {
        "ErrorCode": 0,
        "Topics": [{"Name": "x", "Partitions": [{"PartitionIndex": 0, "ErrorCode": -1, "CommittedOffset": -1}]}],
    }
    ends: Said = {"Topics": [{"Name": "x", "Partitions": [{"PartitionIndex": 0, "ErrorCode": -1, "Offset": -1}]}]}
    state: Said = {"TransactionStates": [{"ErrorCode": -1, "Topics": []}]}
    assert looked({}).finding is None
    for says, api in (
        ({"OffsetFetch": [offset]}, "OffsetFetch"),
        ({"ListOffsets": [ends]}, "ListOffsets"),
        ({"DescribeTransactions": [state]}, "DescribeTransactions"),
    ):
        finding = looked(says).finding
        assert finding is not None
        assert finding.nature is Nature.SERVER
        assert finding.signature == (
            f"TV1 Empty: look -> UNKNOWN_SERVER_ERROR (-1) to {api} after InitProducerId(fresh) -> NONE (0)"
        )
    refused: Said = {"TransactionStates": [{"ErrorCode": 53, "Topics": []}]}
    finding = looked({"DescribeTransactions": [refused]}).finding
    assert finding is not None
    assert (finding.nature, finding.observed) == (
        Nature.OUTSIDE,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53) to DescribeTransactions",
    )


def test_a_pending_offset_is_seen() -> None:
    """UNSTABLE_OFFSET_COMMIT where only stable offsets were asked for says that one is pending, and is no refusal."""
    pending: Said = {"ErrorCode": 0, "Topics": [{"Name": "x", "Partitions": [{"PartitionIndex": 0, "ErrorCode": 88}]}]}
    finding = looked({"OffsetFetch": [ANSWERS["OffsetFetch"], pending]}).finding
    assert finding is not None
    assert "look -> differs in offset pending" in finding.signature


def test_a_look_that_is_refused_for_too_long_keeps_its_code() -> None:
    """The client asks again until its deadline; the last code is then the answer, and not the passed deadline."""
    loading: Said = {"TransactionStates": [{"ErrorCode": 14, "Topics": []}]}
    finding = looked({"DescribeTransactions": [loading]}).finding
    assert finding is not None
    assert finding.observed == "COORDINATOR_LOAD_IN_PROGRESS (14) to DescribeTransactions"


def test_a_look_that_comes_too_early_is_made_again() -> None:
    """A look is repeated while the coordinator loads."""
    loading: Said = {"TransactionStates": [{"ErrorCode": 14, "Topics": []}]}
    assert looked({"DescribeTransactions": [loading, ANSWERS["DescribeTransactions"]]}).finding is None


def test_what_a_future_epoch_did_does_not_name_what_follows() -> None:
    """On 3.9 only a transaction that stays in Prepare is EX-04's; other findings behind it are new, and it ends."""
    for answer in ("UNKNOWN_SERVER_ERROR (-1)", "NONE (0) with another offset"):
        assert name_of(f"TV1 Ongoing: Produce(current epoch, next) -> {answer} after EX-04", "3.9.2") == ""
    assert (
        name_of("TV1 Empty: look -> differs in log after InitProducerId(fresh) -> NONE (0) after EX-04", "3.9.2") == ""
    )
    old = rules(TV1, "3.9.2")
    ended = moves(
        (RequestKind.INIT, FRESH),
        (RequestKind.ADD, {}),
        (RequestKind.PRODUCE, {}),
        (RequestKind.PRODUCE, {"epoch": Epoch.FUTURE}),
        (RequestKind.INIT, FRESH | {"who": 1}),
    )
    assert perform(ended[:4], old, ModelBroker(old, joining)).state.tainted == "EX-04"
    walk = perform(ended, old, ModelBroker(old, joining))
    assert (walk.finding, walk.state.phase, walk.state.tainted) == (None, TransactionPhase.EMPTY, "")
