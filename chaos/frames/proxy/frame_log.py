"""The log of the proxy: JSON objects, one a line, each with `time` (ISO 8601, UTC) and `event`."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any, TextIO

from chaos.frames.request_fields import FrameReader, RequestFrame
from chaos.frames.rule import MatchedFrame
from wire.codes import code_name
from wire.errors import WireError


class FrameLog:
    """Writes lines, from any thread. When the reader of the lines has gone, it writes nothing more."""

    def __init__(self, out: TextIO, *, every_frame: bool) -> None:
        self.every_frame = every_frame
        self._out, self._lock, self._open = out, threading.Lock(), True

    def write(self, event: str, **fields: Any) -> None:
        """One line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock:
            if self._open:
                try:
                    print(json.dumps({"time": now, "event": event} | fields), file=self._out, flush=True)
                except BrokenPipeError:
                    self._open = False

    def request(self, link: str, connection: int, request: RequestFrame) -> None:
        """A request that came, where every frame is wanted."""
        if self.every_frame:
            self.write("request", **_frame(link, connection, request), **_fields(request))

    def response(self, link: str, connection: int, request: RequestFrame, response: bytes) -> None:
        """A response that came, with its length, where every frame is wanted."""
        if self.every_frame:
            codes = _codes(request.reader, request.api, request.version, response[4:])
            self.write("response", **_frame(link, connection, request), bytes=len(response), errors=codes)

    def met(self, rule: int, verb: str, reader: FrameReader, frame: MatchedFrame) -> None:
        """A frame that a rule met, each time that more becomes known of it."""
        self.write(
            "met",
            rule=rule,
            action=verb,
            number=frame.number + 1,
            direction=frame.direction,
            **_frame(frame.link, frame.connection, reader.request(frame.request)),
            state=frame.disposition,
            answered=frame.answer is not None,
            errors=_codes(reader, frame.api, frame.version, frame.answer),
            copied=bool(frame.copies),
            copies=[
                {"errors": _codes(reader, frame.api, frame.version, copy.answer), "problem": copy.problem}
                for copy in frame.copies
            ],
        )


def _frame(link: str, connection: int, request: RequestFrame) -> dict[str, Any]:
    return {
        "broker": link,
        "connection": connection,
        "api": request.api,
        "version": request.version,
        "correlation_id": request.correlation_id,
    }


def _fields(request: RequestFrame) -> dict[str, Any]:
    try:
        found = request.fields()
    except WireError as error:
        return {"bytes": len(request.frame), "unread": str(error)}
    named = {name: sorted(map(str, getattr(found, name))) for name in found.__dataclass_fields__}
    return {"bytes": len(request.frame)} | {name: values for name, values in named.items() if values}


def _codes(reader: FrameReader, api: str, version: int, answer: bytes | None) -> list[str] | None:
    """The error codes of an answer by name; None where there is no answer, or none that can be read."""
    try:
        codes = () if answer is None else reader.error_codes(api, version, answer)
        return None if answer is None else [code_name(code).split(" ")[0] for code in codes]
    except WireError:
        return None
