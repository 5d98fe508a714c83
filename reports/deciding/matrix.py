"""The matrix requirement × subject by family: the verdict of each run on each requirement of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from reports.deciding.scorecards import no_violation_in
from reports.model.protocol_case import Tried, aside_of, seen_in
from reports.model.report import Report, RequirementRow
from reports.model.vocabulary import catalogue
from verification.requirements.catalogue import Decidability
from verification.vocabulary.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One subject: a run of a merged report (`part`), or the only one."""

    title: str
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementCell:
    """The verdict of one subject, None where nothing was tested; `aside` is that of its row (`RequirementRow`)."""

    verdict: Verdict | None
    aside: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementLine:
    """A requirement with a cell per column; `strength` counts the scenarios behind a pass that chance decides."""

    row: RequirementRow
    cells: tuple[RequirementCell, ...]
    strength: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A family with its requirements."""

    family: str
    title: str
    lines: tuple[RequirementLine, ...]

    @property
    def tested(self) -> int:
        """How many of its requirements any subject decided."""
        return sum(1 for each in self.lines if each.row.verdict is not None)

    def count(self, verdict: Verdict | None) -> int:
        """How many of its requirements have this verdict; None counts the untested ones."""
        return sum(1 for each in self.lines if each.row.verdict is verdict)

    @property
    def aside(self) -> str:
        """The word for its violations where none of them decides; of a pass, the known bugs that it shows."""
        if self.worst is Verdict.PASS:
            return ", ".join(sorted({each.row.seen for each in self.lines} - {""}))
        return aside_of(each.row.aside for each in self.lines if each.row.verdict is Verdict.FAIL)

    @property
    def worst(self) -> Verdict | None:
        """The worst verdict of the family; None when nothing was tested."""
        verdicts = [each.row.verdict for each in self.lines if each.row.verdict is not None]
        return Verdict.worst(verdicts) if verdicts else None


def columns(report: Report) -> tuple[Column, ...]:
    """The subjects in the order of the runs."""
    if not report.parts:
        return (Column(title=f"Kafka {report.subject.release or 'of unknown release'}", part=""),)
    return tuple(Column(title=part.name, part=part.name) for part in report.parts if part.name)


def groups(report: Report) -> tuple[Group, ...]:
    """The catalogue by family, in its order; ids that it lacks come last."""
    tried = {each.key: each for each in report.tried}
    subjects = columns(report)
    lines: dict[str, list[RequirementLine]] = {family: [] for family, _ in report.families}
    for row in report.requirements:
        cells = tuple(_cell(row, each.part, tried) for each in subjects)
        lines.setdefault(row.family, []).append(RequirementLine(row=row, cells=cells, strength=_strength(row, tried)))
    titles = dict(report.families)
    return tuple(
        Group(family=family, title=titles.get(family, ""), lines=tuple(each)) for family, each in lines.items() if each
    )


def _cell(row: RequirementRow, part: str, tried: dict[str, Tried]) -> RequirementCell:
    said = [(verdict, tried[key]) for key, verdict, _ in row.decided_by if tried[key].part == part]
    worst = Verdict.worst(verdict for verdict, _ in said) if said else None
    aside = aside_of(one.aside for verdict, one in said if verdict is Verdict.FAIL)
    return RequirementCell(verdict=worst, aside=seen_in(one for _, one in said) if worst is Verdict.PASS else aside)


def _strength(row: RequirementRow, tried: dict[str, Tried]) -> str:
    """For a passed requirement that chance decides: the number of scenarios without a violation."""
    sentence = catalogue().get(row.id)
    if sentence is None or sentence.decided is not Decidability.STOCHASTIC or row.verdict is not Verdict.PASS:
        return ""
    return no_violation_in(tried[key] for key, verdict, _ in row.decided_by if verdict is Verdict.PASS)
