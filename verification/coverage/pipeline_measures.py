"""Pipeline measures: count from the topics how much a pipeline copied, because it says nothing about itself.

How far its outputs had come at a time is in the samples of their ends. The last stable offset is taken, below which all
outputs are decided; it also counts control records, one per transaction and partition. Each output topic and each table
counts for itself: a part of the pipeline that does not work yet is not struck by any fault. Whether a kill met work in
progress is in the log: the transaction of the instance was aborted there. Whether a part of it stopped for good is in the
offsets that it committed: inputs behind them need no output.

Free of pyspark.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from verification.coverage.fault_measures import last_heal_ns
from verification.evidence import lso_samples
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.experiment import TopicRole
from verification.vocabulary.history import DELIVERIES, FaultRecord, Phase, Sample
from verification.vocabulary.quiescent_state import KeptIn

#: The phase in which a pipeline copies what was left at its beginning.
AFTER_WINDOW = "after-window"


def _decided(evidence: RunEvidence, until_ns: int | None) -> dict[str, int]:
    """The offsets that were decided until a moment, or at all, added up over the partitions of each output."""
    found: dict[str, int] = defaultdict(int)
    for place in lso_samples.outputs(evidence):
        found[evidence.experiment.topics[place[0]].name] += lso_samples.decided(evidence, place, until_ns)
    return found


def copied_before(evidence: RunEvidence) -> dict[str, int]:
    """Offsets of each output that were decided before the first fault began."""
    began_ns = min((each.began_ns for each in evidence.history.of(FaultRecord)), default=None)
    return _decided(evidence, None if began_ns is None else began_ns - 1)


def copied_after(evidence: RunEvidence) -> dict[str, int]:
    """Offsets of each output that were decided after the last fault was healed; 0 if one never was."""
    healed_ns = last_heal_ns(evidence)
    before = _decided(evidence, healed_ns)
    ends: dict[str, int] = defaultdict(int)
    for end in evidence.captures.ends:
        ends[end.topic] += end.last_stable_offset
    return {topic: 0 if healed_ns is None else ends[topic] - count for topic, count in before.items()}


def caught_up(evidence: RunEvidence) -> dict[str, int]:
    """1 for each input partition of which the pipeline committed all that was decided when the after-window began.

    0 for a partition of which it committed less, or of which no end is known from before.
    """
    began_ns = max((each.began_ns for each in evidence.history.of(Phase) if each.name == AFTER_WINDOW), default=0)
    committed = {(each.topic, each.partition): each.offset for each in evidence.captures.group_offsets}

    def passed(place: lso_samples.Place, topic: str) -> bool:
        looks = [each for each in lso_samples.answered(evidence, place) if each.at_ns <= began_ns]
        return bool(looks) and committed.get((topic, place[1]), -1) >= looks[-1].last_stable_offset

    return {
        f"{each.name} partition {at}": int(passed((index, at), each.name))
        for index, each in enumerate(evidence.experiment.topics)
        if each.role is TopicRole.INPUT
        for at in range(each.partitions)
    }


def interrupted_copies(evidence: RunEvidence) -> int:
    """Aborts in the partitions of the outputs, by the control records of the pipeline's producers."""
    process = evidence.experiment.pipeline
    rows = () if process is None else evidence.capture_reader.producer_rows(process, 0)
    return sum(1 for row in rows if row[3] == "abort")


def met_work(evidence: RunEvidence) -> dict[str, int]:
    """Records of an open transaction that each kill, pause or cut of an instance met, where that can be known.

    It cannot where outputs are not looked at, or records wait that an instance left open which was killed before.
    """
    return {f"step {each.step}": each.met for each in evidence.history.of(FaultRecord) if each.met is not None}


def drained(evidence: RunEvidence) -> int:
    """1 if the copies can be judged: a pipeline that still had work in topics of its own leaves no claim on its outputs."""
    return int(evidence.experiment.fan_out is not None)


def copied_again(evidence: RunEvidence) -> int:
    """Committed outputs beyond those that each committed input must have; at least so many are there a second time."""
    fan_out = evidence.experiment.fan_out
    if fan_out is None:
        return 0
    rows, topics = evidence.capture_reader.topic_rows("committed"), enumerate(evidence.experiment.topics)
    inputs = sum(rows.get(index, 0) for index, topic in topics if topic.role is TopicRole.INPUT)
    return sum(rows.values()) - inputs * (1 + fan_out)


def kept_counts(evidence: RunEvidence) -> dict[str, int]:
    """Keys that were read from the stores of the instances, and from the changelog."""
    read = Counter(each.origin for each in evidence.captures.kept_counts)
    return {f"keys of the {origin}": read[origin] for origin in KeptIn}


def redelivered(evidence: RunEvidence) -> int:
    """Records that came to a pipeline, by the count that it keeps in its database, beyond its rows there.

    So many came a second time and were left out. Without such a count they are the records in topics between its parts, in
    the last samples of them, if a part passes each record on and another one writes a row of it. Limit: there control
    records count too, which a part that writes in transactions adds.
    """
    known = {each.name for each in evidence.experiment.topics}
    group = evidence.experiment.group
    own = [
        each for each in evidence.history.of(Sample) if each.topic not in known and each.topic.startswith(f"{group}-")
    ]
    own = [each for each in own if each.topic == f"{group}{DELIVERIES}"] or own
    last = {(each.topic, each.partition): each.high_watermark for each in sorted(own, key=lambda each: each.at_ns)}
    rows = {evidence.topic(topic_index) for topic_index, _ in lso_samples.effects(evidence)}
    return sum(last.values()) - sum(each.high_watermark for each in evidence.captures.ends if each.topic in rows)
