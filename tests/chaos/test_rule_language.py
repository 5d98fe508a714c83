"""Rules as a user writes them: lines and TOML tables, their meaning, and the sentence for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.frames import Cut, Delay, Direction, Drop, Duplicate, FrameAction, FrameFields, Hold, Respond
from chaos.frames.proxy.rule_filter import RuleFilter
from chaos.frames.proxy.rule_language import RuleError, load, parse
from tests.support.wire_definitions import definitions
from wire.values import TopicPartition


def filter_of(text: str) -> RuleFilter:
    """The selector of a line."""
    return parse(text, definitions())[0]


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("hold", Hold()),
        ("delay 2.5s", Delay(delay_s=2.5)),
        ("delay 3", Delay(delay_s=3)),
        ("drop", Drop()),
        ("drop alone", Drop(alone=True)),
        ("duplicate", Duplicate()),
        ("duplicate times 3 after 0.5s", Duplicate(times=3, after_s=0.5)),
        ("duplicate after 1", Duplicate(after_s=1)),
        ("answer COORDINATOR_LOAD_IN_PROGRESS", Respond(error_code=14)),
        ("answer -1", Respond(error_code=-1)),
        ("cut", Cut()),
    ],
)
def test_an_action_is_read(words: str, action: FrameAction) -> None:
    """Every action, with and without its arguments."""
    assert parse(f"{words} request EndTxn", definitions())[1] == action


@pytest.mark.parametrize(
    ("count", "skip", "meets"), [("", 0, None), ("#1", 0, 1), ("#2", 1, 1), ("#2-4", 1, 3), ("#3-", 2, None)]
)
def test_a_count_is_read(count: str, skip: int, meets: int | None) -> None:
    """One frame, some, or all from one on; `any` is no selection by API."""
    frames = filter_of(f"drop response any {count}")
    assert (frames.api, frames.direction, frames.skip, frames.count) == (None, Direction.RESPONSE, skip, meets)


@pytest.mark.parametrize(
    ("criterion", "fits"),
    [
        ("", True),
        ("of transactional id billing-*", True),
        ("of transactional id billing", False),
        ("transactional id 'billing-[0-9]' and group readers", True),
        ("group writers", False),
        ("client id app?", True),
        ("client id app", False),
        ("producer id 17 epoch 2", True),
        ("epoch 3", False),
        ("topic orders", True),
        ("topic orders partition 1", True),
        ("partition 2", True),
        ("topic orders partition 2", False),
    ],
)
def test_all_criteria_must_hold(criterion: str, fits: bool) -> None:
    """Patterns as in a shell; topic and partition hold for the same place."""
    fields = FrameFields(
        transactional_ids=frozenset({"billing-7"}),
        groups=frozenset({"readers"}),
        client_ids=frozenset({"app1"}),
        producer_ids=frozenset({17}),
        producer_epochs=frozenset({2}),
        partitions=frozenset({TopicPartition("orders", 1), TopicPartition("refunds", 2)}),
    )
    frames = filter_of(f"drop request Produce {criterion}")
    assert frames.needs_fields is bool(criterion)
    assert frames.fits(fields) is fits
    assert frames.fits(FrameFields()) is not bool(criterion)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the end of the rule is not an action; say hold, delay, drop, duplicate, answer or cut"),
        ("reorder request EndTxn", "'reorder' is not an action; say hold, delay, drop, duplicate, answer or cut"),
        ("drop respons EndTxn", "'respons' is not a direction; say request or response"),
        ("drop request EndTx", "'EndTx' is not an API that the message definitions know; say for instance EndTxn"),
        ("drop request EndTxn #0", "'#0' is not a count; say #2, #2-4 or #2-, where the first frame is #1"),
        ("drop request EndTxn #3-2", "'#3-2' is not a count; say #2, #2-4 or #2-, where the first frame is #1"),
        (
            "drop request EndTxn of id x",
            "'id' is not a field (a count is #2, #2-4 or #2-); say transactional id, client id, group, topic, "
            "partition, producer id or epoch",
        ),
        ("drop request EndTxn of group", "a value must follow 'group'"),
        ("drop request EndTxn group a group b", "'group' is given twice"),
        ("drop request EndTxn epoch two", "'two' is not a number for epoch"),
        ("delay request EndTxn", "'request' is not a number for the seconds of a delay"),
        ("delay 0 request EndTxn", "a delay of 0 s changes nothing"),
        ("duplicate times 0 request EndTxn", "0 copies after 0 s are impossible"),
        ("duplicate response EndTxn", "a response cannot be duplicated: no client waits for a second one"),
        (
            "answer NOT_CORDINATOR request EndTxn",
            "'NOT_CORDINATOR' is not an error code; give a number or a name such as NOT_COORDINATOR or NOT_CONTROLLER",
        ),
        ("drop request 'EndTxn", "No closing quotation"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_allowed_words(text: str, problem: str) -> None:
    """The sentence begins with the rule."""
    with pytest.raises(RuleError) as caught:
        parse(text, definitions())
    assert str(caught.value) == f"the rule '{text}' cannot be read: {problem}"


def test_a_table_has_the_fields_of_a_line(tmp_path: Path) -> None:
    """A rules file gives the same rules, in order."""
    path = tmp_path / "rules.toml"
    path.write_text(
        """
        [[rule]]
        action = "duplicate"
        times = 2
        after = 0.5
        direction = "request"
        api = "Produce"
        count = "1-3"
        transactional_id = "billing-*"
        partition = 0

        [[rule]]
        action = "drop"
        alone = true
        direction = "response"
        api = "EndTxn"
        count = 2
        """
    )
    lines = (
        "duplicate times 2 after 0.5 request Produce #1-3 of transactional id billing-* partition 0",
        "drop alone response EndTxn #2",
    )
    for (frames, action), line in zip(load(path, definitions()), lines, strict=True):
        expected, same = parse(line, definitions())
        assert action == same
        fields = set(RuleFilter.__dataclass_fields__) - {"text"}
        assert {name: getattr(frames, name) for name in fields} == {name: getattr(expected, name) for name in fields}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("rule = 3", "must have tables [[rule]] and nothing else"),
        ("[[rules]]", "must have tables [[rule]] and nothing else"),
        (
            "[[rule]]\naction = 'drop'\ndirecton = 'request'",
            "'directon' is not a field of a rule with the action drop; say",
        ),
        ("[[rule]]\naction = 'cut'\nseconds = 1", "'seconds' is not a field of a rule with the action cut; say"),
        ("[[rule]]\naction = 'cut'\ndirection = 'request'\napi = 'any'\ngroup = 1", "group must be a text, not 1"),
        ("[[rule]", "cannot be read: "),
    ],
)
def test_a_mistake_in_a_file_names_the_file(tmp_path: Path, content: str, problem: str) -> None:
    """And the number of the rule, where it is in one."""
    path = tmp_path / "rules.toml"
    path.write_text(content)
    with pytest.raises(RuleError) as caught:
        load(path, definitions())
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)
