"""Shows a violation with its circumstances in an upgrade: the moment, the state then, and the nodes with their roles.

The moment is that of the record in the transaction log, or else of the request that ended the operation. A decision that
was not completed in time has the middle of its longest stretch, because by then the looks have seen every leader. A lost
node has the moment when it was given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from verification.evidence.run_evidence import RunEvidence
from verification.evidence.stalls import late_completions, lost_nodes, refused_producers
from verification.evidence.transaction_log_rows import NS_PER_MS, wall_clock_ns
from verification.evidence.upgrade_state import UpgradeState, is_upgrade, leader_at, state_at
from verification.judge.finding_files import named
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Operation
from verification.vocabulary.transaction_log import TOPIC, TOPIC_INDEX, Entry
from verification.vocabulary.verdict import Circumstances, Violation
from verification.vocabulary.violations import RawViolation


def shown(evidence: RunEvidence, violation: RawViolation) -> Violation:
    """A violation as an example of a verdict: with the name of its topic, and in an upgrade with its circumstances."""
    around = circumstances(evidence, violation)
    plain = named(evidence, violation)
    detail = "; ".join(filter(None, ("" if around is None else around.text, plain.detail)))
    return replace(plain, detail=detail, circumstances=around)


def circumstances(evidence: RunEvidence, violation: RawViolation) -> Circumstances | None:
    """The circumstances of a violation; None where its time is not known, and in a run without stages."""
    if not is_upgrade(evidence):
        return None
    late = late_completions.of_violation(evidence, violation)
    entry, operation = _entry(evidence, violation), _operation(evidence, violation)
    zero_ns = wall_clock_ns(evidence)
    lost = [each for _, each in lost_nodes.lost_nodes(evidence)] if violation.anomaly is Anomaly.LOST_NODE else []
    if lost:
        at_ns = lost[0].at_ns
    elif zero_ns is not None and (late is not None or entry is not None):
        at_ms = late.at_ms if late is not None else entry.appended_ms if entry is not None else 0
        at_ns = at_ms * NS_PER_MS - zero_ns
    elif operation is not None:
        at_ns = operation.invoked_ns if operation.decided_ns is None else operation.decided_ns
    else:
        return None
    refused = refused_producers.of_violation(evidence, violation)
    if late is not None:
        led: Iterable[int] = late_completions.leaders(evidence, late)
    else:
        led = _leader(evidence, violation, at_ns) if refused is None else refused_producers.leaders(evidence, refused)
    leaders = tuple(sorted(set(led)))
    asked = entry if entry is not None else operation
    of_id = None if asked is None else asked.transactional_id
    coordinator = _coordinator(evidence, of_id, at_ns)
    state = state_at(evidence, at_ns)
    return Circumstances(
        at_ns=at_ns,
        stage=state.stage,
        releases=dict(state.releases),
        levels=dict(state.levels),
        text=_text(state, coordinator, leaders),
        coordinator=coordinator,
        leaders=leaders,
    )


def _entry(evidence: RunEvidence, violation: RawViolation) -> Entry | None:
    """The record of the transaction log at the place of a violation."""
    log = evidence.transaction_log
    if violation.topic_index != TOPIC_INDEX or log is None:
        return None
    place = (violation.partition, violation.offset)
    return next((each for each in log.entries if (each.partition, each.offset) == place), None)


def _operation(evidence: RunEvidence, violation: RawViolation) -> Operation | None:
    every = evidence.history.of(Operation)
    return next((each for each in every if (each.process, each.operation) == violation.operation_key), None)


def _leader(evidence: RunEvidence, violation: RawViolation, at_ns: int) -> Iterable[int]:
    """The leader of the partition of a violation, if it has one."""
    topic = evidence.topic(violation.topic_index)
    if topic is not None and topic != TOPIC and violation.partition is not None:
        leader = leader_at(evidence, topic, violation.partition, at_ns)
        yield from () if leader is None else (leader,)


def _coordinator(evidence: RunEvidence, transactional_id: str | None, at_ns: int) -> int | None:
    """The leader of the partition of the transaction log in which an id has its records."""
    entries = () if evidence.transaction_log is None else evidence.transaction_log.entries
    own = next((each.partition for each in entries if each.transactional_id == transactional_id), None)
    return None if own is None else leader_at(evidence, TOPIC, own, at_ns)


def _text(state: UpgradeState, coordinator: int | None, leaders: Iterable[int]) -> str:
    """In words: `coordinator 4.2.0 on broker 2, leader 4.1.2 on broker 3, in stage roll 1 of 3; …`."""
    roles = [("coordinator", coordinator), *(("leader", each) for each in leaders)]
    named = [f"{role} {_release(state, node)}on broker {node}" for role, node in roles if node is not None]
    nodes = f"nodes {_pairs(state.releases)}" if state.releases else ""
    told = (", ".join((*named, f"in stage {state.stage or 'unknown'}")), nodes, _pairs(state.levels))
    return "; ".join(filter(None, told))


def _release(state: UpgradeState, node: int) -> str:
    return f"{state.releases.get(str(node), 'down')} " if state.releases else ""


def _pairs(named: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in named.items())
