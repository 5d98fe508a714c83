"""`tox -e implementations`: the protocol cases on several brokers that speak Kafka's protocol, and a table of requirements.

The subjects are three releases of Kafka, the kfake cluster of franz-go's tests, and the mock cluster of librdkafka's tests.
Any other broker takes part by `--bootstrap` or `--broker-command`, with a `--name`. Each is one `tox -e protocol` in a
process of its own, with its own run directory. Results are kept as one JSON line per subject, and after every run
`docs/generated/implementations.md` is rendered from those lines.

A broker that does not offer a request does not implement the requirements that need it. That is a result of its own and
never a failure. The comparison judges no release: a failed requirement of Kafka has its name in the track record.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import libversion

from fixtures.clusters.given.program import PORT
from fixtures.clusters.locks.releases import default_release
from fixtures.errors import UsageError
from fixtures.tools.go_program import built
from runner import checkout, matrix_run, requirement_table
from runner.config import ROOT
from runner.matrix_run import MatrixRunError
from runner.resumable_matrix import CellStore, add_resuming_options, markdown_table, stored_lines
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.verdict import ExitCode

#: Both are kept in the repository, so that the comparison goes on on another machine.
LINES = ROOT / "docs" / "generated" / "implementations.jsonl"
TABLE = ROOT / "docs" / "generated" / "implementations.md"
KFAKE = ROOT / "fixtures" / "clusters" / "kfake"
#: The cases of a release took 6 minutes on two slow cores; three times that is a run that hangs.
RUN_WITHIN_S = 1_200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """A broker: `name` is its column, `like` the release of Kafka whose requirements it is compared with."""

    name: str
    like: str
    arguments: tuple[str, ...] = ()
    """The options that say how it is reached; none for a release of Kafka, for kfake and for the mock cluster."""


MATRIX: tuple[Implementation, ...] = (
    *(Implementation(name=f"Kafka {release}", like=release) for release in ("3.9.2", "4.3.1", "4.4.0")),
    Implementation(name="kfake", like="4.4.0"),
    Implementation(name="librdkafka mock", like="4.4.0"),
)
#: The lines of results, one for each subject.
Stored = CellStore[str, dict[str, Any]]


def perform(subject: Implementation) -> dict[str, Any]:
    """Perform the cases on one subject and return its line. Raises the errors of `matrix_run.perform` and of its start."""
    how, version = _reached(subject)
    arguments = ["suites/protocol", "-p", "no:hypothesispytest", f"--kafka={subject.like}", *how]
    name = f"implementation-{subject.name.replace(' ', '-')}"
    line, results = matrix_run.perform(name, arguments, within_s=RUN_WITHIN_S)
    if line["exit_code"] == ExitCode.ENVIRONMENT:
        raise MatrixRunError(f"{subject.name} could not be tried; the output says why.")
    kept = {"name": subject.name, "like": subject.like, "version": version, **line}
    return kept | {"requirements": requirement_table.results_of(results)}


def _reached(subject: Implementation) -> tuple[tuple[str, ...], str]:
    """The options with which the subject is reached, and its version. Raises ToolBuildError."""
    if subject.name == "kfake":
        return ("--broker-command", f"{built(KFAKE)} {PORT}"), _version_of_kfake()
    if subject.name == "librdkafka mock":
        return ("--broker-command", f"{sys.executable} -m fixtures.clients.mock_broker {PORT}"), libversion()[0]
    return subject.arguments or ("--runtime=local",), "" if subject.arguments else subject.like


def _version_of_kfake() -> str:
    module = (KFAKE / "go.mod").read_text(encoding="utf-8")
    return next(line.split()[-1] for line in module.splitlines() if "pkg/kfake" in line)


def render(lines: Sequence[dict[str, Any]]) -> str:
    """The page: a summary, a table of requirements for each family, and the failures of brokers of other makes."""
    order = {each.name: number for number, each in enumerate(MATRIX)}
    shown = sorted(lines, key=lambda line: order.get(line["name"], len(order)))
    return "\n".join(
        [
            "# Implementations",
            "",
            "The protocol cases on brokers of several makes, written by `tox -e implementations`.",
            "[Other brokers](../implementations.md) says how to read it, and how to try a broker of your own.",
            "",
            *markdown_table(
                ["broker", "version", "requirements of", *requirement_table.WORDS, "minutes", "commit"],
                (
                    [each["name"], each["version"], each["like"], *requirement_table.counts(each), *_cost(each)]
                    for each in shown
                ),
            ),
            "",
            *requirement_table.tables(shown),
            *(
                line
                for each in shown
                if not each["name"].startswith("Kafka ")
                for line in requirement_table.failures(each)
            ),
        ]
    )


def _cost(line: dict[str, Any]) -> list[str]:
    return [f"{line['seconds'] / 60:.1f}", line["commit"]]


def read() -> Stored:
    """The stored results; each one that is put rewrites them and the page."""
    return stored_lines(LINES, key=lambda line: line["name"], show=lambda lines: atomic_write(TABLE, render(lines)))


def subjects(options: Namespace) -> tuple[Implementation, ...]:
    """The subjects that were asked for. Raises UsageError."""
    if not (options.bootstrap or options.broker_command or options.client_properties):
        return matrix_run.chosen(MATRIX, [options.only])
    if not options.name:
        raise UsageError("A broker of your own needs --name, the name of its column.")
    asked = [
        *(("--bootstrap", options.bootstrap) if options.bootstrap else ()),
        *(("--broker-command", options.broker_command) if options.broker_command else ()),
        *(("--client-properties", str(Path(options.client_properties).resolve())) if options.client_properties else ()),
    ]
    return (Implementation(name=options.name, like=options.kafka, arguments=tuple(asked)),)


def _declare(parser: ArgumentParser) -> None:
    add_resuming_options(parser)
    parser.add_argument("--only", default="", metavar="TEXT", help="only subjects whose name contains this text")
    parser.add_argument("--bootstrap", metavar="HOST:PORT,…", help="a broker of another make that runs already")
    parser.add_argument("--broker-command", metavar="CMD", help="a broker that is started: './my-broker {port}'")
    parser.add_argument("--client-properties", metavar="FILE", help="--bootstrap: TLS and SASL")
    parser.add_argument("--name", default="", help="the name of its column")
    parser.add_argument(
        "--kafka", default=default_release().version, metavar="VERSION", help="the release it is compared with"
    )


def main(arguments: list[str] | None = None) -> int:
    """Try the subjects without a result of this commit; exit code 2 for a subject that is missing, 5 for a broken run."""
    parser = Parser(prog="python -m runner.protocol.implementations", description=(__doc__ or "").splitlines()[0])
    _declare(parser)
    options = parser.parse_args(arguments)
    stored, commit = read(), checkout.commit()

    def due() -> list[Implementation]:
        wanted = {each.name: each for each in subjects(options)}
        names = stored.outstanding(wanted, valid=lambda line: line["commit"] == commit, rerun=options.rerun)
        return [wanted[name] for name in names]

    if (ended := matrix_run.fill(stored, due, perform, render_only=options.render_only)) is not None:
        return ended
    tried = {line["name"] for line in stored.cells}
    return int(ExitCode.CONFORMANT if tried.issuperset(each.name for each in MATRIX) else ExitCode.INCONCLUSIVE)


if __name__ == "__main__":
    end_with(
        main,
        program="python -m runner.protocol.implementations",
        kept=f"the results so far are in {LINES.relative_to(ROOT)}",
    )
