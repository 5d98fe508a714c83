"""Keys and counts of outputs: read from values, written and read back, and refused by name if the file is not whole."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.planted import counts
from tests.support.planted.files import write
from verification.evidence.counts_file import key_and_count
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.experiment import UnfitExperimentError, read

IDENTITY = b"i" * 96


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b" 1 a", ("a", 1)),
        (b" 0012 schl\xc3\xbcssel", ("schlüssel", 12)),
        (b" 7 key then anything \xff\n", ("key", 7)),
        (b" 7 key ", ("key", 7)),
        (b" 999999999999999999 " + b"k" * 64, ("k" * 64, 10**18 - 1)),
        *(
            (said, (None, None))
            for said in (
                *(b"", b" ", b" 1", b" 1 ", b"1 a", b"  1 a", b" one a", b" -1 a", b" 1  a", b" 1 \xff"),
                *(b" 1 " + b"k" * 65, b" 1000000000000000000 a", b"............"),
            )
        ),
    ],
)
def test_key_and_count_stand_behind_the_identity(said: bytes, expected: tuple[str | None, int | None]) -> None:
    """A space, the count, a space, the key; anything else is none, even if it is nearly that."""
    assert key_and_count(IDENTITY + said) == expected


def test_a_value_without_identity_has_no_count() -> None:
    """It is too short to have one."""
    assert key_and_count(b"") == key_and_count(b" 1 a") == (None, None)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A run that counts, on disk."""
    return write(counts.counted("counts")[0], tmp_path / "run")


def test_counts_are_read_back(directory: RunDirectory) -> None:
    """All of them with their places."""
    plant, _ = counts.counted("counts")
    by_place = sorted(plant.rows["counts"], key=lambda row: (row["partition"], row["offset"]))
    assert list(read_run(directory).counts) == by_place


def _lines(directory: RunDirectory, *lines: Any) -> None:
    with gzip.open(directory.counts, "wt", encoding="utf-8") as text:
        text.writelines(json.dumps(line) + "\n" for line in lines)


def _of(partition: int, *offsets: int) -> dict[str, Any]:
    return {"topic_index": 1, "partition": partition, "counts": [[offset, "a", 1] for offset in offsets]}


def test_a_file_that_is_not_whole_is_refused(directory: RunDirectory) -> None:
    """Missing, cut, without a partition, with one of another topic, twice, out of order, and with a text as a count."""
    directory.counts.write_bytes(directory.counts.read_bytes()[:-9])
    with pytest.raises(UnfitEvidenceError, match=r"counts\.jsonl\.gz cannot be read as counts"):
        read_run(directory)
    wrong = [_of(0) | {"counts": [[1, "a", "1"]]}, _of(1)]
    for lines in (
        [_of(0)],
        [_of(0), _of(1), _of(0)],
        [_of(0), _of(2)],
        [_of(0, 3, 2), _of(1)],
        [_of(0, 3, 3), _of(1)],
        wrong,
    ):
        _lines(directory, *lines)
        with pytest.raises(UnfitEvidenceError, match=r"counts\.jsonl\.gz"):
            read_run(directory)
    _lines(directory, _of(0, 2, 5), _of(1))
    assert [row["offset"] for row in read_run(directory).counts] == [2, 5]
    directory.counts.unlink()
    with pytest.raises(UnfitEvidenceError, match=r"counts\.jsonl\.gz cannot be read as counts"):
        read_run(directory)


def test_no_file_is_needed_where_nothing_counts(directory: RunDirectory) -> None:
    """As in evidence of earlier versions, whose topics have no shape."""
    directory.counts.unlink()
    body = json.loads(directory.experiment.read_text(encoding="utf-8"))
    for topic in body["topics"]:
        del topic["shape"]
    directory.experiment.write_text(json.dumps(body), encoding="utf-8")
    assert read_run(directory).counts == ()


def test_a_shape_that_cannot_be_judged_is_refused(tmp_path: Path) -> None:
    """An unknown one, and one of a topic whose outputs name no input in their values."""
    experiment = counts.counted("counts")[0].experiment
    path = tmp_path / "scenario.json"
    for change in ({"shape": "sum"}, {"reference": ""}, {"reference": "key"}):
        topics = [asdict(experiment.topics[0]), asdict(experiment.topics[1]) | change]
        path.write_text(json.dumps({"format": 1, **asdict(experiment), "topics": topics}), encoding="utf-8")
        with pytest.raises(UnfitExperimentError, match=re.escape("which is not known or needs the reference 'value'")):
            read(path)
    with pytest.raises(ValueError, match="topic out has the shape 'counted'"):
        replace(experiment, topics=(experiment.topics[0], replace(experiment.topics[1], reference="")))


def test_a_claim_that_cannot_be_judged_is_refused(tmp_path: Path) -> None:
    """Evidence without a claim is of exactly-once, as that of earlier versions."""
    body = {"format": 1, **asdict(counts.counted("counts")[0].experiment)}
    path = tmp_path / "scenario.json"
    for claim, sentence in (("at-most-once", "must be one of exactly-once, at-least-once"), (1, "semantics")):
        path.write_text(json.dumps({**body, "semantics": claim}), encoding="utf-8")
        with pytest.raises(UnfitExperimentError, match=sentence):
            read(path)
    del body["semantics"]
    path.write_text(json.dumps(body), encoding="utf-8")
    assert read(path).semantics == "exactly-once"
