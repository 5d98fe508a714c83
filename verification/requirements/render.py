"""Renders the catalogue as docs/semantics.md: `python -m verification.requirements.render`.

The prose around the data is a template next to this module. Everything else is derived from the data, the anomalies, the
outcomes and the verdicts that the judge reads, so that the document always agrees with the judge.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from string import Template

from verification.requirements.catalogue import (
    Applies,
    Decidability,
    Family,
    Level,
    Protects,
    Requirement,
    RequirementId,
    load_families,
)
from verification.vocabulary.anomalies import DEFINITIONS, Anomaly
from verification.vocabulary.history import Outcome
from verification.vocabulary.verdict import Verdict

TEMPLATE = Path(__file__).with_name("semantics.template.md")
DOCUMENT = Path(__file__).parents[2] / "docs" / "semantics.md"

_JIRA = re.compile(r"KAFKA-[0-9]+")

_WHEN: dict[Verdict, str] = {
    Verdict.NOT_APPLICABLE: "the requirement does not apply to this subject",
    Verdict.PASS: "no forbidden anomaly occurred, and the run really tried enough",
    Verdict.INCONCLUSIVE: "no forbidden anomaly occurred, but the run tried too little for that to mean anything",
    Verdict.ERROR: "the evidence cannot be judged, or the harness failed",
    Verdict.FAIL: "a forbidden anomaly is proven; it stays proven even if something else failed",
}


def render(families: tuple[Family, ...]) -> str:
    """The whole document as Markdown."""
    requirements = [requirement for family in families for requirement in family.requirements]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        requirement_count=len(requirements),
        family_count=len(families),
        ok=Outcome.OK,
        fail=Outcome.FAIL,
        info=Outcome.INFO,
        anomalies="\n".join(map(_anomaly_row, Anomaly)),
        lattice=" < ".join(f"`{verdict.name}`" for verdict in sorted(Verdict)),
        verdicts="\n".join(f"| `{verdict.name}` | {_WHEN[verdict]} |" for verdict in sorted(Verdict)),
        limitations="\n".join(
            f"* {_link(each.id)}: {each.limitation}" for each in requirements if each.limitation is not None
        ),
        summary="\n".join(map(_summary_row, families)),
        families="\n\n".join(map(_family, families)),
    )


def write(document: Path = DOCUMENT) -> Path:
    """Write the document and return its path."""
    document.parent.mkdir(parents=True, exist_ok=True)
    document.write_text(render(load_families()), encoding="utf-8")
    return document


def _link(identity: RequirementId) -> str:
    return f"[{identity}](#{identity.lower()})"


def _anomaly_row(anomaly: Anomaly) -> str:
    defined = DEFINITIONS[anomaly]
    return (
        f'| {defined.severity} | <a id="{anomaly}"></a>`{anomaly}` | {defined.definition} '
        f"| {defined.why_illegal} | {defined.excludes} |"
    )


def _summary_row(family: Family) -> str:
    levels = [sum(each.level is level for each in family.requirements) for level in Level]
    protected = [sum(each.protects is protects for each in family.requirements) for protects in Protects]
    untested = sum(each.decided is Decidability.UNTESTED for each in family.requirements)
    cells = [f"[{family.name}](#{_anchor(_heading(family))})", family.title, len(family.requirements)]
    return f"| {' | '.join(map(str, [*cells, *levels, *protected, untested]))} |"


def _heading(family: Family) -> str:
    return f"{family.name}: {family.title}"


def _anchor(heading: str) -> str:
    """The anchor that Markdown viewers give to a heading."""
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")


def _family(family: Family) -> str:
    entries = "\n\n".join(map(_requirement, family.requirements))
    return f"## {_heading(family)}\n\n{family.about}\n\n{entries}"


def _requirement(requirement: Requirement) -> str:
    facts = [
        ("Observable", requirement.observable),
        ("Protects", f"{requirement.protects}."),
        ("Applies", f"{_range(requirement.applies)}."),
        ("Decided", f"{requirement.decided}, by {', '.join(requirement.how)}."),
        ("Untested", requirement.reason_untested),
        ("Forbids", _forbidden(requirement.forbids)),
        ("Limitation", requirement.limitation),
        ("Source", f"{', '.join(map(_source, requirement.source))}."),
    ]
    shown = "\n".join(f"* {name}: {fact}" for name, fact in facts if fact)
    return f"### {requirement.id}\n\n**{requirement.level}.** {requirement.text}\n\n{shown}"


def _range(applies: Applies) -> str:
    until = f" to {applies.until}" if applies.until else ""
    version = applies.transaction_version
    return f"from {applies.since}{until}" + (f", transaction.version ≥ {version}" if version else "")


def _forbidden(forbids: Iterable[Anomaly]) -> str:
    links = ", ".join(f"[`{anomaly}`](#{anomaly})" for anomaly in forbids)
    return f"{links}." if links else ""


def _source(source: str) -> str:
    if _JIRA.fullmatch(source):
        return f"[{source}](https://issues.apache.org/jira/browse/{source})"
    return source


if __name__ == "__main__":
    sys.stdout.write(f"wrote {write()}\n")
