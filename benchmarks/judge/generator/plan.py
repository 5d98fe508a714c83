"""The plan of the evidence: its size and shape.

Every slot of time has each client once. There are ten writers with transactions over two topics, four feeders with
transactions into the input topic, and two clients that append without transactions. Four copiers copy the inputs that
were committed in the block of slots before. A fifth of the transactions is aborted, and one in a hundred ends without
an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from benchmarks.judge.errors import EvidenceSizeError
from verification.vocabulary.experiment import TopicRole

RUN = "bench"
#: Topic and its role; the position is the topic index.
TOPICS = (
    ("orders", TopicRole.INPUT),
    ("billing", TopicRole.OUTPUT),
    ("shipping", TopicRole.OUTPUT),
    ("copies", TopicRole.OUTPUT),
)
INPUT, OUTPUTS, COPIES = 0, (1, 2), 3
PARTITIONS = 4
WRITERS = tuple(range(1, 11))
FEEDERS = tuple(range(11, 15))
APPENDERS = tuple(range(15, 17))
#: The copier of input partition p is COPIERS[p].
COPIERS = tuple(range(17, 21))
#: The client that leaves its transaction open, and the number that is added to a client's for a rival that takes its
#: id.
LEAVER = 30
RIVAL = 31
PROCESSES_MAX = 64
#: The shares of answered commits, aborts, unanswered commits and unanswered aborts.
SHARES = (0.79, 0.20, 0.005, 0.005)
#: The number of victims of one round of plants in a block (`planting`).
PAIRS_PER_ROUND = 9
APPENDS_PER_ROUND = 7
FEEDS_PER_ROUND = 2


class Fate(IntEnum):
    """The end of a transaction, and whether its client knows it."""

    COMMITTED = 0
    ABORTED = 1
    UNKNOWN_COMMITTED = 2
    UNKNOWN_ABORTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePlan:
    """About `records` data records, with `rounds` plants of each kind; the same `seed` makes the same evidence.

    Without rounds everything is in order, including the end. One transaction writes `per_transaction` records. Memory
    holds `block_records` at once. `numbers_from` is the number of the first record that a feeder writes to a partition:
    a leader that does not know a producer accepts any number, and after 2147483647 comes 0.
    """

    records: int
    seed: int
    rounds: int = 5
    per_transaction: int = 100
    block_records: int = 250_000
    numbers_from: int = 0

    @property
    def per_append(self) -> int:
        """Records of one operation without a transaction."""
        return max(2, self.per_transaction // 5)

    @property
    def per_slot(self) -> float:
        """Records of one slot, including the copies of its feeders' commits."""
        copied = (SHARES[Fate.COMMITTED] + SHARES[Fate.UNKNOWN_COMMITTED]) * len(FEEDERS)
        transactions = len(WRITERS) + len(FEEDERS) + copied
        return transactions * self.per_transaction + len(APPENDERS) * self.per_append

    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Slots and rounds of plants of each block. Raises EvidenceSizeError if the plants do not fit."""
        slots = max(2, round(self.records / self.per_slot))
        count = max(1, round(self.records / self.block_records))
        sizes = [(number + 1) * slots // count - number * slots // count for number in range(count)]
        rounds = [0] * count
        for number in range(self.rounds):
            rounds[number * count // self.rounds] += 1
        for size, planted in zip(sizes, rounds, strict=True):
            room = min(
                (size - 1) // 2 * len(WRITERS) // PAIRS_PER_ROUND,
                size * len(APPENDERS) // APPENDS_PER_ROUND,
                (size - 1) * len(FEEDERS) // FEEDS_PER_ROUND,
            )
            if planted > room:
                raise EvidenceSizeError(
                    f"{size} slots of {self.per_slot:.0f} records have room for {room} rounds of plants, not {planted}."
                )
        return tuple(zip(sizes, rounds, strict=True))
