"""The log of a second cluster: written and read back, refused by name if it is not whole, and KB-16 there named from it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.planted import counts
from tests.support.planted.files import write
from verification.evidence import peer_file
from verification.evidence.peer_file import PeerPartition, PeerRow
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.vocabulary.errors import UnfitEvidenceError

ROWS = (PeerRow(0, 5, 1, None, 7), PeerRow(1, 5, 2, "abort", None))
LINES = (
    PeerPartition(topic="home.orders", partition=0, high_watermark=2, last_stable_offset=2, rows=ROWS),
    PeerPartition(topic="home.orders", partition=1, high_watermark=0, last_stable_offset=0, rows=()),
)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A run of a pipeline, on disk, without this file."""
    return write(counts.counted("peer")[0], tmp_path / "run")


def test_the_log_is_read_back(directory: RunDirectory) -> None:
    """All of it; no file is needed."""
    assert read_run(directory).peer == ()
    peer_file.write(directory.peer, LINES)
    assert read_run(directory).peer == LINES


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 5, 1, None, 7], [1, 5, 1, None, 8]],
        [[2, 5, 1, None, 7], [1, 5, 1, None, 8]],
        [[1, 5, 1, "perhaps", None]],
        [[1, 5, 1, None]],
        [[1, 5, 1, None, "7"]],
        [1],
    ],
)
def test_a_file_that_is_not_one_is_refused(directory: RunDirectory, rows: Any) -> None:
    """Offsets that do not rise, an unknown decision, a row of another form; and a file that is cut."""
    with gzip.open(directory.peer, "wt", encoding="utf-8") as text:
        ends = {"high_watermark": 3, "last_stable_offset": 3}
        text.write(json.dumps({"topic": "home.orders", "partition": 0, **ends, "rows": rows}))
    with pytest.raises(UnfitEvidenceError, match=r"peer\.jsonl\.gz"):
        read_run(directory)


def test_a_cut_file_is_refused(directory: RunDirectory) -> None:
    """Its last bytes are missing."""
    peer_file.write(directory.peer, LINES)
    directory.peer.write_bytes(directory.peer.read_bytes()[:-9])
    with pytest.raises(UnfitEvidenceError, match=r"peer\.jsonl\.gz cannot be read as the log of a second cluster"):
        read_run(directory)
