"""`tox -e client-matrix`: the scenarios of the quick profile with each client library, and a table of requirements.

Each client is one `tox -e conformance -- --only scenarios --client NAME` in a process of its own, with its own run
directory. Results are kept as one JSON line per client, and after every run `docs/generated/clients.md` is rendered from
those lines. A version of a client has a column of its own: `--client kafka-python@2.2.4`.

A scenario that a library cannot take part in is NOT APPLICABLE. The comparison judges no broker: the release is one whose
own bugs have their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fixtures.clients.registry import CLIENTS, client_kind
from runner import checkout, matrix_run, requirement_table
from runner.clients.bugs import shown_by
from runner.config import ROOT
from runner.matrix_run import MatrixRunError
from runner.requirement_table import text_of
from runner.resumable_matrix import CellStore, add_resuming_options, markdown_table, stored_lines
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.verdict import ExitCode, Verdict

#: Both are kept in the repository, so that the comparison goes on on another machine.
LINES = ROOT / "docs" / "generated" / "clients.jsonl"
TABLE = ROOT / "docs" / "generated" / "clients.md"
#: The release of the comparison. It drops markers of partitions without a leader (KB-16), whatever the client.
RELEASE = "4.3.1"
SEED = 1
#: The scenarios of a client took 8 minutes on two slow cores; five times that is a run that hangs.
RUN_WITHIN_S = 2_400.0
#: The lines of results, one for each client.
Stored = CellStore[str, dict[str, Any]]


def perform(client: str) -> dict[str, Any]:
    """Perform the scenarios with one client and return its line. Raises the errors of `matrix_run.perform`."""
    options = ["--only=scenarios", f"--kafka={RELEASE}", f"--seed={SEED}", "--runtime=local", f"--client={client}"]
    line, results = matrix_run.perform(f"client-{client}", ["suites", *options], within_s=RUN_WITHIN_S)
    if line["exit_code"] == ExitCode.ENVIRONMENT:
        raise MatrixRunError(f"{client} could not be tried; the output says why.")
    library = next((each["library"] for each in results["subject"]["clients"] if each["name"] == client), client)
    scenarios = {each["scenario"]: _scenario(each) for each in results["scenarios"]}
    requirements = requirement_table.results_of(results)
    return {"name": client, "library": library, **line, "scenarios": scenarios, "requirements": requirements}


def _scenario(result: dict[str, Any]) -> dict[str, Any]:
    """The verdict of a scenario, the known bugs of brokers that explain it, and the reason of one that is no PASS."""
    bugs = sorted({finding["known_bug"] for finding in result["findings"] if finding.get("known_bug")})
    why = {} if result["verdict"] == Verdict.PASS.name else {"reason": result["reason"]}
    return {"verdict": result["verdict"], "known_bugs": bugs} | why


def render(lines: Sequence[dict[str, Any]]) -> str:
    """The page: a summary, scenario × client, the reasons, and requirement × client."""
    order = {name: number for number, name in enumerate(CLIENTS)}
    shown = sorted(lines, key=lambda line: (order.get(line["name"].partition("@")[0], len(order)), line["name"]))
    scenarios = sorted({name for line in shown for name in line["scenarios"]})
    return "\n".join(
        [
            "# Scenarios and requirements by client",
            "",
            f"The scenarios of the quick profile on Kafka {RELEASE}, seed {SEED}, written by `tox -e client-matrix`.",
            "[Clients](../clients.md) explains the findings. KB-16 is of the broker, whatever the client. Names that begin",
            "with CB- are [bugs of clients](track-record.md#known-bugs-of-clients-version-by-version).",
            "",
            *markdown_table(
                ["client", "library", "decision", *requirement_table.WORDS, "minutes", "commit"],
                (
                    [
                        *(each[name] for name in ("name", "library", "decision")),
                        *requirement_table.counts(each),
                        f"{each['seconds'] / 60:.1f}",
                        each["commit"],
                    ]
                    for each in shown
                ),
            ),
            "",
            "## Scenarios",
            "",
            *markdown_table(
                ["scenario", *(line["name"] for line in shown)],
                ([name, *(_cell(line, name) for line in shown)] for name in scenarios),
            ),
            "",
            *(row for line in shown for row in _reasons(line)),
            *requirement_table.tables(shown),
        ]
    )


def _cell(line: dict[str, Any], name: str) -> str:
    scenario = line["scenarios"].get(name)
    if scenario is None:
        return "not run"
    word = str(scenario["verdict"]).replace("_", " ")
    if word == Verdict.FAIL.name:
        word = f"**FAIL** {', '.join(_explained(line, name))}".strip()
    return word


def _explained(line: dict[str, Any], name: str) -> list[str]:
    """The known bugs, of brokers or of the client, behind a scenario that failed."""
    scenario = line["scenarios"][name]
    failed = scenario["verdict"] == Verdict.FAIL.name
    return scenario["known_bugs"] or (shown_by(line["library"], name) if failed else [])


def _reasons(line: dict[str, Any]) -> list[str]:
    """The reasons of the scenarios that did not pass, as far as no known bug explains them."""
    unexplained = {
        name: each["reason"]
        for name, each in line["scenarios"].items()
        if "reason" in each and not _explained(line, name)
    }
    if not unexplained:
        return []
    return [
        f"### {line['name']}: not PASS",
        "",
        *markdown_table(["scenario", "reason"], ([name, text_of(why)] for name, why in sorted(unexplained.items()))),
        "",
    ]


def read() -> Stored:
    """The stored results; each one that is put rewrites them and the page."""
    return stored_lines(LINES, key=lambda line: line["name"], show=lambda lines: atomic_write(TABLE, render(lines)))


def main(arguments: list[str] | None = None) -> int:
    """Try the clients without a result of this commit; exit code 2 for a client that is missing, 5 for a broken run."""
    parser = Parser(prog="python -m runner.clients.matrix", description=(__doc__ or "").splitlines()[0])
    add_resuming_options(parser)
    parser.add_argument(
        "--client", action="append", default=[], metavar="NAME[@VERSION]", help="only this client; may be repeated"
    )
    options = parser.parse_args(arguments)
    stored, commit = read(), checkout.commit()

    def due() -> list[str]:
        wanted = [client_kind(name).name for name in options.client or CLIENTS]
        return stored.outstanding(wanted, valid=lambda line: line["commit"] == commit, rerun=options.rerun)

    if (ended := matrix_run.fill(stored, due, perform, render_only=options.render_only)) is not None:
        return ended
    tried = {line["name"] for line in stored.cells}
    return int(ExitCode.CONFORMANT if tried.issuperset(CLIENTS) else ExitCode.INCONCLUSIVE)


if __name__ == "__main__":
    end_with(
        main, program="python -m runner.clients.matrix", kept=f"the results so far are in {LINES.relative_to(ROOT)}"
    )
