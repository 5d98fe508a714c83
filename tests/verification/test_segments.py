"""Segment files are read as Fetch would answer them; other bytes are a tail by rule, or damage with its own error."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.planted import log as planted_log
from verification.replicas.directory import replica, replicas
from verification.replicas.segments import SegmentLog
from verification.vocabulary.errors import DataDirectoryError, SegmentChecksumError, SegmentDamagedError
from wire.records import HEADER, Batch, decode

PARTS = planted_log.batches()
BATCHES = [next(decode(part)) for part in PARTS]
END = BATCHES[-1].next_offset
REAL = ROOT / "tests" / "support" / "real_segments" / "4.3.1" / "__transaction_state-0"


def read(
    folder: Path, *, chunk: int = 1 << 20, start: int = 0, end: int | None = None
) -> tuple[SegmentLog, list[Batch]]:
    log = SegmentLog(segments=tuple(sorted(folder.glob("*.log"))), start=start, end=end, chunk_bytes=chunk)
    return log, list(log)


def written(folder: Path, each: int = 20) -> list[Path]:
    """The planted log in segments of so many batches."""
    planted_log.write_segments(folder, PARTS, each=each)
    return sorted(folder.glob("*.log"))


@pytest.mark.parametrize("chunk", [1, 61, 700, 1 << 20])
@pytest.mark.parametrize("each", [1, 7, 1000])
def test_segments_are_one_log(tmp_path: Path, chunk: int, each: int) -> None:
    """However the log is cut into files and the files into chunks, its batches come in order and no tail is left."""
    written(tmp_path, each)
    log, found = read(tmp_path, chunk=chunk)
    assert found == BATCHES
    assert (log.position, log.tail) == (END, None)


def test_a_part_of_a_log_is_the_batches_that_reach_into_it(tmp_path: Path) -> None:
    """Every range gives the batches that hold one of its offsets, wherever segments begin."""
    written(tmp_path, 9)
    for start in range(0, END, 7):
        for end in range(start + 1, END + 1, 11):
            log, found = read(tmp_path, start=start, end=end)
            assert found == [each for each in BATCHES if each.next_offset > start and each.base_offset < end]
            assert log.position >= end


@pytest.mark.parametrize("kept", [1, 11, 16, HEADER.size - 1, HEADER.size, -1])
def test_a_torn_tail_ends_the_log(tmp_path: Path, kept: int) -> None:
    """The beginning of a batch at the end of the active segment is left out, and the tail describes it."""
    last = written(tmp_path)[-1]
    whole, torn = last.read_bytes()[: -len(PARTS[-1])], PARTS[-1][:kept]
    last.write_bytes(whole + torn)
    log, found = read(tmp_path, chunk=100)
    assert found == BATCHES[:-1]
    assert log.tail is not None
    assert (log.tail.position, log.tail.size, log.tail.path) == (len(whole), len(torn), last)
    assert log.position == BATCHES[-1].base_offset


@pytest.mark.parametrize("zeros", [1, 60, 61, 5000])
def test_zeros_behind_the_log_are_room_and_not_damage(tmp_path: Path, zeros: int) -> None:
    """A file that was allocated in advance ends where its batches end."""
    last = written(tmp_path)[-1]
    last.write_bytes(last.read_bytes() + bytes(zeros))
    log, found = read(tmp_path, chunk=1000)
    assert found == BATCHES
    assert log.tail is not None
    assert log.tail.zeros
    assert log.tail.size == zeros


def cut_off(raw: bytes) -> bytes:
    return raw[:-3]


def flipped(raw: bytes) -> bytes:
    return raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:]


def repeated(raw: bytes) -> bytes:
    return raw + PARTS[0]


def garbage(raw: bytes) -> bytes:
    return raw + b"no batch of any kind " * 10


def lying(raw: bytes) -> bytes:
    return raw + struct.pack(">qi", END, -5) + PARTS[0][12:]


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (cut_off, SegmentDamagedError, "is cut off at byte"),
        (flipped, SegmentChecksumError, "does not have the CRC"),
        (repeated, SegmentDamagedError, "the batch at offset 0 follows where"),
        (garbage, SegmentDamagedError, "only v2 can be read"),
        (lying, SegmentDamagedError, "bytes"),
    ],
)
def test_damage_is_refused_by_name_after_what_came_before_it(
    tmp_path: Path, spoil: Callable[[bytes], bytes], error: type[Exception], said: str
) -> None:
    """A sealed segment that is not whole raises its own error with file and byte; the batches before are given."""
    first = written(tmp_path)[0]
    first.write_bytes(spoil(first.read_bytes()))
    log = SegmentLog(segments=tuple(sorted(tmp_path.glob("*.log"))))
    found: list[Batch] = []
    with pytest.raises(error, match=rf"{first.name}.*{said}"):
        found.extend(log)
    kept = 19 if spoil in (cut_off, flipped) else 20
    # The generator gave them one by one before it raised, and `extend` keeps them.
    assert found == BATCHES[:kept]


@pytest.mark.parametrize("spoil", [flipped, repeated, garbage, lying])
def test_damage_in_the_active_segment_is_no_torn_tail(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    """Only a missing end is allowed there: a wrong batch that is whole, and bytes that are no batch, are damage."""
    last = written(tmp_path)[-1]
    last.write_bytes(spoil(last.read_bytes()))
    with pytest.raises(SegmentDamagedError, match=last.name):
        read(tmp_path)


def test_a_real_segment_is_read_to_its_end() -> None:
    """A file that Kafka 4.3.1 left when it was killed: every batch is whole and sound, one after the other."""
    log, found = read(REAL)
    assert (log.position, log.tail) == (223, None)
    assert [each.base_offset for each in found[1:]] == [each.next_offset for each in found[:-1]]
    assert sum(len(each.records()) for each in found) == 223


def test_a_data_directory_says_what_it_holds(tmp_path: Path) -> None:
    """Replicas with their checkpoints; directories on their way out, files and the quorum's own log are none."""
    at = ("some-topic.v2", 11)
    directory = planted_log.data_directory(tmp_path, 4, high_watermark={at: 30}, log_start={at: 3}, cleaned={at: 9})
    folder = directory / "some-topic.v2-11"
    planted_log.write_segments(folder, PARTS, each=20)
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: xNibfr4OQJiU-OtbdFWNfw\n")
    (folder / "00000000000000000000.log.deleted").write_bytes(b"gone")
    for name in ("__cluster_metadata-0", f"old-0.{'a' * 32}-delete", f"old-0.{'a' * 32}-future", "other-1-stray"):
        planted_log.write_segments(directory / name, PARTS[:1])
    (held,) = replicas(directory)
    assert (held.holder, held.topic, held.partition, held.topic_id) == ("broker 4", *at, "xNibfr4OQJiU-OtbdFWNfw")
    assert (held.high_watermark, held.log_start, held.compacted_below) == (30, 3, 9)
    assert [path.suffix for path in held.segments] == [".log"] * len(held.segments)
    assert list(held.log()) == [each for each in BATCHES if each.next_offset > 3]
    assert held == replica(directory, *at)


def test_what_is_no_data_directory_at_rest_is_refused(tmp_path: Path) -> None:
    """No data directory, a broken checkpoint, an unfinished exchange of segments, a replica that is not there."""
    directory = planted_log.data_directory(tmp_path, 1, high_watermark={("t", 0): 3})
    planted_log.write_segments(directory / "t-0", PARTS)
    with pytest.raises(DataDirectoryError, match=r"is not a broker's data directory: it holds no meta\.properties"):
        replicas(tmp_path)
    with pytest.raises(DataDirectoryError, match="holds no replica of u-0"):
        replica(directory, "u", 0)
    (directory / "t-0" / "00000000000000000007.log.swap").touch()
    with pytest.raises(DataDirectoryError, match=r"00000000000000000007\.log\.swap: the broker died"):
        replicas(directory)
    (directory / "t-0" / "00000000000000000007.log.swap").unlink()
    (directory / "replication-offset-checkpoint").write_text("0\n2\nt 0 3\n")
    with pytest.raises(
        DataDirectoryError, match=r"replication-offset-checkpoint is no checkpoint file.*1 of 2 entries"
    ):
        replicas(directory)


def test_a_broker_that_runs_is_noticed_by_its_lock(tmp_path: Path) -> None:
    """The files of a running broker change while they are read, so they are not read at all."""
    import subprocess
    import sys

    directory = planted_log.data_directory(tmp_path, 1)
    planted_log.write_segments(directory / "t-0", PARTS)
    (directory / ".lock").touch()
    assert len(replicas(directory)) == 1
    hold = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", hold, str(directory / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(DataDirectoryError, match="is in use: stop its broker first"):
            replicas(directory)
        holder.communicate(b"\n")
    assert len(replicas(directory)) == 1
