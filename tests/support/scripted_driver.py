"""A driver without a library that misbehaves on request, for tests of the harness.

`settings` of its configuration maps process numbers (as text), or `*`, to the behaviour of its transactions: `unknown`,
`die`, `garbage`, `hang`. They behave so while the file `when` exists. `stillborn` always dies before it is ready.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from fixtures.clients.driver_program.json_lines import JsonLines, die_with_parent, now_ns
from fixtures.clients.driver_program.main_loop import say_ready

UNKNOWN = {
    "code": -185,
    "name": "_TIMED_OUT",
    "reason": "no broker answered",
    "fatal": False,
    "retriable": True,
    "abortable": False,
}


def answer(channel: JsonLines, command: dict[str, Any], invoked_ns: int, **more: Any) -> None:
    channel.say(
        {
            "event": "done",
            "operation": command["operation"],
            "stage": "done",
            "error": None,
            "at_ns": now_ns(),
            "invoked_ns": invoked_ns,
            "decided_ns": None,
            "acks": [[index, topic, partition, 0, None] for index, topic, partition, _ in command.get("records", [])],
            "producer_id": 1,
            "producer_epoch": 0,
            "inputs": [],
            "records": [],
            "read_to": [],
            "received_ns": now_ns(),
            "aborted": False,
            **more,
        }
    )


def transaction(channel: JsonLines, command: dict[str, Any], behaviour: str) -> None:
    invoked_ns = now_ns()
    channel.hold(command, "before-commit")
    decided_ns = now_ns()
    channel.say({"event": "deciding", "operation": command["operation"], "at_ns": decided_ns})
    if behaviour == "die":
        sys.stderr.write("assertion failed: this library is out of order\n")
        sys.stderr.flush()
        os._exit(3)
    if behaviour == "garbage":
        os.write(2, b"about to talk nonsense\n")
        channel.say({"nonsense": True})
    if behaviour == "hang":
        time.sleep(600)
    if behaviour == "unknown":
        answer(channel, command, invoked_ns, stage="commit", error=UNKNOWN, decided_ns=decided_ns)
    else:
        answer(channel, command, invoked_ns, decided_ns=decided_ns)


def main() -> int:
    die_with_parent()
    channel = JsonLines.on_standard_streams()
    configuration = channel.next()
    script = configuration["settings"]
    behaviour = script.get(str(configuration["process"]), script.get("*", ""))
    if behaviour == "stillborn":
        sys.exit("no such library")
    say_ready(channel, "scripted 1", {"transactions": "TV1"})
    for command in channel:
        if command["do"] == "transaction":
            transaction(channel, command, behaviour if Path(script["when"]).exists() else "")
            continue
        if command["do"] == "poll":
            time.sleep(0.05)
        answer(channel, command, now_ns())
        if command["do"] == "close":
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
