"""Known exactly-once bugs of real brokers, as data.

An entry names a defect, so that a report can say "this is KB-16". It does not change a verdict: a known violation is a
violation. Only a *signature*, a function over the evidence of the run, names a finding after an entry. Release and anomaly
alone prove nothing, because another defect can look the same. An entry without a signature is documentation, and names no
finding of a scenario.

A protocol case sends known requests and states the exact answers. `cases` of an entry names the statements that the bug
violates and the values that are observed instead. Only a violation that fits them has the entry's name
(`verification.known_bugs.script_matching`), because the same case may fail for another reason.

Ranges were measured on unmodified releases: both ends were run and showed the defect; releases between them were run or
are taken to share it. `fixed_in` lists the first releases with the fix on each line; when it is empty, no release with a
fix is known. A release in neither was not run, and nothing is claimed about it.

Three kinds share the list and the ids: defects, documented limitations of the protocol that show in the same way, and
known-bad configurations that serve as controls.

`impact` and `reach` decide whether a named violation is a reason against a release (docs/decision.md). `impact` is the
gravest thing that the bug puts at risk. `reach` says how a system gets there; of several ways the most usual one counts.
`reason` says in one sentence why, from what was run or read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NewType

from verification.known_bugs.advice import Advice, read_advice
from verification.known_bugs.exposure import Exposure, read_exposure
from verification.requirements.catalogue import Protects, RequirementId
from verification.requirements.toml_table import Table, read_toml
from verification.vocabulary import releases
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.errors import KnownBugsError, ReleaseError

KnownBugId = NewType("KnownBugId", str)

FILE = Path(__file__).with_name("catalogue.toml")

_ID = re.compile(r"KB-[0-9]{2}")
_JIRA = re.compile(r"KAFKA-[0-9]+")


class BugKind(StrEnum):
    """Whether an entry is a defect, documented behaviour, or a configuration that is wrong on purpose."""

    BUG = "bug"
    LIMITATION = "limitation"
    CONTROL = "control"


class Reach(StrEnum):
    """How a system gets to a known bug.

    `ordinary`: crashes, restarts, network faults and correct clients are enough. `rare`: events must come in an unusual
    order, as when a message is delayed or repeated. `contrived`: it takes forged requests, damaged files, or settings that
    the documentation forbids.
    """

    ORDINARY = "ordinary"
    RARE = "rare"
    CONTRIVED = "contrived"


class Signature(StrEnum):
    """The functions over a run's evidence that recognise a known bug."""

    MARKER_DROPPED_WHILE_LEADERLESS = "marker-dropped-while-leaderless"
    REFUSED_DUPLICATE = "refused-duplicate"
    MARKER_REFUSED_BY_OLDER_LEADER = "marker-refused-by-older-leader"
    REPEATED_IN_A_LATER_EPOCH = "repeated-in-a-later-epoch"
    PRODUCER_ID_ISSUED_TWICE = "producer-id-issued-twice"
    VERIFIED_BY_OLDER_COORDINATOR = "verified-by-older-coordinator"
    LOWERED_TRANSACTION_VERSION = "lowered-transaction-version"
    ACTED_ON_A_LOST_DECISION = "acted-on-a-lost-decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRange:
    """Releases from `first` to `last`, both included and both seen to be bad."""

    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A statement of a protocol case that a bug violates, and the texts of which one is observed instead.

    A statement is named by its `what`. A text is taken as it is, every other value as JSON with sorted keys. In both, `*`
    stands for anything without a quotation mark, such as the name of a topic, and `**` for anything.
    """

    what: str
    observed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBug:
    """One known bug.

    `harm` is the end of a sentence that begins with "Kafka 4.4.0 can". `condition` is one sentence on the condition besides
    the release. `anomalies` are those that it may show, none when it only costs availability. `requirements` are those
    that it violates. `impact` is what it puts at risk, `reach` how a
    system gets there, and `reason` one sentence on both. `mechanism` is one paragraph. `cases` are the symptoms by the
    keys of protocol cases. The first symptom is always there; the others follow from it, as far as the case looks for
    them. `passes` are symptoms of cases that pass in spite of the bug, because they claim something else. `log` is a line
    of a broker's log that names the bug, in the language of symptoms. `exposure` says which clients, protocols and
    replication it concerns. `advice` says what a user does about it.
    """

    id: KnownBugId
    title: str
    harm: str
    kind: BugKind
    jira: tuple[str, ...]
    bad: tuple[ReleaseRange, ...]
    fixed_in: tuple[str, ...]
    anomalies: tuple[Anomaly, ...]
    requirements: tuple[RequirementId, ...]
    impact: Protects
    reach: Reach
    reason: str
    mechanism: str
    exposure: Exposure
    advice: Advice
    condition: str | None = None
    signature: Signature | None = None
    cases: Mapping[str, tuple[Symptom, ...]] = field(default_factory=dict, hash=False)
    passes: Mapping[str, tuple[Symptom, ...]] = field(default_factory=dict, hash=False)
    log: str | None = None


def load(path: Path = FILE) -> dict[str, KnownBug]:
    """Every known bug by id, in the order of the file.

    Raises KnownBugsError, which names file and entry, for anything that does not fit.
    """
    bugs = {}
    for key, body in read_toml(path, KnownBugsError).items():
        entry = Table(body, file=path.name, entry=key, complain=KnownBugsError)
        if not _ID.fullmatch(key):
            raise entry.error("the id is not KB- and two digits")
        bugs[key] = _known_bug(entry, KnownBugId(key))
    return bugs


def affects(bug: KnownBug, release: str) -> bool:
    """Whether `release` lies in a range on which the bug was seen; its condition is the caller's to judge.

    Raises ReleaseError when `release` is not a version number.
    """
    return any(releases.within(release, bad.first, bad.last) for bad in bug.bad)


def _known_bug(entry: Table, identity: KnownBugId) -> KnownBug:
    signature = entry.optional_text("signature")
    bug = KnownBug(
        id=identity,
        title=entry.text("title"),
        harm=" ".join(entry.text("harm").split()),
        kind=entry.choice("kind", BugKind),
        jira=entry.strings("jira"),
        bad=tuple(ReleaseRange(first=first, last=last) for first, last in entry.pairs("bad")),
        fixed_in=entry.strings("fixed_in"),
        condition=entry.optional_text("condition"),
        anomalies=entry.choices("anomalies", Anomaly),
        requirements=tuple(RequirementId(name) for name in entry.strings("requirements")),
        impact=entry.choice("impact", Protects),
        reach=entry.choice("reach", Reach),
        reason=entry.text("reason"),
        mechanism=entry.text("mechanism"),
        exposure=read_exposure(entry.table("exposure")),
        advice=read_advice(entry.table("advice")),
        cases={case: _symptoms(symptoms) for case, symptoms in entry.tables("cases").items()},
        passes={case: _symptoms(symptoms) for case, symptoms in entry.tables("passes").items()},
        log=entry.optional_text("log"),
        signature=None if signature is None else _signature(entry, signature),
    )
    entry.finish()
    _check(entry, bug)
    return bug


def _symptoms(case: Table) -> tuple[Symptom, ...]:
    symptoms = tuple(Symptom(what=what, observed=observed) for what, observed in case.alternatives().items())
    if not symptoms:
        raise case.error("names no statement that is violated")
    unlimited = [
        each for each in symptoms if not each.what.strip("* ") or any(not one.strip("* ") for one in each.observed)
    ]
    if unlimited:
        raise case.error(f"{unlimited[0].what!r} fits whatever is observed")
    return symptoms


def _signature(entry: Table, name: str) -> Signature:
    if name not in set(Signature):
        raise entry.error(f"signature is {name!r}; known are {', '.join(Signature)}")
    return Signature(name)


def _check(entry: Table, bug: KnownBug) -> None:
    """Check rules that concern several fields."""
    foreign = [name for name in bug.jira if not _JIRA.fullmatch(name)]
    if foreign:
        raise entry.error(f"jira {foreign} is not KAFKA- and a number")
    if not bug.bad:
        raise entry.error("bad is empty; name at least one release on which it was seen")
    try:
        backwards = [bad for bad in bug.bad if not releases.within(bad.last, bad.first, None)]
        fixed_but_bad = [release for release in bug.fixed_in if affects(bug, release)]
    except ReleaseError as error:
        raise entry.error(str(error)) from error
    if backwards:
        raise entry.error(f"the range from {backwards[0].first} to {backwards[0].last} runs backwards")
    if fixed_but_bad:
        raise entry.error(f"{fixed_but_bad[0]} is in a bad range and in fixed_in")
    if bug.signature is not None and not bug.anomalies:
        raise entry.error("has a signature but no anomaly that it could name")
