"""`python -m verification segments DIR…`: compare the replicas in the data directories of stopped brokers.

Each DIR is a data directory, as in `log.dirs`; those of all brokers together have every replica. Nothing is written, and
Spark is not started. The command prints one line per partition, and examples where replicas differ.

Exit codes are those of `verification.vocabulary.verdict`: 1 if replicas differ, 5 if files are damaged, 2 if no two
replicas vouch for the same offset. 4 means that a directory is no data directory, or in use.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from verification.command_line import Parser
from verification.replicas.compare import ReplicaComparison, compare
from verification.replicas.directory import Replica, by_partition, replicas
from verification.vocabulary.errors import DataDirectoryError
from verification.vocabulary.verdict import ExitCode, Verdict, code_of, exit_code

#: The name of the command, before the directories.
COMMAND = "segments"
#: Examples that are printed of one partition.
SHOWN = 5


def read(directories: Sequence[Path]) -> tuple[Replica, ...]:
    """Every replica of some data directories; the directory distinguishes brokers with the same number.

    Raises DataDirectoryError when one of them is not a data directory at rest.
    """
    found = [each for directory in directories for each in replicas(directory)]
    parents: dict[str, set[Path]] = {}
    for each in found:
        parents.setdefault(each.holder, set()).add(each.directory.parent)
    return tuple(
        each if len(parents[each.holder]) == 1 else replace(each, holder=f"{each.holder} in {each.directory.parent}")
        for each in found
    )


def lines(comparison: ReplicaComparison, *, recreated: bool = False) -> Iterator[str]:
    """The lines for a comparison, with the topic's id where several topics had that name."""
    name = f"{comparison.topic}-{comparison.partition}"
    yield f"{comparison.verdict.name:14} {name}{f' of id {comparison.topic_id}' * recreated}: {comparison.reason}"
    for held in comparison.held:
        notes = "; ".join(held.notes())
        if notes:
            yield f"{'':15}{held.replica.holder} {notes}"
    examples = comparison.finding.examples if comparison.finding is not None else ()
    for example in examples[:SHOWN]:
        yield f"{'':15}{example.anomaly} at {example.offset}: {example.detail}"


def main(arguments: Sequence[str]) -> int:
    """Compare, print and return the exit code."""
    parser = Parser(prog=f"python -m verification {COMMAND}", description="Compare replicas on disk.")
    parser.add_argument("directory", nargs="+", type=Path, metavar="DIR", help="a stopped broker's data directory")
    parser.add_argument("--topic", action="append", default=[], help="compare this topic only; may be repeated")
    parsed = parser.parse_args(arguments)
    try:
        found = [each for each in read(parsed.directory) if not parsed.topic or each.topic in parsed.topic]
    except DataDirectoryError as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.USAGE
    codes, groups = [], by_partition(found)
    ids = Counter((topic, partition) for topic, partition, _ in groups)
    for (topic, partition, _), same in groups.items():
        comparison = compare(same)
        sys.stdout.write("".join(f"{line}\n" for line in lines(comparison, recreated=ids[topic, partition] > 1)))
        if comparison.verdict is not Verdict.NOT_APPLICABLE:
            codes.append(code_of(comparison.verdict))
    return exit_code(codes)
