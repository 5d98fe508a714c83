"""`tox -e sweep-up -- --bootstrap …`: removes the topics and groups that a killed run left on a cluster of the user.

Only names of the form *prefix, run, hyphen* are touched, where a run is twelve hexadecimal digits. `--list` removes nothing.
A run that goes on has such names, too: end it first. Transactional ids cannot be removed; the cluster forgets them by
itself (`transactional.id.expiration.ms`, a week by default).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from fixtures.clusters.given.connection import agreed_bootstrap, read_connection
from fixtures.clusters.locks.releases import clients_jar, default_release, fetch_release
from fixtures.errors import OnceproofError
from runner.given.options import DEFAULT_PREFIX
from verification.command_line import Parser, end_with
from verification.vocabulary.verdict import ExitCode
from wire.client import Client
from wire.codes import ErrorCode
from wire.deadline import Deadline
from wire.errors import WireError
from wire.messages import Definitions

#: A killed member keeps its group until its session times out: 45 s by default, in our clients 6 s.
FORGOTTEN_WITHIN_S = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """List what is left, and remove it; exit code 4 for a wrong option, 5 if the cluster fails it."""
    parser = Parser(prog="tox -e sweep-up --", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bootstrap", metavar="HOST:PORT,…", help="the cluster")
    parser.add_argument("--client-properties", type=Path, metavar="FILE", help="TLS and SASL, as in the run")
    parser.add_argument("--prefix", default=DEFAULT_PREFIX, metavar="TEXT", help="the prefix of the run")
    parser.add_argument("--list", action="store_true", help="only list them")
    asked = parser.parse_args(arguments)
    try:
        bootstrap = agreed_bootstrap(asked.bootstrap, asked.client_properties)
        if not bootstrap:
            parser.error("--bootstrap is needed, or a --client-properties file with bootstrap.servers")
        connection = read_connection(bootstrap, asked.client_properties)
        definitions = Definitions.load(clients_jar(fetch_release(default_release())))
        with connection.client(definitions, client_id="sweep-up") as client:
            found = swept(client, asked.prefix, remove=not asked.list)
    except OnceproofError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
        return int(error.exit_code)
    except WireError as error:
        print(f"The request to the cluster at {bootstrap} failed: {error}.", file=sys.stderr)  # noqa: T201
        return int(ExitCode.ENVIRONMENT)
    print(f"{len(found)} topics and groups {'were left by runs' if asked.list else 'removed'}")  # noqa: T201
    return int(ExitCode.CONFORMANT)


def swept(client: Client, prefix: str, *, remove: bool) -> list[str]:
    """Print and return everything that runs of this prefix left; remove it if asked. Raises WireError."""
    groups, topics = of_runs(client.list_groups(), prefix), of_runs(topics_of(client), prefix)
    found = [*(f"group {name}" for name in groups), *(f"topic {name}" for name in topics)]
    for each in found:
        print(each)  # noqa: T201 - the output of a command
    if remove:
        client.delete_topics(topics)
        for name in groups:
            client.until(
                f"the members of group {name}, which were killed, to be forgotten",
                partial(_delete_group, client, name),
                Deadline.after(FORGOTTEN_WITHIN_S),
                codes=frozenset({ErrorCode.NON_EMPTY_GROUP}),
                harmless=False,
            )
    return found


def _delete_group(client: Client, name: str, deadline: Deadline) -> None:
    client.delete_groups([name], deadline)


def of_runs(names: Iterable[str], prefix: str) -> list[str]:
    """The names that a run of this prefix gives."""
    return sorted(name for name in names if re.match(rf"{re.escape(prefix)}[0-9a-f]{{12}}-", name))


def topics_of(client: Client) -> Iterator[str]:
    """Every topic that this principal sees."""
    yield from client.metadata().topics


if __name__ == "__main__":
    end_with(main, program="tox -e sweep-up", kept="what is left is found again")
