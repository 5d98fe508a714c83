"""KB-16: the marker of a partition without a leader is dropped when its transaction ends (KAFKA-20734 is the cause).

To send markers the coordinator asks its metadata cache for the leader of each partition. The cache of 4.3.1 and 4.4.0
answers "no such partition" also for a partition without a leader. The coordinator drops a partition that does not exist
from the transaction. EndTxn answers NONE and the transaction is complete at once; when the partition's broker is
back, no marker is left to send. The last stable offset stands for ever, and a record whose commit was acknowledged is
never visible. Other releases stay in Prepare and write the marker later.
"""

from __future__ import annotations

from runner.protocol.toolkit import brokers
from runner.protocol.toolkit.case import THREE
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.replicas import coordinated, placed
from runner.regressions.outages import await_leaderless
from runner.regressions.reproduction import decide, reproduces
from wire.codes import ErrorCode as Code
from wire.codes import code_name

ON = ("3.9.2", "4.0.1", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
#: A broker that is back receives its markers within a second or two.
MARKER_WITHIN_S = 10.0


@reproduces("KB-16", only=ON, violated=[("4.3.0", "4.4")], needs=THREE)
def test_a_commit_while_a_partition_has_no_leader(case: CaseContext) -> None:
    """A record is visible after its acknowledged commit, also where its partition had no leader at the time."""
    asked = brokers.controller(case)
    gone, coordinator = (each for each in case.brokers if each != asked)
    (at,) = placed(case, [gone], min_insync_replicas="1")
    producer = ScriptedProducer(case, coordinated(case, "owner", by=coordinator)).ready().writes(at, values=["a"])
    with brokers.crashed(case, gone):
        await_leaderless(case, at)
        answer = case.answered(lambda: producer.end(commit=True))
        during = case.poll_until(
            lambda: case.inspect.state(str(producer.transactional_id)),
            lambda seen: seen == "CompleteCommit",
            within_s=1,
        )
    readers = case.poll_until(lambda: case.inspect.committed(at), bool, within_s=MARKER_WITHIN_S)
    seen = {
        "EndTxn(commit)": code_name(answer.code),
        "the state without the leader": during,
        "what readers are given": readers,
        "the markers": [kind for kind, _, _ in case.inspect.markers(at)],
    }
    done = code_name(Code.NONE)
    held = {
        "EndTxn(commit)": done,
        "the state without the leader": "PrepareCommit",
        "what readers are given": ["a"],
        "the markers": ["commit"],
    }
    violated = {
        "EndTxn(commit)": done,
        "the state without the leader": "CompleteCommit",
        "what readers are given": [],
        "the markers": [],
    }
    decide(case, "the acknowledged commit", seen, held=held, violated=violated)
