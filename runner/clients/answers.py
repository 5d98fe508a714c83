"""`tox -e client-answers -- --client franz-go`: how a client treats each answer that a broker may give.

One broker is started, with a frame proxy in front of it. For each request of a transaction, and each error code with which
a broker may answer it, a driver of the client gets that answer once (`fixtures/clients/answers`). A line per answer says
how the client treated it, and whether what it said about its transactions is in the log.

Results are kept as one JSON line per client and library version, and `docs/generated/client-answers.md` is rendered from
those lines.

Exit code 0: every answer was treated as the protocol says; 1: one was not, or the client said something untrue; 2: the
client sent none of the requests; 4: there is no such client or answer; 5: the cluster cannot be started.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaos.frames import Respond
from fixtures.clients.abilities import ask
from fixtures.clients.answers.table import LATE_S, TriedAnswer, answers
from fixtures.clients.answers.trial import Trial, perform
from fixtures.clients.own_driver import own_client
from fixtures.clients.registry import ClientKind, client_kind
from fixtures.clusters.locks.releases import Release, default_release, parse_release
from fixtures.errors import OnceproofError
from runner.clients.one_broker import bench_on, one_broker, proxied, say
from runner.config import OUT, ROOT
from runner.resumable_matrix import markdown_table, stored_lines
from verification.command_line import Parser, end_with
from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.verdict import ExitCode

PROGRAM = "python -m runner.clients.answers"
#: Both are kept in the repository, so that clients can be tried one at a time.
LINES = ROOT / "docs" / "generated" / "client-answers.jsonl"
PAGE = ROOT / "docs" / "generated" / "client-answers.md"
#: The situations of an application, by the names of answers; one names its request as well.
SITUATIONS: dict[str, tuple[str, ...]] = {
    "a newer instance has fenced it": ("PRODUCER_FENCED",),
    "the broker asks for an abort": ("TRANSACTION_ABORTABLE",),
    "its transaction took too long: a new epoch (KIP-588)": ("Produce/INVALID_PRODUCER_EPOCH",),
    "the coordinator moves": ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
    "an answer comes after the request timeout": (f"answer comes after {LATE_S:g} s",),
    "the answer to its commit is lost": ("EndTxn/connection ends before the answer",),
    "its group has gone on without it": (
        *("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "FENCED_INSTANCE_ID"),
    ),
}
#: The words of the page for a trial without a treatment.
NOT_ASKED, NO_END = "not sent", "no end"


def try_client(
    client: ClientKind, release: Release, directory: Path, chosen: Sequence[TriedAnswer]
) -> tuple[list[Trial], dict[str, Any]]:
    """Try the answers on a client; the trials, and its line. Raises the errors of the environment."""
    command = client.command(release.version)
    abilities = ask(command, directory / "clients")
    say(f"client: {abilities.library}")
    trials: list[Trial] = []
    with (
        one_broker(release, directory) as cluster,
        proxied(cluster.witness_bootstrap, release, directory / "proxy.log") as (through, links),
    ):
        for answer in chosen:
            if answer.role not in abilities.roles:
                trials.append(Trial(answer=answer, absent=f"it has no role {answer.role}"))
                continue
            bench = bench_on(cluster, command, abilities, directory / "clients")
            trials.append(perform(bench, links, answer, through=through))
            say(_line(trials[-1]))
    return trials, {
        "client": client.name,
        "library": abilities.library,
        "release": release.version,
        "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
        "trials": [_stored(each) for each in trials],
    }


def _merged(line: dict[str, Any], stored: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A line with the stored trials of the same library, on the same release, of the answers that were not tried again."""
    tried = {each["answer"] for each in line["trials"]}
    names = ("library", "release")
    before = [each for each in stored if all(each[name] == line[name] for name in names)]
    kept = [trial for each in before for trial in each["trials"] if trial["answer"] not in tried]
    return line | {"trials": [*kept, *line["trials"]]}


def _line(trial: Trial) -> str:
    mark = "as expected" if trial.as_expected else "DIFFERS"
    expected = "" if trial.as_expected else f" (expected {' or '.join(trial.answer.expected)})"
    notes = "; ".join(filter(None, (trial.said, trial.absent, trial.problem, *trial.untrue)))
    return (
        f"{NOT_ASKED if trial.absent else mark:12} {trial.answer.key:55} {_word(trial):10}{expected} {notes}".rstrip()
    )


def _word(trial: Trial) -> str:
    if trial.absent:
        return NOT_ASKED
    return trial.treatment.value if trial.treatment else NO_END


def _stored(trial: Trial) -> dict[str, Any]:
    return {
        "answer": trial.answer.key,
        "treated": _word(trial),
        "said": trial.said,
        "problem": trial.absent or trial.problem,
        "untrue": trial.untrue,
    }


def render(lines: Sequence[dict[str, Any]]) -> None:
    """Write the page: a column per client."""
    lines = sorted(lines, key=lambda line: str(line["client"]))
    by_client = [{each["answer"]: each for each in line["trials"]} for line in lines]
    rows = [
        [
            answer.api,
            answer.name,
            " or ".join(answer.expected),
            *(_cell(answer, trials.get(answer.key)) for trials in by_client),
        ]
        for answer in answers()
    ]
    heads = [f"{line['library']} ({line['release']}, {line['date']})" for line in lines]
    untrue = [
        f"- **{line['library']}**, {each['answer']}: {'; '.join(each['untrue'])}"
        for line in lines
        for each in line["trials"]
        if each["untrue"]
    ]
    atomic_write(
        PAGE,
        "# Answers and clients\n\n"
        "Written by `tox -e client-answers`. Each client got each answer once, in place of its broker's, while it wrote a\n"
        "transaction. *retriable*: it asked again, and the application noticed nothing. *abortable*: the transaction\n"
        "failed, and the same producer went on. *fatal*: only a successor went on. *not sent*: the client sends no such\n"
        "request, or an older version of it, to which no broker gives that answer. **Bold** is another treatment than\n"
        "expected. [Clients](../clients.md) explains the findings.\n\n"
        "The error codes decide `ERR-04` (KIP-1050) for each client; answers that are lost or late do not.\n\n"
        + "\n".join(markdown_table(["client", "`ERR-04`", "codes as expected", "others", "not sent"], _decided(lines)))
        + "\n\n## Situations\n\n"
        "From the answers below. Where several answers mean one situation and a client treats them in different ways, the\n"
        "numbers count these answers.\n\n"
        + "\n".join(markdown_table(["situation", *(str(line["library"]) for line in lines)], _situations(lines)))
        + "\n\n## Answer by answer\n\n"
        + "\n".join(markdown_table(["request", "answer", "expected", *heads], rows))
        + "\n## Said, and not true\n\n"
        + ("\n".join(untrue) or "Nothing.")
        + "\n",
    )


def _decided(lines: Sequence[dict[str, Any]]) -> list[list[str]]:
    """ERR-04 for each client that was tried with every code: its name, the word, and its codes by treatment."""
    codes = {each.key: each for each in answers() if isinstance(each.action, Respond)}
    rows = []
    for line in lines:
        trials = [each for each in line["trials"] if each["answer"] in codes]
        sent = [each for each in trials if each["treated"] != NOT_ASKED]
        right = sum(_is_right(codes[each["answer"]], each) for each in sent)
        word = "passes" if right == len(sent) else "**fails**"
        if len(trials) < len(codes) or not sent:
            word = "not decided"
        counts = (right, len(sent) - right, len(trials) - len(sent))
        rows.append([str(line["library"]), word, *map(str, counts)])
    return rows


def _situations(lines: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """The treatments in each situation, for each client; last the number of answers after which it said something untrue."""
    for situation, names in SITUATIONS.items():
        met = [each for each in answers() if each.name in names or each.key in names]
        yield [situation, *(_treatments(met, line) for line in lines)]
    untrue = (sum(bool(each["untrue"]) for each in line["trials"]) for line in lines)
    yield ["answers after which it says something untrue", *(f"**{count}**" if count else "none" for count in untrue)]


def _treatments(met: Sequence[TriedAnswer], line: dict[str, Any]) -> str:
    trials = {each["answer"]: each for each in line["trials"]}
    words = Counter(_cell(each, trials.get(each.key)) for each in met)
    words.pop(NOT_ASKED, None)
    words.pop("", None)
    return ", ".join(f"{word} {count} ×" if len(words) > 1 else word for word, count in words.items()) or NOT_ASKED


def _is_right(answer: TriedAnswer, trial: dict[str, Any]) -> bool:
    """Whether an answer was treated as the table has it now, with nothing untrue said."""
    return trial["treated"] in answer.expected and not trial["untrue"]


def _cell(answer: TriedAnswer, trial: dict[str, Any] | None) -> str:
    if trial is None:
        return ""
    word = str(trial["treated"])
    return word if word == NOT_ASKED or _is_right(answer, trial) else f"**{word}**"


def main(arguments: list[str] | None = None) -> int:
    """Try the answers on each client; exit code 0, 1, 4 or 5."""
    parser = Parser(prog=PROGRAM, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--client", action="append", metavar="NAME", help="a client, or NAME@VERSION; may be repeated")
    parser.add_argument("--client-driver", metavar="COMMAND", help="a driver of your own, by its command line")
    parser.add_argument("--kafka", metavar="VERSION", help="release of the broker (default: the newest supported)")
    parser.add_argument(
        *("-k", "--keyword"),
        action="append",
        metavar="TEXT",
        help="only answers whose names contain this; may be repeated",
    )
    parser.add_argument("--render-only", action="store_true", help="try nothing; rebuild the page from stored results")
    options = parser.parse_args(arguments)
    store = stored_lines(LINES, key=lambda line: str(line["library"]), show=render)
    if options.render_only:
        store.save()
        return int(ExitCode.CONFORMANT)
    words = options.keyword or [""]
    chosen = [each for each in answers() if any(word.lower() in each.key.lower() for word in words)]
    if not chosen:
        parser.error(f"-k {' '.join(words)} names no answer; an example is {answers()[0].key}")
    try:
        release = parse_release(options.kafka) if options.kafka else default_release()
        own = [own_client(options.client_driver, "", started=False)] if options.client_driver else []
        clients = own + [client_kind(each) for each in options.client or ([] if own else ["confluent", "java"])]
    except OnceproofError as error:
        parser.error(str(error))
    differs = tried = False
    for client in clients:
        directory = OUT / f"client-answers-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}" / client.name
        directory.mkdir(parents=True)
        try:
            trials, line = try_client(client, release, directory, chosen)
        except OnceproofError as error:
            print(error, file=sys.stderr)  # noqa: T201 - the voice of a command
            return int(error.exit_code)
        merged = _merged(line, store.cells)
        # A part of the answers is no result for a client that has none yet.
        if len(chosen) == len(answers()) or merged != line:
            store.put(merged)
        wrong = sum(not trial.as_expected for trial in trials)
        say(f"{len(trials)} answers, {wrong} treated in another way than expected; logs: {directory}")
        differs, tried = differs or wrong > 0, tried or any(trial.asked for trial in trials)
    if not tried:
        say("No request of these was sent, so nothing was tried.")
        return int(ExitCode.INCONCLUSIVE)
    return int(ExitCode.VIOLATION if differs else ExitCode.CONFORMANT)


if __name__ == "__main__":
    end_with(main, program=PROGRAM, kept="results of the clients that were finished are kept")
