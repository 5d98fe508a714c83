"""The catalogue of requirements of exactly-once, as data.

Each family is one TOML file next to this module, each requirement one table in it. An id is permanent: a requirement
that turns out wrong is corrected or emptied, never renumbered, because waivers, reports and issues cite ids.

A range names the releases for which the sentence is a contract. They need not fulfil it: a release that breaks it by a
bug lies inside the range and fails. A release before the feature existed lies outside, and the requirement does not
apply. So a range does not shrink when a bug is found, and old releases fail although a later one has the fix.

A limitation is documented behaviour that a reader has to know. It is shown with its requirement and never counts as a
failure. Either the whole row is a characterisation (level INFO, which forbids nothing), or the sentence limits the claim
of the row. Then the range or the observable sets the same limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NewType

from verification.requirements.toml_table import Table, read_toml
from verification.vocabulary import releases
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.errors import CatalogueError, ReleaseError

RequirementId = NewType("RequirementId", str)

DIRECTORY = Path(__file__).parent

#: The families in reading order; each is a file of this name in lower case.
FAMILIES = (
    "IDEMP",
    "TXN",
    "COORD",
    "FENCE",
    "ISO",
    "GRP",
    "TV2",
    "REC",
    "EXP",
    "ADM",
    "ERR",
    "PERF",
    "SHARE",
    "2PC",
    "SEC",
)

_SOURCE = re.compile(
    r"KIP-[0-9]+|KAFKA-[0-9]+|(protocol|documentation|code|librdkafka): \S.*",
)


class Level(StrEnum):
    """How binding a requirement is."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    INFO = "INFO"


class Protects(StrEnum):
    """What a violation puts at risk.

    `records`: a record or an offset is lost, doubled, torn from its transaction, hidden, or shown too early; or a fenced
    producer writes. `progress`: a producer, reader, group or id stands until an operator intervenes. `contract`: an answer,
    an error code or an administrative view is wrong. Where a violation can mean several, the first of them counts.
    """

    RECORDS = "records"
    PROGRESS = "progress"
    CONTRACT = "contract"


class Decidability(StrEnum):
    """How a requirement can be decided: by one scripted sequence, by many runs under faults, or not here."""

    DETERMINISTIC = "deterministic"
    STOCHASTIC = "stochastic"
    UNTESTED = "untested"


class How(StrEnum):
    """The means: wire requests, real clients, faults, admin calls, a stopped broker's files, metrics."""

    RAW = "RAW"
    CL = "CL"
    FLT = "FLT"
    ADM = "ADM"
    DISK = "DISK"
    JMX = "JMX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applies:
    """The subjects that a requirement speaks about.

    `since` and `until` are releases, both included; an `until` of a line ("3.9") includes the line. Where the text
    speaks about a client's defaults the release is the client's. `transaction_version` is the lowest one, None for any.
    """

    since: str
    until: str | None = None
    transaction_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One normative sentence and everything that is needed to decide it.

    `observable` gives the codes, offsets and values that decide it; `source` where it comes from (KIP, JIRA, protocol
    message, documentation, code); `forbids` the anomalies with which a run under faults refutes it.
    """

    id: RequirementId
    family: str
    level: Level
    protects: Protects
    text: str
    observable: str
    source: tuple[str, ...]
    applies: Applies
    decided: Decidability
    how: tuple[How, ...]
    forbids: tuple[Anomaly, ...] = ()
    limitation: str | None = None
    reason_untested: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A group of requirements: its prefix, a title and one paragraph about it."""

    name: str
    title: str
    about: str
    requirements: tuple[Requirement, ...]


def load(directory: Path = DIRECTORY) -> dict[str, Requirement]:
    """Every requirement by id, in reading order.

    Raises CatalogueError, which names file and entry, for anything that does not fit.
    """
    return {requirement.id: requirement for family in load_families(directory) for requirement in family.requirements}


def load_families(directory: Path = DIRECTORY) -> tuple[Family, ...]:
    """The families in reading order, each with its requirements.

    Raises CatalogueError, which names file and entry, for anything that does not fit.
    """
    return tuple(_family(directory / f"{name.lower()}.toml", name) for name in FAMILIES)


def applies_to(requirement: Requirement, release: str, transaction_version: int | None) -> bool:
    """Whether a requirement speaks about a subject.

    `transaction_version` is the cluster's finalized level; for a run of a client it is the version that the client really
    used. None means that the subject does not know the feature.

    Raises ReleaseError when `release` is not a version number.
    """
    applies = requirement.applies
    if not releases.within(release, applies.since, applies.until):
        return False
    if applies.transaction_version is None:
        return True
    return transaction_version is not None and transaction_version >= applies.transaction_version


def _family(path: Path, name: str) -> Family:
    bodies = read_toml(path, CatalogueError)
    header = Table(bodies.pop("family", None), file=path.name, entry="family", complain=CatalogueError)
    title, about = header.text("title"), header.text("about")
    header.finish()
    # Each file has its own prefix, so ids that are unique within a file are unique. TOML refuses a repeated table.
    pattern = re.compile(rf"{name}-[0-9]{{2}}")
    entries = []
    for key, body in bodies.items():
        entry = Table(body, file=path.name, entry=key, complain=CatalogueError)
        if not pattern.fullmatch(key):
            raise entry.error(f"the id is not {name}- and two digits")
        entries.append(_requirement(entry, RequirementId(key), name))
    return Family(name=name, title=title, about=about, requirements=tuple(entries))


def _requirement(entry: Table, identity: RequirementId, family: str) -> Requirement:
    requirement = Requirement(
        id=identity,
        family=family,
        level=entry.choice("level", Level),
        protects=entry.choice("protects", Protects),
        text=entry.text("text"),
        observable=entry.text("observable"),
        source=entry.strings("source"),
        applies=_applies(entry.table("applies")),
        decided=entry.choice("decided", Decidability),
        how=entry.choices("how", How),
        forbids=entry.choices("forbids", Anomaly),
        limitation=entry.optional_text("limitation"),
        reason_untested=entry.optional_text("reason_untested"),
    )
    entry.finish()
    _check(entry, requirement)
    return requirement


def _applies(entry: Table) -> Applies:
    applies = Applies(
        since=entry.text("since"),
        until=entry.optional_text("until"),
        transaction_version=entry.optional_integer("transaction_version"),
    )
    entry.finish()
    try:
        ordered = releases.within(applies.since, applies.since, applies.until)
    except ReleaseError as error:
        raise entry.error(str(error)) from error
    if not ordered:
        raise entry.error(f"ends before it begins: since {applies.since}, until {applies.until}")
    if applies.transaction_version not in {None, 1, 2}:
        raise entry.error("transaction_version is neither 1 nor 2; leave it out where any will do")
    return applies


def _check(entry: Table, requirement: Requirement) -> None:
    """Check rules that concern several fields."""
    foreign = [source for source in requirement.source if not _SOURCE.fullmatch(source)]
    complaints = {
        "source is empty; a requirement cites where it comes from": not requirement.source,
        f"source {foreign} is of no known kind (KIP-n, KAFKA-n, protocol, documentation, code, librdkafka)": foreign,
        "how is empty; name at least one means": not requirement.how,
        "is untested without a reason_untested": (
            requirement.decided is Decidability.UNTESTED and requirement.reason_untested is None
        ),
        "has a reason_untested although it can be decided": (
            requirement.decided is not Decidability.UNTESTED and requirement.reason_untested is not None
        ),
        "is INFO and forbids something; INFO describes and never fails": (
            requirement.level is Level.INFO and requirement.forbids
        ),
        "protects only the contract and forbids something; every anomaly puts records or progress at risk": (
            requirement.protects is Protects.CONTRACT and requirement.forbids
        ),
    }
    for complaint, holds in complaints.items():
        if holds:
            raise entry.error(complaint)
