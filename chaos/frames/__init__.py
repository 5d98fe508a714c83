"""Frame-aware links: a small TCP relay in a link's place that understands Kafka's framing.

**Why.** A link can be cut, slowed and muted as a whole (`chaos/links.py`). What breaks exactly-once in practice is
finer: *one* request that arrives after its transaction has ended, twice, or never, while all others pass. Networks do
this (a client gives up, closes, retries on a new connection, and the first attempt still arrives), but no network does
it on demand.

**Model.** A relay stands between the opener of connections and one broker; brokers among themselves speak the same
framing, on the raft plane as well. A *selector* (`FrameFilter`) names requests, or responses by their requests, by API,
transactional id, producer id, partition, group and count. An *action* says what happens to a selected frame: `Hold`,
`Delay`, `Drop`, `Duplicate`, `Respond`, `Cut`. Both together are a *rule*, which keeps a book of what it met: when,
where, the bytes, and what the broker answered, also to frames whose sender had long gone.

**Honesty.** What no network can do is not done by default: the order of one connection is kept, what follows a held
frame waits behind it, what follows a lost one is lost (`actions.py` has the reasons and how clients react). Bytes that
are not selected pass as they came; without rules the relay is transparent byte for byte, TLS and garbage included
(`framing.py`).

**In place of a link.** `chaos.faults.frames.TamperFrames` puts relays behind links of the mesh, which keeps cuts and
degradations of these links working, and takes them out when healing. Putting in and taking out closes the
connections of these links, because the link server cannot move a connection; clients connect again at once.

**Doubtful.** Requests on TLS listeners cannot be selected. A response to a request that had passed before the rule came
is not selected. A request without an answer (Produce with Acks 0) that no rule looked at is only discovered when a
later answer arrives; an `Respond` behind it waits until then. A copy needs a listener without authentication. A frame
counts as delivered when our operating system took it; that the broker read it is shown by its answer alone.
"""

from __future__ import annotations

from chaos.frames.actions import Cut, Delay, Drop, Duplicate, FrameAction, Hold, Respond
from chaos.frames.connection import ConnectionStatus
from chaos.frames.links import FrameLinks
from chaos.frames.rule import Disposition, MatchedFrame, ResentRequest, Rule
from chaos.frames.selector import Direction, FrameFields, FrameFilter

__all__ = [
    "ConnectionStatus",
    "Cut",
    "Delay",
    "Direction",
    "Disposition",
    "Drop",
    "Duplicate",
    "FrameAction",
    "FrameFields",
    "FrameFilter",
    "FrameLinks",
    "Hold",
    "MatchedFrame",
    "ResentRequest",
    "Respond",
    "Rule",
]
