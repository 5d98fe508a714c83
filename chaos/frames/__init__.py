"""Frame-aware links: a TCP relay behind a link that reads Kafka's framing and acts on single requests and responses.

**Why.** A link can be cut, slowed and muted as a whole (`chaos/links.py`). In practice exactly-once breaks by less:
*one* request arrives after its transaction has ended, or twice, or never, while all others pass. Networks do this: a
client gives up, retries on a new connection, and the first attempt still arrives. But no network does it on demand.

**Model.** A relay stands between the opener of connections and one broker. Brokers among themselves use the same
framing, also on the raft plane. A *selector* (`FrameFilter`) selects requests, or responses by their requests, by API,
transactional id, producer id, partition, group and count. An *action* is done to a selected frame: `Hold`, `Delay`,
`Drop`, `Duplicate`, `Respond`, `Cut`. Both together are a *rule*. It records each frame that it met: time, link, bytes
and the broker's answer, even if the sender has gone.

**Only what networks do.** By default nothing happens that no network can do. The order of a connection is kept: frames
behind a held one wait, frames behind a lost one are lost (`actions.py` has the reasons and how clients react). Bytes
that are not selected pass unchanged. Without rules the relay passes every byte, TLS and garbage included (`framing.py`).

**In place of a link.** `chaos.faults.frames.TamperFrames` puts relays behind links of the mesh and takes them out when
healing. Cutting and degrading these links still works. Both changes close the connections of these links, because
Toxiproxy cannot move a connection; clients connect again at once.

**Limits.** Requests on TLS listeners cannot be selected, nor responses to requests that passed before the rule was
added. A request without an answer (Produce with Acks 0) that no rule looked at is only discovered when a later answer
arrives; a `Respond` behind it waits until then. A copy needs a listener without authentication. A frame counts as
delivered when the operating system took it; only an answer shows that the broker read it.
"""

from __future__ import annotations

from chaos.frames.actions import Cut, Delay, Drop, Duplicate, FrameAction, Hold, Respond
from chaos.frames.link_context import ConnectionStatus, Tap
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
    "Tap",
]
