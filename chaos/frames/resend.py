"""Sends a request again, byte for byte, on a connection of its own.

The copy keeps its correlation id, which does no harm: it is alone on its connection. The connection is plain and sends
nothing before. A listener with TLS or SASL closes it, and then `problem` says so.
"""

from __future__ import annotations

import asyncio
import ssl
import time

from chaos.frames.connection import close
from chaos.frames.framing import SIZE_MAX
from chaos.frames.rule import ResentRequest
from chaos.routes import Endpoint

#: Brokers are on this machine: they accept at once, or not at all while they are paused.
DIAL_S = 5.0
#: Longer than a broker lets any transactional request wait (30 s, request.timeout.ms).
ANSWER_WITHIN_S = 35.0


async def send_copy(
    to: Endpoint,
    request: bytes,
    *,
    answered: bool,
    within_s: float = ANSWER_WITHIN_S,
    tls: ssl.SSLContext | None = None,
) -> ResentRequest:
    """Send a request with its length to a broker and wait for the answer; never raises because of the broker."""
    sent_ns: int | None = None
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(DIAL_S):
            reader, writer = await asyncio.open_connection(to.host, to.port, ssl=tls)
        writer.write(request)
        await writer.drain()
        sent_ns = time.monotonic_ns()
        if not answered:
            return ResentRequest(sent_ns=sent_ns)
        async with asyncio.timeout(within_s):
            size = int.from_bytes(await reader.readexactly(4), "big")
            if size > SIZE_MAX:
                return ResentRequest(sent_ns=sent_ns, problem=f"{to} answered with a frame of {size} bytes")
            answer = await reader.readexactly(size)
        return ResentRequest(sent_ns=sent_ns, answered_ns=time.monotonic_ns(), answer=answer)
    except asyncio.IncompleteReadError:
        return ResentRequest(sent_ns=sent_ns, problem=f"{to} closed the connection instead of answering")
    except TimeoutError:
        what = f"accept within {DIAL_S:g} s" if sent_ns is None else f"answer within {within_s:g} s"
        return ResentRequest(sent_ns=sent_ns, problem=f"{to} did not {what}")
    except OSError as error:
        return ResentRequest(sent_ns=sent_ns, problem=f"{to}: {error}")
    finally:
        if writer is not None:
            await close(writer)
