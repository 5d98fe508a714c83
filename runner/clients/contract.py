"""`tox -e client-contract -- --command "./my-client"`: tries the rules of the driver protocol on a client's driver.

The driver is asked first what it can do, without a broker. Then one broker is started, and each rule is tried on a driver
of its own. A line per rule says whether it was kept, broken and how, or not applicable and why.

Exit code 0: no rule is broken; 1: a rule is broken, or the program writes no event `ready`; 4: the program cannot be started
at all; 5: the cluster cannot be started.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fixtures.clients.abilities import Abilities, ask
from fixtures.clients.contract.reading_rules import RULES as READING_RULES
from fixtures.clients.contract.rule import ContractBench, ContractRule
from fixtures.clients.contract.writing_rules import RULES as WRITING_RULES
from fixtures.clients.errors import ClientError
from fixtures.clients.own_driver import command_of
from fixtures.clusters.locks.releases import Release, default_release, parse_release
from fixtures.errors import OnceproofError
from runner.clients.one_broker import bench_on, one_broker, say
from runner.config import OUT
from verification.command_line import Parser, end_with
from verification.vocabulary.verdict import ExitCode

PROGRAM = "python -m runner.clients.contract"
RULES = (*WRITING_RULES, *READING_RULES)
KEPT, BROKEN, NOT_APPLICABLE = "kept", "BROKEN", "not applicable"


def try_rules(bench: ContractBench, rules: Sequence[ContractRule]) -> list[ContractRule]:
    """Try each rule, a line for each; returns those that are broken."""
    broken = []
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        began = time.monotonic()
        absent, sentence = rule.absent(bench.abilities), ""
        try:
            if not absent:
                rule.check(bench)
        except ClientError as error:
            sentence = str(error)
            broken.append(rule)
        finally:
            bench.close()
        word = NOT_APPLICABLE if absent else BROKEN if sentence else KEPT
        took = "" if absent else f"{time.monotonic() - began:5.1f} s  "
        say(f"{word:14}  {rule.name:{width}}  {took}{absent or ' '.join((sentence or rule.text).split())}")
    return broken


def try_on_a_cluster(
    command: Sequence[str], abilities: Abilities, release: Release, directory: Path, keyword: str
) -> int:
    """Start a cluster of one broker and try the rules on it. Raises the errors of the environment."""
    rules = [rule for rule in RULES if keyword in rule.name]
    with one_broker(release, directory) as cluster:
        bench = bench_on(cluster, command, abilities, directory / "clients")
        broken = try_rules(bench, rules)
    inapplicable = sum(1 for rule in rules if rule.absent(abilities))
    kept = len(rules) - len(broken) - inapplicable
    say(
        f"{kept} rules kept, {len(broken)} broken, {inapplicable} not applicable; logs of the driver: {bench.directory}"
    )
    return int(ExitCode.VIOLATION if broken else ExitCode.CONFORMANT)


def main(arguments: list[str] | None = None) -> int:
    """Ask the driver, then try each rule; exit code 0, 1, 4 or 5."""
    parser = Parser(prog=PROGRAM, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--command", required=True, metavar="COMMAND", help="the command line of the driver, in quotes")
    parser.add_argument("--kafka", metavar="VERSION", help="release of the broker (default: the newest supported)")
    parser.add_argument(
        "-k", dest="keyword", default="", metavar="TEXT", help="only rules whose names contain this text"
    )
    options = parser.parse_args(arguments)
    directory = OUT / f"client-contract-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}"
    if not any(options.keyword in rule.name for rule in RULES):
        parser.error(f"-k {options.keyword} names no rule; there are {', '.join(rule.name for rule in RULES)}")
    try:
        release = parse_release(options.kafka) if options.kafka else default_release()
        command = command_of(options.command)
    except OnceproofError as error:
        parser.error(str(error))
    try:
        abilities = ask(command, directory / "clients")
    except ClientError as error:
        say(f"{BROKEN:14}  ready  {error}")
        return int(ExitCode.VIOLATION)
    points = "; ".join(f"{role}: {', '.join(sorted(each)) or 'none'}" for role, each in abilities.sync_points.items())
    say(f"client: {abilities.library}; roles: {', '.join(sorted(abilities.roles))}; sync points: {points}")
    try:
        return try_on_a_cluster(command, abilities, release, directory, options.keyword)
    except OnceproofError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
        return int(error.exit_code)


if __name__ == "__main__":
    end_with(main, program=PROGRAM, kept="nothing is kept but the logs")
