"""The control port: one JSON object a line over TCP on loopback, and one line in answer.

::

    {"add": "drop response EndTxn #1"}  →  {"rule": 2}
    {"remove": 2}                       →  {"removed": 2}     frames that it holds are released
    {"release": 2}                      →  {"released": 2}    the rule stays
    {"list": true}                      →  {"rules": [{"rule": 1, "met": 3, …}]}

A command that cannot be carried out is answered with {"error": "one sentence"}.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from chaos.errors import ChaosError
from chaos.frames.proxy.rule_book import RuleBook
from chaos.frames.proxy.rule_language import RuleError, parse
from wire.messages import Definitions

_USE = '{"add": "RULE"}, {"remove": N}, {"release": N} or {"list": true}'


def obey(line: bytes, book: RuleBook, definitions: Definitions) -> dict[str, Any]:
    """Carry out one command; returns the answer. It may take some seconds, while brokers take released frames."""
    try:
        command = json.loads(line)
    except ValueError:
        command = None
    try:
        if not isinstance(command, dict) or len(command) != 1:
            raise RuleError(f"a command is one of {_USE}")
        ((verb, value),) = command.items()
        if verb == "add":
            return {"rule": book.add(*parse(str(value), definitions))}
        if verb == "remove":
            book.remove(value)
            return {"removed": value}
        if verb == "release":
            book.release(value)
            return {"released": value}
        if verb == "list":
            return {"rules": book.list()}
        raise RuleError(f"'{verb}' is not a command; say {_USE}")
    except ChaosError as error:
        return {"error": str(error)}


async def serve(port: int, book: RuleBook, definitions: Definitions) -> asyncio.Server:
    """Listen on loopback; raises OSError. Commands are carried out one after the other."""
    turn = asyncio.Lock()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                async with turn:
                    said = await asyncio.to_thread(obey, line, book, definitions)
                writer.write(json.dumps(said).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):  # the peer has gone, or its line is longer than 64 KiB
            pass
        finally:
            writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", port)
