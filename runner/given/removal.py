"""Removes topics and groups of a run from a cluster of the user, by their names, and says which of them are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wire.codes import ErrorCode
from wire.errors import BrokerError, WireError

#: Answers to the removal of a topic or group that is not there.
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND)


def remove(names: Mapping[str, Callable[[], object]], say: Callable[[str], None]) -> None:
    """Call each removal, which may raise WireError. `say` gets a sentence for each name that is left."""
    for name, removal in names.items():
        try:
            removal()
        except WireError as error:
            if not isinstance(error, BrokerError) or error.error not in GONE:
                say(f"{name} is left on your cluster, and tox -e sweep-up removes it: {error}")
