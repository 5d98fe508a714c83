"""The command `python -m chaos.frames` as a user runs it: start, control port, log, end and exit codes."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.frames.proxy.command import main
from chaos.routes import Endpoint
from tests.support.servers.frame_broker import FrameBroker, client, end_txn, frame_broker
from tests.support.servers.frame_proxy import Proxy, frame_proxy
from tests.support.servers.wire_peer import broker as peer
from tests.support.wire_definitions import definition_jars

DROP = "answer 51 response EndTxn #2 of transactional id billing-*"
TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x46"
JARS = [word for jar in definition_jars() for word in ("--definitions", jar)]


@pytest.fixture
def broker() -> Iterator[FrameBroker]:
    with frame_broker() as broker:
        yield broker


def arguments(broker: FrameBroker, *more: str) -> list[str]:
    """A command line with free ports."""
    return ["--listen", "0", "--upstream", str(broker.at), *JARS, *more]


def at(text: str) -> Endpoint:
    """An address of the log."""
    host, _, port = text.rpartition(":")
    return Endpoint(host=host, port=int(port))


def commit(proxy: Proxy, *ids: str) -> list[int]:
    """EndTxn for each of these ids; returns the codes."""
    with client(at(proxy.bootstrap)) as one:
        return [one.receive(one.send(end_txn(each)))["ErrorCode"] for each in ids]


def refused(at: Endpoint) -> bool:
    """Whether nothing listens there."""
    with socket.socket() as tried:
        return tried.connect_ex((at.host, at.port)) != 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_rule_that_met_its_frame_ends_with_0(broker: FrameBroker, number: int) -> None:
    """The second response of a matching id is met and logged; after the signal nothing listens any more."""
    with frame_proxy(*arguments(broker, "--rule", DROP, "--control", "0")) as proxy:
        listening = [at(proxy.bootstrap), at(proxy.line("ready")["control"])]
        assert commit(proxy, "billing-1", "other", "billing-2", "billing-3") == [0, 0, 51, 0]
        met = proxy.line("met", state="answered")
        assert (met["rule"], met["number"], met["api"], met["errors"]) == (1, 1, "EndTxn", ["NONE"])
        assert proxy.end(number) == 0, proxy.errors
    assert proxy.line("ended")["met"] == 1
    assert proxy.errors == ""
    assert all(map(refused, listening))


def test_a_rule_that_met_no_frame_ends_with_2(broker: FrameBroker) -> None:
    """With one sentence that names it; other rules do not hide it."""
    with frame_proxy(*arguments(broker, "--rule", "delay 0.01 request EndTxn", "--rule", DROP)) as proxy:
        assert commit(proxy, "billing-1") == [0]
        assert proxy.end() == 2
    assert proxy.errors == f"python -m chaos.frames: rule 2 ('{DROP}') met no frame.\n"


def test_rules_change_at_run_time(broker: FrameBroker) -> None:
    """A rule is added, holds a frame, releases it, is listed and removed; mistakes are answered in one sentence."""
    with frame_proxy(*arguments(broker, "--control", "0")) as proxy, client(at(proxy.bootstrap)) as one:
        control = at(proxy.line("ready")["control"])
        with socket.create_connection((control.host, control.port), timeout=20) as port, port.makefile("rw") as lines:

            def say(command: object) -> dict[str, Any]:
                lines.write((command if isinstance(command, str) else json.dumps(command)) + "\n")
                lines.flush()
                answer: dict[str, Any] = json.loads(lines.readline())
                return answer

            assert say({"add": "hold request EndTxn"}) == {"rule": 1}
            pending = one.send(end_txn())
            proxy.line("met", state="kept")
            (listed,) = say({"list": True})["rules"]
            assert (listed["text"], listed["met"], listed["kept"]) == ("hold request EndTxn", 1, 1)
            assert broker.frames[1:] == []
            assert say({"release": 1}) == {"released": 1}
            one.receive(pending)
            pending = one.send(end_txn())
            proxy.line("met", state="kept", number=2)
            assert say({"remove": 1}) == {"removed": 1}
            one.receive(pending)
            assert one.receive(one.send(end_txn()))["ErrorCode"] == 0
            (listed,) = say({"list": True})["rules"]
            assert (listed["active"], listed["met"], listed["kept"]) == (False, 2, 0)
            assert say({"remove": 2}) == {"error": "there is no rule 2; there are 1 rules, numbered from 1"}
            assert "'drp' is not an action" in say({"add": "drp request EndTxn"})["error"]
            assert say("nonsense")["error"].startswith("a command is one of ")
            assert say({"ad": 1})["error"].startswith("'ad' is not a command; say ")
        assert proxy.end() == 0


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["--listen", "x"], 4, "argument --listen: 'x' is not a port; say a number from 0 to 65535"),
        (["--listen", "0.0.0.0:1"], 4, "clients cannot connect to 0.0.0.0; give an address of this machine"),
        (["--upstream", "kafka"], 4, "argument --upstream: 'kafka' is not an address; say host:port"),
        (["--rule", "drp"], 4, "the rule 'drp' cannot be read: 'drp' is not an action; say hold, "),
        (["--rules", "absent.toml"], 4, "the rules file absent.toml cannot be read: "),
        (["--definitions", "absent.jar"], 4, "cannot read message definitions from absent.jar: "),
        (["--upstream-ca", "absent.pem"], 4, "the certificates in absent.pem cannot be read: "),
        ([], 5, "the upstream broker 127.0.0.1:1 is unreachable: no connection to 127.0.0.1:1: "),
    ],
)
def test_a_mistake_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, problem: str
) -> None:
    """On stderr, with the exit code of the table."""
    jars = [] if "--definitions" in words else JARS
    try:
        ended = main(["--listen", "0", "--upstream", "127.0.0.1:1", *jars, *words])
    except SystemExit as exit_:
        ended = int(str(exit_.code))
    errors = capsys.readouterr().err
    assert ended == code
    assert errors.startswith("python -m chaos.frames: ")
    assert problem in errors
    assert errors.count("\n") == 1


def test_a_cache_without_jars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sentence says how to get one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["--listen", "0", "--upstream", "127.0.0.1:1"]) == 4
    assert capsys.readouterr().err == (
        f"python -m chaos.frames: no kafka-clients jar is in {tmp_path}/onceproof "
        "(give --definitions JAR, or run `tox -e fetch`).\n"
    )


def test_an_upstream_that_is_no_broker(capsys: pytest.CaptureFixture[str]) -> None:
    """A peer that answers with other bytes, as a TLS listener does, is one sentence with a hint."""
    with peer(lambda script: script.socket.sendall(TLS_ALERT)) as (host, port):
        assert main(["--listen", "0", "--upstream", f"{host}:{port}", *JARS]) == 5
    assert capsys.readouterr().err.endswith("(a TLS listener needs --upstream-tls).\n")


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str], broker: FrameBroker) -> None:
    """One sentence, and exit code 5."""
    assert main(["--listen", str(broker.at.port), "--upstream", str(broker.at), *JARS]) == 5
    assert "cannot listen for the frame-aware link" in capsys.readouterr().err
