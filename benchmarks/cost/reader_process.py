"""A consumer in a process of its own, so that its memory is measured alone.

`python -m benchmarks.cost.reader_process BOOTSTRAP TOPIC PARTITIONS ISOLATION COUNT` writes three lines: `ready` when it
reads, the number of records that it has when it is sent a line, and, once it has COUNT records, the kilobytes that were
resident at most.
"""

from __future__ import annotations

import re
import select
import sys
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition


def read(bootstrap: str, topic: str, partitions: int, isolation: str, count: int) -> None:
    """Read so many records."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "cost",
        "isolation.level": isolation,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings | {"log_level": 0})
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    had, asked = 0, False
    _say("ready")
    while had < count or not asked:
        message = consumer.poll(0.01)
        had += message is not None and message.error() is None
        if select.select([sys.stdin], [], [], 0)[0] and sys.stdin.readline():
            asked = True
            _say(had)
    _say(_most_kb())
    consumer.close()


def _most_kb() -> int:
    """The peak of the resident memory. That of getrusage includes the program that started this one."""
    (found,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(encoding="utf-8"), re.MULTILINE)
    return int(found)


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    read(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
