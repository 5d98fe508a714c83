"""A partition's log as bytes, written by our encoder, and its segments on disk as a broker would leave them.

Transactions of several producers interleave, in batches of every codec, between plain records. One transaction is
open from the first offset to the last: no place where the log can be cut is outside every transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from verification.vocabulary.identity import Identity, RecordKind
from wire.compression import Compression
from wire.records import decode, encode

RUN = "planted"
TIME_MS = 1_700_000_000_000
COMMIT, ABORT = b"\0\0\0\1", b"\0\0\0\0"
CODECS = tuple(Compression)


@dataclass
class LogWriter:
    """Appends batches; `parts` are their bytes in order."""

    partition: int = 0
    offset: int = 0
    parts: list[bytes] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)

    def append(self, producer: int, count: int, *, transactional: bool = True, **header: Any) -> bytes:
        """A batch of so many records of a producer, -1 for none."""
        first = self.sequences.get(producer, 0)
        records = [
            (b"key %d" % producer if index % 2 else None, self._value(producer, first + index))
            for index in range(count)
        ]
        if producer >= 0:
            self.sequences[producer] = first + count
            header = {"producer_id": producer, "producer_epoch": 1, "base_sequence": first, **header}
        return self._add(records, transactional=transactional and producer >= 0, **header)

    def end(self, producer: int, decision: bytes) -> bytes:
        """A marker."""
        header = {"producer_id": producer, "producer_epoch": 1, "transactional": True, "control": True}
        return self._add([(decision, b"\0\0\0\0\0\0")], compression=Compression.NONE, **header)

    def _add(self, records: Sequence[Any], **header: Any) -> bytes:
        codec = header.pop("compression", CODECS[len(self.parts) % len(CODECS)])
        self.parts.append(
            encode(
                records,
                base_offset=self.offset,
                timestamp_ms=TIME_MS + self.offset,
                leader_epoch=3,
                compression=codec,
                **header,
            )
        )
        self.offset += len(records)
        return self.parts[-1]

    def _value(self, producer: int, number: int) -> bytes:
        return Identity(
            run=RUN,
            process=max(producer, 0),
            operation=number // 7,
            kind=RecordKind.TRANSACTION if producer >= 0 else RecordKind.PLAIN,
            index=number % 7,
            count=7,
            topic_index=0,
            intended_partition=self.partition,
            send_order=number,
        ).encode(120)


def batches(partition: int = 0, *, rounds: int = 6, seed: int = 1) -> list[bytes]:
    """The batches of a planted log."""
    random, writer = Random(seed), LogWriter(partition=partition)
    writer.append(9, 2)
    for number in range(rounds):
        opened = random.sample((1, 2, 3), 2)
        for producer in (*opened, -1, *opened, 9, *opened):
            writer.append(producer, random.randint(1, 4))
        for producer in opened:
            writer.end(producer, COMMIT if number % 3 else ABORT)
    writer.end(9, COMMIT)
    return writer.parts


def write_segments(folder: Path, parts: Sequence[bytes], *, each: int = 1 << 30) -> Path:
    """The batches as segment files of so many batches, in a replica's directory."""
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(parts), each):
        raw = b"".join(parts[first : first + each])
        (folder / f"{next(decode(raw)).base_offset:020d}.log").write_bytes(raw)
    return folder


def checkpoint(path: Path, offsets: dict[tuple[str, int], int]) -> None:
    """A checkpoint file."""
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    path.write_text(f"0\n{len(lines)}\n{''.join(lines)}")


def data_directory(root: Path, number: int, **checkpoints: dict[tuple[str, int], int]) -> Path:
    """An empty data directory of a broker; `high_watermark`, `log_start` and `cleaned` are its checkpoints."""
    names = {
        "high_watermark": "replication-offset-checkpoint",
        "log_start": "log-start-offset-checkpoint",
        "cleaned": "cleaner-offset-checkpoint",
    }
    folder = root / f"broker-{number}"
    folder.mkdir(parents=True)
    (folder / "meta.properties").write_text(f"#\nnode.id={number}\nversion=1\ncluster.id=c\n")
    # A broker creates all of them empty when it starts.
    for name in names.values():
        (folder / name).touch()
    for name, offsets in checkpoints.items():
        checkpoint(folder / names[name], offsets)
    return folder
