"""Who is exposed to a known bug: client libraries, transaction protocols, and the replication that it needs.

The facts are those of the sentences *Whom it concerns* (`advice.concerns`), with the same sources, in a form that a table
can filter. A client or protocol is named where it can get there, also where only another one was measured; so a filter
never hides a bug because it was not tried there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from verification.requirements.toml_table import Table


class Library(StrEnum):
    """A family of client libraries. A bug without any needs a broken client, or concerns a tool."""

    JAVA = "Java"
    LIBRDKAFKA = "librdkafka"


class TransactionUse(StrEnum):
    """The protocol of a producer's transactions; `none` is a producer or group without transactions."""

    NONE = "none"
    TV1 = "TV1"
    TV2 = "TV2"


class ReplicationNeed(StrEnum):
    """The replication that a bug needs."""

    ANY = "any"
    NO_REPLICA_LEFT = "no in-sync replica left"
    SEVERAL = "2 or more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """Whom a bug concerns, as values."""

    libraries: tuple[Library, ...]
    transactions: tuple[TransactionUse, ...]
    replication: ReplicationNeed


def read_exposure(entry: Table) -> Exposure:
    """The exposure of a catalogue entry. Raises the exception of the table for anything that does not fit."""
    exposure = Exposure(
        libraries=entry.choices("libraries", Library),
        transactions=entry.choices("transactions", TransactionUse),
        replication=entry.choice("replication", ReplicationNeed),
    )
    entry.finish()
    if not exposure.transactions:
        raise entry.error("names no protocol; a bug without transactions has 'none'")
    return exposure
