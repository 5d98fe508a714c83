"""The command `python -m chaos.frames`: options, message definitions, and the exit code.

It runs until Ctrl-C or SIGTERM. The exit code is 0 when every rule met a frame, 2 when one never did, 4 for an option or
a rule that cannot be understood, and 5 when the upstream is unreachable, a port is taken, or the proxy itself failed.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import ssl
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from chaos.errors import InjectionError
from chaos.frames.proxy.cluster_listeners import ClusterListeners
from chaos.frames.proxy.control_port import serve
from chaos.frames.proxy.frame_log import FrameLog
from chaos.frames.proxy.rule_book import RuleBook
from chaos.frames.proxy.rule_language import RuleError, load, parse
from chaos.routes import Endpoint
from verification.command_line import Parser
from verification.vocabulary.user_cache import user_cache
from verification.vocabulary.verdict import ExitCode
from wire.errors import WireError
from wire.messages import Definitions

PROGRAM = "python -m chaos.frames"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proxy until it is ended; returns the exit code."""
    options = _arguments(arguments)
    try:
        definitions = _definitions(options.definitions)
        rules = [rule for path in options.rules for rule in load(path, definitions)]
        rules += [parse(text, definitions) for text in options.rule]
        tls = _tls(options)
    except (RuleError, WireError, OSError) as error:
        return _fail(error, ExitCode.USAGE)
    log = FrameLog(sys.stdout, every_frame=options.log == "all")
    cluster = ClusterListeners(definitions, options.listen, options.upstream, log, tls)
    with closing(cluster.links):
        book = RuleBook(cluster.links, log)
        try:
            for frames, action in rules:
                book.add(frames, action)
            cluster.start()
            asyncio.run(_until_ended(options.control, book, definitions, log))
        except (InjectionError, OSError) as error:
            return _fail(error, ExitCode.ENVIRONMENT)
    code = _conclude(book, log)
    for problem in cluster.links.problems():
        code = _fail(f"an error of the proxy itself ended a connection: {problem}", ExitCode.ENVIRONMENT)
    return code


async def _until_ended(control: int | None, book: RuleBook, definitions: Definitions, log: FrameLog) -> None:
    """Serve the control port until SIGINT or SIGTERM."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    if control is None:
        log.write("ready")
        await ended.wait()
        return
    with closing(await serve(control, book, definitions)) as server:
        host, port = server.sockets[0].getsockname()[:2]
        log.write("ready", control=f"{host}:{port}")
        await ended.wait()


def _conclude(book: RuleBook, log: FrameLog) -> int:
    """Log the counts of all rules; a rule that met no frame is a sentence on stderr, and exit code 2."""
    code = ExitCode.CONFORMANT
    for rule in book.list():
        log.write("ended", **rule)
        if not rule["met"]:
            passed = f"; frames that passed unread: {', '.join(rule['missed'])}" if rule["missed"] else ""
            code = _fail(f"rule {rule['rule']} ('{rule['text']}') met no frame{passed}", ExitCode.INCONCLUSIVE)
    return code


def _fail(problem: object, code: ExitCode) -> ExitCode:
    print(f"{PROGRAM}: {str(problem).rstrip('.')}.", file=sys.stderr)  # noqa: T201 - the output of a command
    return code


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog=PROGRAM, description="A proxy in front of a Kafka cluster that acts on single frames.")
    parser.add_argument(
        "--listen",
        type=_listen,
        required=True,
        metavar="[HOST:]PORT",
        help="first listener; HOST is 127.0.0.1 if absent",
    )
    parser.add_argument(
        "--upstream", type=_endpoint, required=True, metavar="HOST:PORT", help="a broker of the cluster"
    )
    parser.add_argument("--rule", action="append", default=[], metavar="TEXT", help="a rule; may be repeated")
    parser.add_argument("--rules", action="append", default=[], type=Path, metavar="FILE", help="rules as TOML")
    parser.add_argument("--log", choices=("met", "all"), default="met", help="frames that a rule met, or all frames")
    parser.add_argument("--control", type=_port, metavar="PORT", help="control port on loopback; 0 is any free port")
    parser.add_argument("--upstream-tls", action="store_true", help="speak TLS to the brokers")
    parser.add_argument("--upstream-ca", type=Path, metavar="PEM", help="the certificates to trust; implies TLS")
    parser.add_argument(
        "--definitions", action="append", default=[], metavar="JAR", help="a kafka-clients jar; may be repeated"
    )
    return parser.parse_args(arguments)


def _endpoint(text: str) -> Endpoint:
    host, _, port = text.rpartition(":")
    if not host:
        raise argparse.ArgumentTypeError(f"'{text}' is not an address; say host:port")
    return Endpoint(host=host.strip("[]"), port=_port(port))


def _listen(text: str) -> Endpoint:
    at = _endpoint(text if ":" in text else f"127.0.0.1:{text}")
    if at.host in ("0.0.0.0", "::"):  # noqa: S104 - it is refused
        raise argparse.ArgumentTypeError(f"clients cannot connect to {at.host}; give an address of this machine")
    return at


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 0xFFFF:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port; say a number from 0 to 65535")
    return int(text)


def _tls(options: argparse.Namespace) -> ssl.SSLContext | None:
    """The context for connections to brokers; raises OSError with the name of an unfit file."""
    if not options.upstream_tls and options.upstream_ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=options.upstream_ca)
    except OSError as error:
        raise OSError(f"the certificates in {options.upstream_ca} cannot be read: {error}") from error


def _definitions(jars: Sequence[str]) -> Definitions:
    """From the given jars, or from all in the cache: the newest first, older ones for versions that were dropped."""
    found = [str(path) for path in sorted(_cached(), key=_release, reverse=True)]
    if not jars and not found:
        raise RuleError(
            f"no kafka-clients jar is in {user_cache()}", hint="give --definitions JAR, or run `tox -e fetch`"
        )
    return Definitions.load(*(jars or found))


def _cached() -> list[Path]:
    return list(user_cache().glob("maven/org/apache/kafka/kafka-clients/*/kafka-clients-*.jar"))


def _release(jar: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", jar.parent.name)]
