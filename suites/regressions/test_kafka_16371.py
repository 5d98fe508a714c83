"""KB-08: oversized offset metadata leaves offsets pending and tears the commit of others (KAFKA-16371).

An offset whose metadata exceeds `offset.metadata.max.bytes` is refused with OFFSET_METADATA_TOO_LARGE (12). But up to
3.7.0 the classic group coordinator had noted it as pending, and never removed the note. OffsetFetch with RequireStable
then answers UNSTABLE_OFFSET_COMMIT (88) for ever. In a transaction, the loop that completes the commit throws at such an
offset, and good offsets of the same transaction do not become visible. Which ones depends on the order of hashes; so
the script has forty partitions and every second one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from runner.protocol.toolkit.context import NOT_NOW, SET_UP_WITHIN_S, CaseContext
from runner.protocol.toolkit.groups import commit
from runner.protocol.toolkit.producer import transactional
from runner.protocol.toolkit.responses import Response
from runner.regressions.probes import STABLE_SINCE, UNSTABLE, stable_offset
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.schema import Body
from wire.values import TopicPartition

#: The default limit is 4096 bytes.
OVERSIZED = "x" * 5000
OFFSET = 7
#: A group coordinator may apply a marker some time after the transaction is complete (KAFKA-17507).
APPLIED_WITHIN_S = 3.0
TOO_LARGE = code_name(Code.OFFSET_METADATA_TOO_LARGE)


@reproduces("KB-08", "a", since=STABLE_SINCE, violated=[("2.5.0", "3.7.0")])
def test_a_refused_offset_is_not_pending(case: CaseContext) -> None:
    """An offset that was refused for its metadata is not pending afterwards."""
    places = case.topic(partitions=10)
    group, refused = f"{case.name}-group", places[5]
    topics = _topics(places, lambda index: index == refused.partition)
    answer = _loaded(case, partial(commit, case, group, {}, Topics=topics))
    seen = {
        "its commit": code_name(answer.codes[str(refused)]),
        "the stable offset": stable_offset(case, group, refused),
        "the one beside it": stable_offset(case, group, places[4]),
    }
    held = {"its commit": TOO_LARGE, "the stable offset": -1, "the one beside it": OFFSET}
    violated = {"its commit": TOO_LARGE, "the stable offset": UNSTABLE, "the one beside it": OFFSET}
    decide(case, "an offset with oversized metadata", seen, held=held, violated=violated)


@reproduces("KB-08", "b", violated=[("2.4.0", "3.7.0")])
def test_the_others_of_the_transaction_are_committed(case: CaseContext) -> None:
    """Accepted offsets are there after the commit, even when others of the transaction were refused."""
    *places, before = case.topic(partitions=41)
    group = f"{case.name}-group"
    # A group that has only pending offsets may be deleted by 4.0.0 before its marker comes (KB-36).
    case.set_up("an offset that keeps the group", partial(commit, case, group, {before: OFFSET}))
    producer = transactional(case)
    case.set_up("the group is added", partial(producer.add_offsets, group))
    topics = _topics(places, lambda index: index % 2 == 1)
    answer = _loaded(case, partial(producer.commit_offsets, group, {}, Topics=topics))
    good = [at for at in places if at.partition % 2 == 0]
    case.require("the answers for the good ones", {answer.codes[str(at)] for at in good}, [0])
    case.require(
        "those for the others", {code_name(answer.codes[str(at)]) for at in places if at not in good}, [TOO_LARGE]
    )
    producer.ends(commit=True)

    def visible() -> int:
        found = case.client.offset_fetch(group, good, require_stable=False)
        return sum(each.offset == OFFSET for each in found.values())

    count = case.poll_until(visible, lambda number: number == len(good), within_s=APPLIED_WITHIN_S)
    seen = {"all good offsets are visible": count == len(good), "visible": count, "good": len(good)}
    held, violated = ({"all good offsets are visible": each} for each in (True, False))
    decide(case, "the offsets after the commit", seen, held=held, violated=violated)


def _loaded(case: CaseContext, call: Callable[[], Response]) -> Response:
    """Repeat a request until no part of its answer says that the coordinator is not ready."""
    found: Response = case.poll_until(
        call, lambda each: not NOT_NOW & set(each.codes.values()), within_s=SET_UP_WITHIN_S
    )
    return found


def _topics(places: Sequence[TopicPartition], oversized: Callable[[int], bool]) -> list[Body]:
    partitions = [
        {
            "PartitionIndex": at.partition,
            "CommittedOffset": OFFSET,
            "CommittedMetadata": OVERSIZED if oversized(at.partition) else "",
        }
        for at in places
    ]
    return [{"Name": places[0].topic, "Partitions": partitions}]
