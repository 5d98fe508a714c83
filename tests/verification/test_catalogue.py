"""Loading the catalogue: which subjects a requirement applies to, and how mistakes in the data are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verification.requirements.catalogue import FAMILIES, applies_to, load
from verification.vocabulary import releases
from verification.vocabulary.errors import CatalogueError, ReleaseError

CATALOGUE = load()


@pytest.mark.parametrize(
    ("name", "release", "transaction_version", "expected"),
    [
        ("IDEMP-28", "2.4.0", None, True),
        ("TXN-05", "2.4.1", None, False),
        ("TXN-05", "2.5.0", None, True),
        ("TXN-27", "4.0.0", 2, True),
        ("TXN-27", "4.3.1", 1, False),
        ("TXN-27", "4.3.1", None, False),
        ("TXN-27", "3.9.2", 2, False),
        ("REC-14", "3.9.2", None, True),
        ("REC-14", "4.0.0", 0, False),
        ("REC-13", "3.10.0", None, True),
        ("ISO-14", "2.4", None, True),
    ],
)
def test_applies_to(name: str, release: str, transaction_version: int | None, expected: bool) -> None:
    """A requirement applies within its releases, ends included, and from its transaction.version on."""
    assert applies_to(CATALOGUE[name], release, transaction_version) is expected


@pytest.mark.parametrize("release", ["", "latest", "4", "4.3.x", "4.3.1-rc0", "4..1", "1.2.3.4.5", "٤.٣.١"])
def test_a_release_that_is_none_is_refused(release: str) -> None:
    """Text that is no version number is refused in a sentence that quotes it."""
    with pytest.raises(ReleaseError, match="is not a Kafka release"):
        releases.parse(release)


def _planted(directory: Path, entry: str) -> Path:
    for name in FAMILIES:
        header = '[family]\ntitle = "t"\nabout = "a"\n'
        body = entry if name == "IDEMP" else ""
        (directory / f"{name.lower()}.toml").write_text(header + body, encoding="utf-8")
    return directory


GOOD = {
    "level": '"MUST"',
    "protects": '"records"',
    "text": '"It must be so."',
    "observable": '"NONE (0)."',
    "source": '["KIP-98"]',
    "applies": '{ since = "2.4.0" }',
    "decided": '"deterministic"',
    "how": '["RAW"]',
}


def _entry(identity: str = "IDEMP-01", **changed: str | None) -> str:
    fields = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    return f"[{identity}]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())


def test_a_planted_catalogue_loads(tmp_path: Path) -> None:
    """The planted entry is good before anything is broken; wrapped texts lose their line breaks."""
    loaded = load(_planted(tmp_path, _entry(text='"""It must\nbe so."""')))
    assert loaded["IDEMP-01"].text == "It must be so."
    assert loaded["IDEMP-01"].forbids == ()


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (_entry("IDEMP-1"), "the id is not IDEMP- and two digits"),
        (_entry("TXN-01"), "the id is not IDEMP- and two digits"),
        (_entry(level='"SHALL"'), "level is 'SHALL'; known are MUST, SHOULD, INFO"),
        (_entry(protects=None), "protects is missing"),
        (_entry(protects='"data"'), "protects is 'data'; known are records, progress, contract"),
        (_entry(protects='"contract"', forbids='["stuck-lso"]'), "protects only the contract and forbids something"),
        (_entry(text=None), "text is missing"),
        (_entry(text='"  "'), "text is not a text"),
        (_entry(source="[]"), "source is empty"),
        (_entry(source='["a blog"]'), "is of no known kind"),
        (_entry(how="[]"), "how is empty"),
        (_entry(how='["GUESS"]'), "how is 'GUESS'"),
        (_entry(applies=None), "applies is missing"),
        (_entry(applies='"all"'), "is not a table"),
        (_entry(applies='{ since = "all" }'), "'all' is not a Kafka release"),
        (_entry(applies='{ since = "2.4.0", untl = "3.9" }'), "has unknown fields: untl"),
        (_entry(applies='{ since = "4.0.0", transaction_version = 3 }'), "transaction_version is neither"),
        (_entry(applies='{ since = "4.0.0", transaction_version = "2" }'), "is not an integer"),
        (_entry(applies='{ since = "4.0.0", until = "3.9" }'), "ends before it begins"),
        (_entry(decided='"untested"'), "without a reason_untested"),
        (_entry(reason_untested='"No way."'), "has a reason_untested although"),
        (_entry(forbids='["data-loss"]'), "forbids is 'data-loss'; known are lost-write"),
        (_entry(forbids='["duplicate", "duplicate"]'), "forbids names something twice"),
        (_entry(level='"INFO"', forbids='["duplicate"]'), "INFO describes and never fails"),
        (_entry(forbid='["duplicate"]'), "has unknown fields: forbid"),
    ],
)
def test_a_mistake_is_named_by_file_and_entry(tmp_path: Path, entry: str, complaint: str) -> None:
    """Every mistake in an entry ends in one sentence that names the file, the entry and the field."""
    identity = re.match(r"\[(.*?)\]", entry)
    with pytest.raises(CatalogueError) as raised:
        load(_planted(tmp_path, entry))
    assert identity is not None
    assert str(raised.value).startswith(f"idemp.toml, {identity[1]}")
    assert complaint in str(raised.value)


@pytest.mark.parametrize("entry", [_entry() + _entry(), "this is not TOML"])
def test_a_broken_file_is_named(tmp_path: Path, entry: str) -> None:
    """An id that is declared twice, or no TOML at all, is reported with the file's name."""
    with pytest.raises(CatalogueError, match=r"^idemp\.toml is not valid TOML"):
        load(_planted(tmp_path, entry))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A family without a file is reported with the file's name."""
    with pytest.raises(CatalogueError, match=r"^idemp\.toml cannot be read"):
        load(tmp_path)
