"""Replicas that hold the same below their high watermarks pass, and every difference there is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.planted import log
from tests.support.planted.log import LogWriter
from tests.verification.test_segments import REAL
from verification.__main__ import main
from verification.replicas.command import read
from verification.replicas.compare import ReplicaComparison, compare, vouched
from verification.vocabulary.verdict import EXAMPLES_MAX, ExitCode, Verdict
from wire.compression import Compression
from wire.records import decode, encode

AT = ("orders", 0)
PARTS = log.batches()
BATCHES = [next(decode(part)) for part in PARTS]
END = BATCHES[-1].next_offset
#: A batch of several records in the middle, and its place.
MIDDLE = next(number for number in range(20, 60) if BATCHES[number].count > 2 and BATCHES[number].transactional)


class Replicas:
    """Data directories of some brokers with one partition; all hold the same log, until a test changes something."""

    def __init__(self, root: Path, count: int = 3) -> None:
        self.root = root
        self.parts = {number: list(PARTS) for number in range(1, count + 1)}
        self.marks: dict[int, int | None] = dict.fromkeys(self.parts, END)
        self.starts: dict[int, int] = {}
        self.cleaned: dict[int, int] = {}
        self.each: dict[int, int] = {}

    def write(self) -> list[Path]:
        """The directories."""
        found = []
        for number, parts in self.parts.items():
            mark, begin, cleaned = self.marks[number], self.starts.get(number), self.cleaned.get(number)
            directory = log.data_directory(
                self.root,
                number,
                high_watermark={} if mark is None else {AT: mark},
                log_start={} if begin is None else {AT: begin},
                cleaned={} if cleaned is None else {AT: cleaned},
            )
            log.write_segments(directory / "orders-0", parts, each=self.each.get(number, 25))
            found.append(directory)
        return found

    def compared(self) -> ReplicaComparison:
        """The comparison of the directories."""
        return compare(read(self.write()))


@pytest.fixture
def brokers(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


def changed(part: bytes, *, index: int = 0, header: Mapping[str, int] = MappingProxyType({})) -> bytes:
    """A batch with another value in one of its records, or another header, and a CRC that holds."""
    batch = next(decode(part))
    records = [(each.key, each.value, each.headers) for each in batch.records()]
    if not header:
        records[index] = (records[index][0], b"other", records[index][2])
    said: dict[str, Any] = {
        "base_offset": batch.base_offset,
        "timestamp_ms": batch.base_timestamp_ms,
        "leader_epoch": batch.leader_epoch,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        **header,
    }
    kind: dict[str, Any] = {
        "transactional": batch.transactional,
        "control": batch.control,
        "compression": batch.compression,
    }
    return encode(records, **said, **kind)


def offsets(comparison: ReplicaComparison) -> list[int | None]:
    return [] if comparison.finding is None else [each.offset for each in comparison.finding.examples]


def test_equal_replicas_are_acquitted(brokers: Replicas) -> None:
    """However each broker rolled its segments, equal logs are equal up to the high watermark."""
    brokers.each = {1: 1, 2: 7, 3: 1000}
    found = brokers.compared()
    assert (found.verdict, found.finding, found.first, found.end) == (Verdict.PASS, None, 0, END)
    assert found.reason == f"broker 1, broker 2 and broker 3 hold the same in [0, {END})"


@pytest.mark.parametrize(
    "header",
    [{}, {"timestamp_ms": 5}, {"producer_id": 77}, {"producer_epoch": 4}, {"base_sequence": 900}, {"leader_epoch": 4}],
    ids=lambda header: next(iter(header), "value"),
)
def test_another_content_is_found_where_it_is(brokers: Replicas, header: dict[str, int]) -> None:
    """One changed byte of a record is one offset; a changed header of a batch is every record of it."""
    brokers.parts[2][MIDDLE] = changed(PARTS[MIDDLE], index=1, header=header)
    found = brokers.compared()
    batch = BATCHES[MIDDLE]
    wrong = range(batch.base_offset, batch.next_offset) if header else [batch.base_offset + 1]
    assert (found.verdict, offsets(found)) == (Verdict.FAIL, list(wrong))
    assert found.finding is not None
    assert found.finding.anomaly == "inconsistent-offset"
    assert found.finding.count == len(wrong)
    assert found.finding.examples[0].detail.startswith("broker 1 and broker 3: a ")
    assert "; broker 2: a " in found.finding.examples[0].detail


def test_a_commit_on_one_replica_and_an_abort_on_another_is_found(brokers: Replicas) -> None:
    """The decision about a transaction is content as well."""
    number = next(number for number, batch in enumerate(BATCHES) if batch.control)
    marker = BATCHES[number]
    writer = LogWriter(offset=marker.base_offset)
    other = log.COMMIT if marker.marker() == 0 else log.ABORT
    brokers.parts[3][number] = writer.end(marker.producer_id, other)
    found = brokers.compared()
    assert offsets(found) == [marker.base_offset]
    assert found.finding is not None
    assert {"a commit marker", "a abort marker"} == {
        text.split(": ")[1].split(" of ")[0] for text in found.finding.examples[0].detail.split("; ")
    }


def test_records_that_one_replica_lacks_are_gone(brokers: Replicas) -> None:
    """A hole in one log, at its beginning, in it or at its end, is a difference at every offset of it."""
    for number, hole in ((1, 0), (2, MIDDLE), (3, len(PARTS) - 1)):
        del brokers.parts[number][hole]
    found = brokers.compared()
    gone = [
        offset for hole in (0, MIDDLE, -1) for offset in range(BATCHES[hole].base_offset, BATCHES[hole].next_offset)
    ]
    # The first segment of broker 1 now begins later, which is how a deleted beginning looks.
    assert offsets(found) == gone[BATCHES[0].count :]
    assert found.held[0].replica.log_start == BATCHES[0].next_offset
    assert found.finding is not None
    assert found.finding.examples[0].detail.endswith("; broker 2: nothing")


def test_above_its_high_watermark_a_replica_may_hold_anything(brokers: Replicas) -> None:
    """A replica that fell behind with another tail is compared up to its high watermark, the others beyond it."""
    mark = BATCHES[MIDDLE].base_offset
    brokers.marks[2] = mark
    brokers.parts[2][MIDDLE:] = [changed(PARTS[MIDDLE])]
    assert brokers.compared().verdict is Verdict.PASS
    later = Replicas(brokers.root / "later")
    later.marks, later.parts[2] = brokers.marks, brokers.parts[2]
    later.parts[3][MIDDLE + 3] = changed(PARTS[MIDDLE + 3])
    found = later.compared()
    assert offsets(found) == [BATCHES[MIDDLE + 3].base_offset]
    assert found.finding is not None
    assert "broker 2" not in found.finding.examples[0].detail
    assert (found.first, found.end) == (0, END)


def test_a_pass_says_how_much_nobody_vouched_for(brokers: Replicas) -> None:
    """A few equal offsets must not look like a whole equal log."""
    brokers.marks = dict.fromkeys(brokers.marks, 1)
    reason = brokers.compared().reason
    assert reason.endswith(f"hold the same in [0, 1); no two of them vouch for the offsets above, up to {END}")


def test_a_high_watermark_that_no_log_reaches_is_found(brokers: Replicas) -> None:
    """Committed records that are gone from every replica are gone, although all replicas are equal."""
    for parts in brokers.parts.values():
        del parts[-1]
    found = brokers.compared()
    assert (found.verdict, offsets(found)) == (Verdict.FAIL, [END - 1])
    assert found.finding is not None
    assert found.finding.examples[0].detail == f"every log ends here, below the high watermark {END}"


def test_a_deleted_beginning_is_reported_and_not_held_against_anybody(brokers: Replicas) -> None:
    """Offsets below a log start are not compared, whether segments or records were deleted; all above are."""
    brokers.parts[1] = brokers.parts[1][MIDDLE:]
    brokers.starts = {2: BATCHES[MIDDLE].base_offset + 1}
    brokers.parts[2][3] = changed(PARTS[3])
    found = brokers.compared()
    assert found.verdict is Verdict.PASS
    assert [next(iter(each.notes()), "")[:9] for each in found.held] == ["begins at", "begins at", ""]
    again = Replicas(brokers.root / "again")
    again.starts, again.parts = brokers.starts, {**brokers.parts, 3: list(PARTS)}
    again.parts[3][MIDDLE] = changed(PARTS[MIDDLE], index=2)
    assert offsets(again.compared()) == [BATCHES[MIDDLE].base_offset + 2]


def recompacted(parts: Sequence[bytes], seed: int) -> list[bytes]:
    """A log after a cleaner: some records missing, every batch written anew; the last batches are as before."""
    random, kept = Random(seed), [parts[0]]
    for part in parts[1:-10]:
        batch = next(decode(part))
        records = [each for each in batch.records() if batch.control or random.random() < 0.5]
        for each in records:
            kept.append(
                encode(
                    [(each.key, each.value, each.headers)],
                    base_offset=each.offset,
                    timestamp_ms=each.timestamp_ms,
                    leader_epoch=batch.leader_epoch,
                    producer_id=batch.producer_id,
                    producer_epoch=batch.producer_epoch,
                    base_sequence=batch.base_sequence
                    if batch.base_sequence < 0
                    else batch.base_sequence + each.offset - batch.base_offset,
                    transactional=batch.transactional,
                    control=batch.control,
                    compression=Compression.ZSTD,
                )
            )
    return [*kept, *parts[-10:]]


def test_compacted_replicas_are_held_to_what_both_still_hold(brokers: Replicas) -> None:
    """Cleaners that kept other records differ in nothing; another content at an offset that both kept is found."""
    cleaned = BATCHES[-10].base_offset
    brokers.cleaned = {1: cleaned, 2: cleaned}
    brokers.parts[1], brokers.parts[2] = recompacted(PARTS, 1), recompacted(PARTS, 2)
    found = brokers.compared()
    assert found.verdict is Verdict.PASS
    assert [list(each.notes()) for each in found.held] == [[f"is compacted below {cleaned}"]] * 2 + [[]]
    again = Replicas(brokers.root / "again")
    again.cleaned, again.parts = brokers.cleaned, brokers.parts
    again.parts[1][7] = changed(brokers.parts[1][7])
    assert offsets(again.compared()) == [next(decode(brokers.parts[1][7])).base_offset]
    uncleaned = Replicas(brokers.root / "uncleaned")
    uncleaned.parts[1] = recompacted(PARTS, 1)
    assert uncleaned.compared().verdict is Verdict.FAIL


def test_damage_is_an_error_and_what_differs_before_it_a_finding(brokers: Replicas) -> None:
    """A damaged replica vouches for no offset from the damage on; an earlier difference is still found."""
    part = brokers.parts[2][MIDDLE]
    brokers.parts[2][MIDDLE] = part[:-1] + bytes([part[-1] ^ 1])
    found = brokers.compared()
    assert (found.verdict, found.finding) == (Verdict.ERROR, None)
    assert "does not have the CRC" in found.reason
    again = Replicas(brokers.root / "again")
    again.parts = {**brokers.parts, 3: list(PARTS)}
    again.parts[3][2], again.parts[3][MIDDLE + 1] = changed(PARTS[2]), changed(PARTS[MIDDLE + 1])
    assert offsets(again.compared()) == [BATCHES[2].base_offset, BATCHES[MIDDLE + 1].base_offset]


def test_damage_above_the_high_watermark_is_reported_only(brokers: Replicas) -> None:
    """Records after the high watermark are not compared; a torn tail there is reported."""
    mark = BATCHES[MIDDLE].base_offset
    brokers.marks = dict.fromkeys(brokers.marks, mark)
    part = brokers.parts[2][MIDDLE]
    brokers.parts[2][MIDDLE] = part[:-1] + bytes([part[-1] ^ 1])
    brokers.parts[3][-1] = PARTS[-1][:20]
    found = brokers.compared()
    assert (found.verdict, found.end) == (Verdict.PASS, mark)
    assert "does not have the CRC" in found.held[1].damage
    assert "ends with 20 bytes of a batch whose end was never written" in found.held[2].tail


@pytest.mark.parametrize("seed", range(30))
def test_the_comparison_finds_exactly_what_was_planted(tmp_path: Path, seed: int) -> None:
    """After random changes and losses, with random high watermarks and log starts, it agrees with a plain table."""
    random = Random(seed)
    brokers = Replicas(tmp_path)
    for number, parts in brokers.parts.items():
        brokers.marks[number] = random.randint(0, END)
        brokers.starts[number] = random.choice([0, random.randint(0, END // 2)])
        for at in sorted(random.sample(range(1, len(PARTS) - 1), random.randint(0, 4)), reverse=True):
            if random.random() < 0.5:
                parts[at] = changed(parts[at], index=random.randrange(BATCHES[at].count))
            else:
                del parts[at]
    table: dict[int, list[object]] = {}
    for number, parts in brokers.parts.items():
        mine = {each.offset: each for part in parts for each in next(decode(part)).records()}
        for offset in range(brokers.starts[number], brokers.marks[number] or 0):
            table.setdefault(offset, []).append(mine.get(offset))
    wrong = [offset for offset, held in sorted(table.items()) if len({str(each) for each in held}) > 1]
    finding = brokers.compared().finding
    examples = [] if finding is None else [each.offset for each in finding.examples]
    # An offset that no replica has is no difference between them.
    assert examples == wrong[:EXAMPLES_MAX]
    assert (0 if finding is None else finding.count) == len(wrong)


def test_the_span_that_two_vouch_for() -> None:
    """From the second start to the second end, also where the third is apart; nothing where no two meet."""
    assert vouched([(0, 10), (5, 20), (30, 40)]) == (5, 10)
    assert vouched([(0, 10), (2, 4), (6, 30)]) == (2, 10)
    assert vouched([(0, 10), (10, 20)]) == (0, 0)
    assert vouched([(3, 3)]) == (0, 0)


def untouched(brokers: Replicas) -> None:
    pass


def spoiled(brokers: Replicas) -> None:
    brokers.parts[1][MIDDLE] = changed(PARTS[MIDDLE])


def damaged(brokers: Replicas) -> None:
    brokers.parts[1][MIDDLE] = PARTS[MIDDLE][:-1] + b"?"


def unknown(brokers: Replicas) -> None:
    brokers.marks = {1: None, 2: END, 3: None}


def alone(brokers: Replicas) -> None:
    brokers.parts = {1: list(PARTS)}


@pytest.mark.parametrize(
    ("plant", "code", "said"),
    [
        (untouched, ExitCode.CONFORMANT, "PASS           orders-0: broker 1, broker 2 and broker 3 hold"),
        (spoiled, ExitCode.VIOLATION, "inconsistent-offset at"),
        (damaged, ExitCode.ENVIRONMENT, "ERROR          orders-0: "),
        (unknown, ExitCode.INCONCLUSIVE, "broker 1 has no checkpointed high watermark"),
        (alone, ExitCode.INCONCLUSIVE, "NOT_APPLICABLE orders-0: of these directories only broker 1 has a replica"),
    ],
    ids=["equal", "differ", "damaged", "unknown", "alone"],
)
def test_the_command_ends_with_the_code_of_the_table(
    brokers: Replicas,
    plant: Callable[[Replicas], None],
    code: ExitCode,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`python -m verification segments` prints a line per partition and decides as every other command does."""
    plant(brokers)
    directories = [str(each) for each in brokers.write()]
    assert main(["segments", *directories]) == code
    assert said in capsys.readouterr().out
    assert main(["segments", *directories, "--topic", "nothing-here"]) == ExitCode.INCONCLUSIVE
    assert main(["segments", str(brokers.root)]) == ExitCode.USAGE


def test_topics_of_one_name_and_replicas_of_one_broker_are_told_apart(
    brokers: Replicas, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recreated topic is not compared with the old one, and two copies of a broker are two replicas."""
    directories = brokers.write()
    for number, directory in enumerate(directories):
        (directory / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: id{number // 2}\n")
    assert main(["segments", *map(str, directories)]) == ExitCode.CONFORMANT
    printed = capsys.readouterr().out
    assert "orders-0 of id id0: broker 1 and broker 2 hold the same" in printed
    assert "orders-0 of id id1: of these directories only broker 3 has a replica" in printed
    copy = Path(shutil.copytree(directories[0], brokers.root / "copy"))
    assert main(["segments", str(directories[0]), str(copy)]) == ExitCode.CONFORMANT
    assert f"broker 1 in {copy}" in capsys.readouterr().out


def test_real_replicas_are_read_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that three brokers of Kafka 4.3.1 held when they were killed is the same; a changed copy is not."""
    at = ("__transaction_state", 0)
    directories = [log.data_directory(tmp_path, number, high_watermark={at: 223}) for number in (1, 2, 3)]
    for directory in directories:
        shutil.copytree(REAL, directory / REAL.name)
    names = [str(each) for each in directories]
    assert main(["segments", *names]) == ExitCode.CONFORMANT
    assert "broker 1, broker 2 and broker 3 hold the same in [0, 223)" in capsys.readouterr().out
    segment = next((directories[1] / REAL.name).glob("*.log"))
    raw = segment.read_bytes()
    batches = list(decode(raw))
    before = sum(each.size for each in batches[:50])
    size = batches[50].size
    segment.write_bytes(raw[:before] + changed(raw[before : before + size]) + raw[before + size :])
    assert main(["segments", *names]) == ExitCode.VIOLATION
    assert (
        f"inconsistent-offset at {batches[50].base_offset}: broker 1 and broker 3: a record" in capsys.readouterr().out
    )
