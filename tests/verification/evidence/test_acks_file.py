"""Reading files of acknowledgements: lines as we write them and other valid JSON; broken lines are refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.planted.writes import clean
from verification.evidence import acks_file
from verification.evidence.acks_file import operations
from verification.evidence.assumptions import log_starts
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.quiescent_state import PartitionEnd, QuiescentState

ACKS = [[0, 0, 0, 1000, "ok"], [1, 0, 0, -1, "info"], [2, 1, 11, 9_000_000_000, "fail"]]
WHOLE = [
    json.dumps({"operation": 7, "acks": ACKS}, separators=(",", ":")),
    json.dumps({"operation": 7, "acks": ACKS}),
    json.dumps({"operation": 7, "acks": []}),
    json.dumps({"acks": ACKS, "operation": 7}),
    json.dumps({"operation": 7, "acks": ACKS, "more": True}),
    json.dumps({"operation": 7, "acks": [["0", "1", "2", "3", "ok"]]}),
]
BROKEN = [
    "",
    '{"operation":7,"acks":[[0,1,2,3,"ok"]]',
    '{"operation":7,"acks":[[0,1,2,3,"ok"],]}',
    '{"operation":7,"acks":[[0,1,2,3,"ok"][1,1,2,3,"ok"]]}',
    '{"operation":7,"acks":[[0,1,2,03,"ok"]]}',
    '{"operation":7,"acks":[[0,1,2,,"ok"]]}',
    '{"operation":7,"acks":[[0,1,2,3,"ok"]]}{}',
    '{"operation":7,"acks":[[0,1,2,"ok"]]}',
    '{"operation":7,"acks":[[0,1,2,3,4,"ok"]]}',
    '{"operation":7}',
]


def _starts(start: int) -> dict[tuple[int, int], int]:
    """Those of a run whose first partition begins at `start`."""
    experiment = clean("starts")[0].experiment
    end = PartitionEnd(
        topic=experiment.topics[0].name, partition=0, start=start, high_watermark=9, last_stable_offset=9
    )
    captures = QuiescentState(ends=(end,), group_offsets=(), coordinator_states=(), open_producers=())
    return log_starts(experiment, captures)


def _file(folder: Path, *lines: str) -> Path:
    path = folder / "3.jsonl.gz"
    path.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))
    return path


@pytest.mark.parametrize("start", [0, 1])
def test_every_line_says_its_operation(tmp_path: Path, start: int) -> None:
    """Fields in any order, blanks anywhere, many acknowledgements or none."""
    path = _file(tmp_path, *WHOLE)
    assert operations(path, _starts(start)).tolist() == [7] * len(WHOLE)
    assert not len(operations(_file(tmp_path), _starts(start)))


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_line_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    """Invalid JSON, and acknowledgements without exactly five entries."""
    with pytest.raises(UnfitEvidenceError, match=r"3\.jsonl\.gz: line 3 holds no acknowledgements"):
        operations(_file(tmp_path, WHOLE[0], WHOLE[1], line, WHOLE[0]), _starts(0))


def test_what_was_deleted_is_refused_in_usual_lines_too(tmp_path: Path) -> None:
    """An acknowledged offset below the beginning of its log."""
    with pytest.raises(UnfitEvidenceError, match="begins at 4"):
        operations(_file(tmp_path, '{"operation":7,"acks":[[0,0,0,3,"ok"]]}'), _starts(4))


def test_lines_are_counted_across_what_is_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For pieces of any size, with and without a newline at the end; the error names the broken line."""
    lines = [json.dumps({"operation": each, "acks": ACKS}, separators=(",", ":")) for each in range(-2, 1_000)]
    lines[3] = json.dumps({"acks": [], "operation": 10**18 + 1})
    wanted = [*range(-2, 1), 10**18 + 1, *range(2, 1_000)]
    path = _file(tmp_path, *lines)
    for size in (1, 7, 100, 1 << 20):
        monkeypatch.setattr(acks_file, "PIECE_BYTES", size)
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
        assert operations(path, _starts(0)).tolist() == wanted
        with pytest.raises(UnfitEvidenceError, match=r"line 1003 holds no"):
            operations(_file(tmp_path, *lines, json.dumps({"operation": 1 << 63, "acks": []})), _starts(0))


def _rows(lines: list[str]) -> list[dict[str, object]]:
    """The acknowledgements in lines, by a parser of JSON."""
    rows = []
    for body in map(json.loads, lines):
        for *numbers, outcome in body["acks"]:
            said = (int(body["operation"]), *map(int, numbers), outcome)
            rows.append(dict(zip(acks_file.ACKS.names, said, strict=True)))
    return rows


@pytest.mark.parametrize("size", [1, 50, 1 << 20])
def test_every_acknowledgement_is_what_a_parser_of_json_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """For lines as we write them and others, for all operations and for some, with any number of records."""
    monkeypatch.setattr(acks_file, "PIECE_BYTES", size)
    odd = ["null", "nan", "true", "x"]
    lines = [*WHOLE, json.dumps({"operation": 8, "acks": [[0, 0, 0, -1, each] for each in odd]}), WHOLE[2]]
    lines += [
        line.replace('"operation": 7', '"operation": -9').replace('"operation":7', '"operation":-9') for line in lines
    ]
    path = _file(tmp_path, *lines)
    every = _rows(lines)

    def read(wanted: list[int] | None) -> list[dict[str, object]]:
        return [row for batch in acks_file.acks(path, wanted) for row in batch.to_pylist()]

    def ordered(rows: list[dict[str, object]]) -> list[str]:
        return sorted(map(repr, rows))

    assert ordered(read(None)) == ordered(every)
    assert ordered(read([8, -9, 10])) == ordered([row for row in every if row["operation"] in (8, -9)])
    assert read([]) == []


def test_a_file_that_is_cut_is_no_shorter_file(tmp_path: Path) -> None:
    """A missing end of the gzip stream is an error."""
    path = _file(tmp_path, *WHOLE * 100)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(EOFError):
        operations(path, _starts(0))
