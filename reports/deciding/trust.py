"""How far a pass can be trusted, at a glance: how much each client tried, the narrowest floors, and the controls.

A guarantee that one client tested in one scenario is a weaker promise than its sign shows. A floor that was just reached
shows how little the run was above too little. A kind of anomaly that no control of this run planted was looked for by a
judge that did not show that it finds it.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.deciding.effort import narrowest, said
from reports.deciding.scorecards import GUARANTEES, is_about
from reports.deciding.windows import PROFILE as WATCH
from reports.model.protocol_case import Tried
from reports.model.report import Report
from reports.model.vocabulary import Catalogue, catalogue
from reports.model.wording import counted
from verification.judge.decision import ALTERNATIVE
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.verdict import Verdict

#: The narrowest floors that are shown.
NARROW_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientShare:
    """A client with the scenarios that it ran, of `whole`; `left_out` are the others."""

    client: str
    ran: int
    whole: int
    left_out: tuple[str, ...]

    @property
    def text(self) -> str:
        """The share in words."""
        return f"{self.client} ran {self.ran} of {counted(self.whole, 'scenario')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tests:
    """The tests of one guarantee: scenarios by client, in the order of the shares, and protocol cases.

    `shown` are its anomalies that a control planted and the judge detected, `unshown` are the others.
    """

    title: str
    scenarios: tuple[int, ...]
    cases: int
    shown: tuple[str, ...]
    unshown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowFloor:
    """A floor of a scenario that passed, and how close it came to its minimum, in words."""

    key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The clients, the tests of each guarantee, the floors that were reached most narrowly, and the controls."""

    clients: tuple[ClientShare, ...]
    guarantees: tuple[Tests, ...]
    floors: tuple[NarrowFloor, ...]
    detected: int
    controls: int

    @property
    def unshown(self) -> tuple[str, ...]:
        """The anomalies that a guarantee excludes and no control of this run shows, the most severe first."""
        missing = {anomaly for each in self.guarantees for anomaly in each.unshown}
        return tuple(each for each in Anomaly if each in missing)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The figures in short."""
        clients = f"How much was tried: {'; '.join(each.text for each in self.clients)}."
        floor = f"Closest to its minimum: {self.floors[0].text} ({self.floors[0].key})." if self.floors else ""
        controls = (
            f"{self.detected} of {counted(self.controls, 'control')} detected." if self.controls else "No control ran."
        )
        lacking = f"No control shows {', '.join(self.unshown)}." if self.unshown and self.controls else ""
        return tuple(each for each in (clients, floor, controls, lacking) if each)


def trust(report: Report) -> Trust | None:
    """The figures of a report; None where scenarios are not tests of a release by client: upgrades, pipelines, windows."""
    if not report.scenarios or report.subject.beyond_release or report.profile == WATCH:
        return None
    clients = tuple(dict.fromkeys(each.client for each in report.scenarios))
    known = catalogue()
    planted = _planted(report)
    return Trust(
        clients=tuple(_share(report, client) for client in clients),
        guarantees=tuple(
            Tests(
                title=title,
                scenarios=tuple(
                    sum(each.client == client and _decides(each, title, anomalies, known) for each in report.scenarios)
                    for client in clients
                ),
                cases=sum(_decides(each, title, anomalies, known) for each in report.cases),
                shown=tuple(each for each in Anomaly if each in anomalies & planted),
                unshown=tuple(each for each in Anomaly if each in anomalies - planted),
            )
            for title, _, anomalies in GUARANTEES
        ),
        floors=_floors(report),
        detected=sum(bool(each.convicted) for each in report.controls),
        controls=len(report.controls),
    )


def _share(report: Report, client: str) -> ClientShare:
    every = dict.fromkeys(each.scenario for each in report.scenarios)
    own = {each.scenario for each in report.scenarios if each.client == client}
    left_out = tuple(each for each in every if each not in own)
    return ClientShare(client=client, ran=len(own), whole=len(every), left_out=left_out)


def _decides(tried: Tried, title: str, anomalies: frozenset[Anomaly], known: Catalogue) -> bool:
    """Whether a scenario or case says pass or fail about a guarantee."""
    return any(
        each.verdict in (Verdict.PASS, Verdict.FAIL) and is_about(each.id, title, anomalies, known)
        for each in tried.requirements
    )


def _planted(report: Report) -> frozenset[Anomaly]:
    """The anomalies that a detected control had to show, and did."""
    return frozenset(
        Anomaly(each.anomaly)
        for control in report.controls
        if control.convicted
        for each in control.findings
        if any(each.anomaly in expected.split(ALTERNATIVE) for expected in control.expects)
    )


def _floors(report: Report) -> tuple[NarrowFloor, ...]:
    """The floors of scenarios that passed, the narrowest of each scenario, the closest first."""
    found = [
        (item.have / max(item.need, 1), NarrowFloor(key=each.key, text=said(item)))
        for each in report.scenarios
        if each.verdict is Verdict.PASS and (item := narrowest(each)) is not None
    ]
    return tuple(floor for _, floor in sorted(found, key=lambda pair: pair[0])[:NARROW_SHOWN])
