"""The two transaction protocols, TV1 and TV2, and the versions of each request that belong to them.

A broker decides by the version of a request which protocol it belongs to (KIP-890), whatever the cluster's finalized
`transaction.version` is. TV1 is the older protocol, with its levels 0 and 1: separate requests add partitions and
offsets, and epochs do not rise at the end of a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class TransactionVersion(StrEnum):
    """A transaction protocol."""

    TV1 = "TV1"
    TV2 = "TV2"


#: The highest version of each request that belongs to a protocol; requests that are not named belong to both.
#: Produce ends at 12 because 13 names topics by id and says nothing else.
AT_MOST: Mapping[TransactionVersion, Mapping[str, int]] = {
    TransactionVersion.TV1: {"Produce": 11, "AddPartitionsToTxn": 3, "TxnOffsetCommit": 4, "EndTxn": 4},
    TransactionVersion.TV2: {"Produce": 12, "AddPartitionsToTxn": 3, "TxnOffsetCommit": 5, "EndTxn": 5},
}
#: The lowest versions; a broker that does not offer them does not have the protocol.
AT_LEAST: Mapping[TransactionVersion, Mapping[str, int]] = {
    TransactionVersion.TV1: {},
    TransactionVersion.TV2: {"Produce": 12, "TxnOffsetCommit": 5, "EndTxn": 5},
}
