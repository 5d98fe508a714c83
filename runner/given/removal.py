"""Removes topics and groups of a run from a cluster of the user, by their names, and says which of them are left.

Others may restart brokers meanwhile, so a removal whose connection is lost is tried again: removing a name twice does no
harm. A group is removed when it has no members, and a killed process is a member until its session is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from fixtures.waiting import WaitTimeoutError, await_until
from wire.codes import ErrorCode
from wire.errors import BrokerError, WireError

#: Answers to the removal of a topic or group that is not there.
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND)
#: For all names together, because a run that is broken off ends within 90 s (`runner.lanes`). A broker is restarted, and a
#: session (6 s) is over, in less.
REMOVED_WITHIN_S = 30.0


def remove(
    names: Mapping[str, Callable[[], object]], say: Callable[[str], None], *, within_s: float = REMOVED_WITHIN_S
) -> None:
    """Call each removal, which may raise WireError. `say` gets a sentence for each name that is left.

    Once `within_s` have passed, each further name is tried once.
    """
    end_s = time.monotonic() + within_s
    for name, removal in names.items():
        if why := _left(name, removal, end_s - time.monotonic()):
            say(f"{name} is left on your cluster, and tox -e sweep-up removes it: {why}")


def _left(name: str, removal: Callable[[], object], within_s: float) -> str:
    """Remove a name; why it is left, empty if it is gone."""
    last = ""

    def removed() -> bool:
        nonlocal last
        try:
            removal()
        except BrokerError as error:
            if error.error == ErrorCode.NON_EMPTY_GROUP:
                last = str(error)
                return False
            if error.error not in GONE:
                raise
        except WireError as error:
            last = str(error)
            return False
        return True

    try:
        if within_s <= 0:
            return "" if removed() else last
        await_until(removed, f"the removal of {name}", timeout_s=within_s, last=lambda: last)
    except BrokerError as error:
        return str(error)
    except WaitTimeoutError:
        return last
    return ""
