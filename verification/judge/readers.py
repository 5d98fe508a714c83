"""Whose a wrong read is: the reader's, if live observers alone show it, and an independent client has none of it.

The committed capture is read by librdkafka at quiescence (`verification.sources.client`). A record that it has not, although
live observers of another library received it, was filtered by one client and not by the other: the log and the brokers'
answers are in order. Where the observers use librdkafka as well, nothing tells the two apart, and the release is named.
"""

from __future__ import annotations

from collections.abc import Iterable

from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.history import ProcessRecord
from verification.vocabulary.violations import RawViolation

#: The library of the captures, in the texts of all clients that are built on it; and the one that is named without it.
CAPTURING = ("librdkafka", "confluent")


def reader_of(evidence: RunEvidence, violations: Iterable[RawViolation]) -> str:
    """The library, with its version, whose violations these are as a reader; empty where they are the subject's."""
    if not all(each.live for each in violations):
        return ""
    versions = evidence.experiment.versions
    libraries = {
        each.library or versions.get(each.client) or each.client
        for each in evidence.history.of(ProcessRecord)
        if each.role == "observer"
    }
    if len(libraries) != 1 or any(name in each for each in libraries for name in CAPTURING):
        return ""
    return libraries.pop()
