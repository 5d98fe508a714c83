"""The known bugs: their releases, the citations of entries, and the errors for mistakes in the data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verification.known_bugs.catalogue import BugKind, KnownBug, Reach, Signature, Symptom, affects, load
from verification.known_bugs.exposure import Library, TransactionUse
from verification.requirements.catalogue import Protects
from verification.requirements.catalogue import load as load_catalogue
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.errors import KnownBugsError
from verification.vocabulary.releases import parse

BUGS = load()
EVERY = pytest.mark.parametrize("bug", BUGS.values(), ids=lambda each: each.id)

# The releases on which each check was run, and its result: V violated, . held or not applicable.
RELEASES = (
    "2.4.0",
    "2.4.1",
    "2.5.1",
    "2.6.0",
    "2.7.2",
    "2.8.0",
    "2.8.1",
    "2.8.2",
    "3.0.0",
    "3.1.0",
    "3.2.0",
    "3.2.1",
    "3.5.2",
    "3.6.0",
    "3.6.2",
    "3.7.0",
    "3.7.1",
    "3.8.1",
    "3.9.2",
    "4.0.0",
    "4.0.1",
    "4.0.2",
    "4.1.2",
    "4.2.0",
    "4.2.1",
    "4.3.1",
    "4.4.0",
)
#: Releases on which no single check was run, but the whole suite of protocol cases.
SWEPT = {"3.3.2"}
#: The anomalies that lose, double or show no record.
PROGRESS = {
    *(Anomaly.HUNG_TRANSACTION, Anomaly.STUCK_LSO, Anomaly.LOST_NODE, Anomaly.STRANDED_PRODUCER),
    Anomaly.NO_PROGRESS,
}
SEEN = {
    "KB-01": "VVVVVVVVVVVVV..............",
    "KB-02": "VVVVVVVVVVVVVVV............",
    "KB-03": "VVVVVVVVVVVVVVVVVVVVVVVVVVV",
    "KB-04": "VVVVVVVVVVVVVVVVVVVVVVVVVVV",
    "KB-05": "..VVVVVVVVVVVVVVVVVVVVVVVVV",
    "KB-06": "VVVVVVV.VV.................",
    "KB-07": "VVV........................",
    "KB-08": "VVVVVVVVVVVVVVVV...........",
    "KB-09": "...................VVVV....",
    "KB-10": ".......................V.. ",
    "KB-11": "...................VVV.....",
    "KB-12": ".............V V.......... ",
    "KB-16": ".........................VV",
    "KB-17": ".............VVVVVVVVVVVVVV",
}


def test_ids_are_permanent() -> None:
    """KB-01 to KB-43 are there in order; an id is never reused or dropped."""
    assert list(BUGS) == [f"KB-{number:02d}" for number in range(1, 44)]


@pytest.mark.parametrize("identity", SEEN)
def test_ranges_equal_what_was_seen(identity: str) -> None:
    """The ranges reproduce the matrix of the releases on which the bug was looked for."""
    told = zip(RELEASES, SEEN[identity], strict=True)
    looked_at = {release: seen == "V" for release, seen in told if seen != " "}
    assert {release: affects(BUGS[identity], release) for release in looked_at} == looked_at


@EVERY
def test_range_ends_were_run(bug: KnownBug) -> None:
    """Both ends of a range are releases on which a check was run, because ranges are measured."""
    assert {end for bad in bug.bad for end in (bad.first, bad.last)} <= SWEPT.union(RELEASES)


@EVERY
def test_entries_are_sentences(bug: KnownBug) -> None:
    """Titles are headings without a full stop, mechanisms paragraphs, conditions and reasons one sentence.

    A harm goes on after "Kafka can".
    """
    assert re.fullmatch(r"[a-z][^:;\n]*[^.:;\n ]", bug.harm)
    assert len(bug.harm.split()) <= 25
    assert re.match(r"[A-Z0-9].*[^.]$", bug.title)
    assert bug.mechanism.endswith(".")
    assert len(bug.mechanism.split()) > 40
    assert bug.condition is None or bug.condition.endswith(".")
    assert re.fullmatch(r"[A-Z][^.]*(\.[0-9][^.]*)*\.", bug.reason)
    assert len(bug.reason.split()) <= 25


@EVERY
def test_a_bug_puts_no_less_at_risk_than_it_shows(bug: KnownBug) -> None:
    """A bug with an anomaly puts records or progress at risk, and records where an anomaly is about records."""
    if set(bug.anomalies) - PROGRESS:
        assert bug.impact is Protects.RECORDS
    elif bug.anomalies:
        assert bug.impact is not Protects.CONTRACT


@EVERY
def test_requirements_exist_and_forbid_what_the_bug_shows(bug: KnownBug) -> None:
    """A bug cites existing requirements, and each anomaly that it may show is forbidden by some requirement."""
    catalogue = load_catalogue()
    assert bug.requirements
    assert set(bug.requirements) <= catalogue.keys()
    forbidden = {anomaly for requirement in catalogue.values() for anomaly in requirement.forbids}
    assert set(bug.anomalies) <= forbidden


def test_few_bugs_name_findings() -> None:
    """These alone have signatures, so that no other entry is ever attached to a finding."""
    assert {bug.id: bug.signature for bug in BUGS.values() if bug.signature is not None} == {
        "KB-10": Signature.MARKER_REFUSED_BY_OLDER_LEADER,
        "KB-12": Signature.VERIFIED_BY_OLDER_COORDINATOR,
        "KB-16": Signature.MARKER_DROPPED_WHILE_LEADERLESS,
        "KB-17": Signature.REFUSED_DUPLICATE,
        "KB-40": Signature.LOWERED_TRANSACTION_VERSION,
        "KB-41": Signature.REPEATED_IN_A_LATER_EPOCH,
        "KB-42": Signature.PRODUCER_ID_ISSUED_TWICE,
        "KB-43": Signature.ACTED_ON_A_LOST_DECISION,
    }


def test_the_marker_bug_is_the_newest_releases_own() -> None:
    """KB-16 was seen on 4.3.1 and on none of the releases that passed the same recipe."""
    marker_bug = BUGS["KB-16"]
    assert affects(marker_bug, "4.3.1")
    assert not any(affects(marker_bug, release) for release in ("3.9.2", "4.0.1", "4.1.2", "4.2.1"))
    assert {Anomaly.STUCK_LSO, Anomaly.HIDDEN_COMMITTED, Anomaly.TORN_TRANSACTION} <= set(marker_bug.anomalies)


def test_kinds_tell_defects_from_design() -> None:
    """Weaknesses of TV1, unclean elections and timeouts are limitations; planted configurations are controls."""
    others = {bug.id: bug.kind for bug in BUGS.values() if bug.kind is not BugKind.BUG}
    assert others == {
        "KB-03": BugKind.LIMITATION,
        "KB-04": BugKind.LIMITATION,
        "KB-13": BugKind.LIMITATION,
        "KB-14": BugKind.CONTROL,
        "KB-41": BugKind.LIMITATION,
    }


@EVERY
def test_exposure_agrees_with_the_sentences_on_whom_it_concerns(bug: KnownBug) -> None:
    """A sentence that limits a bug to a protocol or a client is not contradicted by the values, on every release."""
    text = " ".join((bug.condition or "", *bug.advice.concerns.points))
    exposure = bug.exposure
    if "protocol 2" in text or "transaction.version 2" in text:
        assert TransactionUse.TV2 in exposure.transactions
    if re.search(r"only (a )?broken|no client library", text, re.IGNORECASE) and bug.reach is Reach.CONTRIVED:
        assert exposure.libraries == ()
    if "Java" in text and "librdkafka" not in text and "confluent" not in text:
        assert exposure.libraries == (Library.JAVA,)
    if all(parse(bad.last)[0] < 4 for bad in bug.bad):
        assert TransactionUse.TV2 not in exposure.transactions, "TV2 begins with 4.0"


GOOD = {
    "title": '"Something is lost"',
    "harm": '"lose something"',
    "kind": '"bug"',
    "bad": '[["2.4.0", "2.5.1"]]',
    "fixed_in": '["2.6.0"]',
    "anomalies": '["lost-write"]',
    "requirements": '["IDEMP-28"]',
    "impact": '"records"',
    "reach": '"ordinary"',
    "reason": '"A crash is enough."',
    "mechanism": '"It is forgotten."',
    "exposure": '{libraries = ["Java"], transactions = ["TV2"], replication = "any"}',
    "advice": "{"
    + ", ".join(f'{part} = {{points = ["not known"]}}' for part in ("concerns", "avoid", "alert", "repair"))
    + "}",
}


def _planted(directory: Path, identity: str = "KB-01", **changed: str | None) -> Path:
    fields = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    path = directory / "planted.toml"
    text = f"[{identity}]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())
    path.write_text(text, encoding="utf-8")
    return path


def test_a_planted_bug_loads(tmp_path: Path) -> None:
    """The planted entry is good before anything is broken."""
    bug = load(_planted(tmp_path))["KB-01"]
    assert (bug.signature, bug.impact, bug.reach) == (None, Protects.RECORDS, Reach.ORDINARY)


def test_the_symptoms_of_a_case_keep_their_order(tmp_path: Path) -> None:
    """The first is the one that must be there; each is observed as one text or another."""
    cases = '{some-case = {"the next batch" = ["NONE (0)", "-1"], "the log" = "[]"}}'
    assert load(_planted(tmp_path, cases=cases))["KB-01"].cases == {
        "some-case": (
            Symptom(what="the next batch", observed=("NONE (0)", "-1")),
            Symptom(what="the log", observed=("[]",)),
        )
    }


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"identity": "KB-1"}, "planted.toml, KB-1: the id is not KB- and two digits"),
        ({"kind": '"feature"'}, "planted.toml, KB-01: kind is 'feature'"),
        ({"jira": '["15591"]'}, "is not KAFKA- and a number"),
        ({"bad": None}, "bad is not a list of pairs of texts"),
        ({"bad": '["2.4.0"]'}, "bad is not a list of pairs of texts"),
        ({"bad": "[]"}, "bad is empty"),
        ({"bad": '[["2.5.1", "2.4.0"]]'}, "the range from 2.5.1 to 2.4.0 runs backwards"),
        ({"bad": '[["old", "2.4.0"]]'}, "'old' is not a Kafka release"),
        ({"fixed_in": '["2.5.0"]'}, "2.5.0 is in a bad range and in fixed_in"),
        ({"anomalies": '["loss"]'}, "anomalies is 'loss'"),
        ({"signature": '"looks-like-it"'}, "signature is 'looks-like-it'; known are marker-dropped"),
        (
            {"signature": '"marker-dropped-while-leaderless"', "anomalies": "[]"},
            "has a signature but no anomaly",
        ),
        ({"impact": None}, "impact is missing"),
        ({"impact": '"data"'}, "impact is 'data'; known are records, progress, contract"),
        ({"reach": None}, "reach is missing"),
        ({"reach": '"likely"'}, "reach is 'likely'; known are ordinary, rare, contrived"),
        ({"reason": None}, "reason is missing"),
        ({"mechanism": None}, "mechanism is missing"),
        ({"cases": '["some-case"]'}, "is not a table"),
        ({"cases": "{some-case = {}}"}, "names no statement that is violated"),
        ({"cases": '{some-case = {"the log" = 1}}'}, "the log is not a text"),
        ({"cases": '{some-case = {"the log" = "**"}}'}, "'the log' fits whatever is observed"),
        ({"cases": '{some-case = {"*" = "NONE (0)"}}'}, "'*' fits whatever is observed"),
        ({"severity": '"high"'}, "has unknown fields: severity"),
        ({"exposure": None}, "exposure is missing"),
        ({"exposure": '{transactions = [], replication = "any"}'}, "KB-01.exposure: names no protocol"),
        ({"exposure": '{transactions = ["TV3"], replication = "any"}'}, "KB-01.exposure: transactions is 'TV3'"),
        (
            {"exposure": '{transactions = ["TV2"], replication = "3"}'},
            "KB-01.exposure: replication is '3'; known are any",
        ),
        ({"exposure": '{transactions = ["TV2"], replication = "any", brokers = 3}'}, "unknown fields: brokers"),
    ],
)
def test_a_mistake_is_named_by_file_and_entry(tmp_path: Path, changed: dict[str, str | None], complaint: str) -> None:
    """Every mistake in an entry ends in one sentence that names the file, the entry and the field."""
    identity = changed.get("identity") or "KB-01"
    fields = {name: value for name, value in changed.items() if name != "identity"}
    with pytest.raises(KnownBugsError) as raised:
        load(_planted(tmp_path, identity, **fields))
    assert re.match(rf"planted\.toml, {identity}(\.(cases|exposure)[^:]*)?: ", str(raised.value))
    assert complaint in str(raised.value)
