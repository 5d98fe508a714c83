"""Which operations the files of acknowledgements speak of, read so that nothing in them stays unread.

A large run has as many acknowledgements as records, and parsing each of them takes longer than everything else that is
done before a judgement. A line as the recorder writes it says by its shape alone that it is whole; such lines are
recognised together, by one regular expression, and only the others are parsed.

Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from verification.errors import UnfitEvidenceError
from verification.fitness import Starts

#: How many bytes of lines are looked at together.
CHUNK = 1 << 20
#: index, topic_index, partition, offset, outcome
ACK_WIDTH = 5
_NUMBER = "-?(0|[1-9][0-9]*)"
_ACK = rf'\[({_NUMBER}, ?){{4}}"[a-z]+"\]'
#: Valid JSON with `operation` and any number of acknowledgements of `ACK_WIDTH` entries, in the syntax of RE2.
_USUAL = rf'^\{{"operation": ?{_NUMBER}, ?"acks": ?\[({_ACK}(, ?{_ACK})*)?\]\}}\n?$'


def operations(path: Path, starts: Starts) -> Iterator[int]:
    """The operations that a file speaks of, read to its end.

    Raises UnfitEvidenceError for a line that holds no acknowledgements, or one below the beginning of its log; and what
    gzip raises for a file that is cut.
    """
    number = 0
    with gzip.open(path, "rb") as file:
        while lines := file.readlines(CHUNK):
            for line, usual in zip(lines, _usual(lines, starts), strict=True):
                number += 1
                yield (
                    int(line[line.index(b":") + 1 : line.index(b",")])
                    if usual
                    else _parsed(line, f"{path}: line {number}", starts, path)
                )


def _usual(lines: list[bytes], starts: Starts) -> list[bool]:
    """Which lines need no parsing. None does without, where offsets are to be held against the beginning of a log."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if starts:
        return [False] * len(lines)
    usual: list[bool] = pc.match_substring_regex(pa.array(lines, pa.binary()), _USUAL).to_pylist()
    return usual


def _parsed(line: bytes, where: str, starts: Starts, path: Path) -> int:
    try:
        body = json.loads(line)
        fits = isinstance(body["acks"], list) and all(len(ack) == ACK_WIDTH for ack in body["acks"])
        operation = int(body["operation"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnfitEvidenceError(f"{where} holds no acknowledgements ({error})") from error
    if not fits:
        raise UnfitEvidenceError(f"{where} has an acknowledgement without {ACK_WIDTH} entries")
    starts.check(body["acks"], path)
    return operation
