"""Reads the conditions of a proof from its evidence: topics and faults of a scenario, topics and outages of a script."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from reports.model.conditions import Conditions, Replication, Stopped
from reports.model.report import FaultRow
from reports.model.wording import seconds
from verification.scripts.script import OutageChange, Script, TopicUsed
from verification.vocabulary.experiment import Experiment

#: How a fault or an outage leaves brokers, by the first word of its description.
_HOW = {
    "crash": "killed",
    "stop": "stopped",
    "pause": "paused",
    "isolation": "cut off",
    "cut": "cut off",
    "restart": "restarted",
}
_ENDS = ("return", "healing")
#: A server property in the words about a cluster (`runner.protocol.toolkit.case.Needs.describe`).
_SETTING = re.compile(r"\b[a-z]+(?:\.[a-z0-9]+)+=[^\s,]+")


def of_scenario(experiment: Experiment, faults: Iterable[FaultRow]) -> Conditions:
    """The conditions of a scenario: the topics without the name of its run, and the brokers that its faults hit."""
    pairs = [
        (
            Replication(factor=each.replication, min_in_sync=each.min_in_sync),
            each.name.removeprefix(f"{experiment.run}-"),
        )
        for each in experiment.topics
    ]
    return Conditions(
        topics=_by_replication(pairs),
        unclean=_any(each.unclean_election for each in experiment.topics),
        stopped=tuple(each for fault in faults if (each := _hit(fault)) is not None),
    )


def of_script(script: Script) -> Conditions:
    """The conditions of a protocol case."""
    pairs = [
        (Replication(factor=len(replicas), min_in_sync=each.min_in_sync), each.name)
        for each in script.topics or ()
        for replicas in each.replicas
    ]
    return Conditions(
        topics=None if script.topics is None else _by_replication(pairs),
        unclean=_any(each.unclean_election for each in script.topics or ()),
        stopped=None if script.outages is None else tuple(_outages(script)),
        settings=tuple(_SETTING.findall(script.cluster)),
    )


def _by_replication(pairs: Iterable[tuple[Replication, str]]) -> tuple[tuple[Replication, tuple[str, ...]], ...]:
    known = sorted(pairs, key=lambda each: (each[0].factor, each[0].min_in_sync or 0))
    return tuple(
        (replication, tuple(dict.fromkeys(name for _, name in group)))
        for replication, group in groupby(known, key=lambda each: each[0])
    )


def _any(settings: Iterable[bool | None]) -> bool | None:
    """True if one of the settings is on, None if none is on and one is not known."""
    known = set(settings)
    return True if True in known else None if None in known or not known else False


def _hit(fault: FaultRow) -> Stopped | None:
    """The brokers that a fault took away; None for another fault, or one that never struck."""
    how, numbers = _HOW.get(fault.description.split()[0]), re.findall(r"[0-9]+", fault.target)
    if how is None or not fault.target.startswith("broker") or fault.confirmed_s is None:
        return None
    kind = re.split(r", while |, for |, as ", fault.description)[0]
    leader = len(numbers) == 1 and " leader " in f"{kind} "
    before = re.search(r"before-(commit|abort)", fault.description)
    until = "" if fault.healed_s is None else f" to {seconds(fault.healed_s)}"
    return _stopped(
        numbers,
        how,
        leader=leader,
        when=f"before the {before[1]}" if before else "",
        span=f"from {seconds(fault.began_s)}{until} of the scenario",
    )


def _outages(script: Script) -> Iterable[Stopped]:
    """Each outage with its place among the requests."""
    changes = script.outages or ()
    for place, each in enumerate(changes):
        verb, numbers = each.what.split()[0], re.findall(r"[0-9]+", each.what)
        if verb in _ENDS or verb not in _HOW:
            continue
        back = next((one for one in changes[place:] if one.what.startswith(_ENDS) and numbers == _brokers(one)), None)
        until = "" if back is None else f", back {'by then' if back.after == each.after else _place(script, back)}"
        yield _stopped(
            numbers,
            _HOW[verb],
            leader=len(numbers) == 1 and _leads(int(numbers[0]), script.topics or ()),
            when=_place(script, each),
            span=until.removeprefix(", "),
        )


def _brokers(change: OutageChange) -> list[str]:
    return re.findall(r"[0-9]+", change.what)


def _leads(broker: int, topics: Iterable[TopicUsed]) -> bool:
    return any(replicas[:1] == (broker,) for each in topics for replicas in each.replicas)


def _place(script: Script, change: OutageChange) -> str:
    """When, in terms of the script: `before request 4, EndTxn`."""
    if change.after >= len(script.exchanges):
        return "after the last request"
    return f"before request {change.after + 1}, {script.exchanges[change.after].api}"


def _stopped(numbers: list[str], how: str, *, leader: bool, when: str, span: str) -> Stopped:
    one = len(numbers) == 1
    who = f"{'broker' if one else 'brokers'} {', '.join(numbers)}{', the leader,' if leader else ''}"
    return Stopped(who=who, how=f"{'was' if one else 'were'} {how}", when=when, span=span)
