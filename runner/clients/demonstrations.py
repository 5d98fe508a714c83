"""The ways in which a bug of a client is shown: by one answer in place of its broker's, in a scenario, or by a script."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.frames import FrameLinks
from fixtures.clients.abilities import ask
from fixtures.clients.answers.table import answers
from fixtures.clients.answers.trial import perform as perform_trial
from fixtures.clients.contract.rule import ContractBench, require, require_none
from fixtures.clients.driver_program.python_libraries import DID_NOT_RETURN
from fixtures.clients.errors import ClientError
from fixtures.clients.registry import ClientKind
from fixtures.clusters.locks.releases import parse_release
from fixtures.clusters.runtime import RunningCluster
from runner import matrix_run
from runner.clients.lost_acknowledgement import lost_acknowledgement
from runner.clients.one_broker import bench_on, one_broker, proxied
from verification.vocabulary.verdict import Verdict

#: The release of the broker, which is not to blame.
RELEASE = "4.3.1"
#: One scenario: a minute, and minutes on a machine that is busy.
SCENARIO_WITHIN_S = 900.0
#: The broker is back after some seconds; a call that is not over by then does not return.
RETURNS_WITHIN_S = 60.0


@contextmanager
def bench_for(
    client: ClientKind, directory: Path, feature_levels: Mapping[str, int] | None = None
) -> Iterator[tuple[RunningCluster, ContractBench]]:
    """A cluster of one broker, and a bench for a client on it. Raises the errors of the environment."""
    drivers, command = directory / "clients", client.command(RELEASE)
    abilities = ask(command, drivers)
    with (
        one_broker(parse_release(RELEASE), directory, feature_levels) as cluster,
        closing(bench_on(cluster, command, abilities, drivers)) as bench,
    ):
        yield cluster, bench


class Demonstration(ABC):
    """A way to show a bug of a client."""

    @abstractmethod
    def seen(self, client: ClientKind, directory: Path) -> str:
        """The bug as it was seen, in words; empty where it was not. Raises the errors of the environment."""


class BehindTheProxy(Demonstration):
    """A client writes through a frame proxy, in front of one broker."""

    def seen(self, client: ClientKind, directory: Path) -> str:
        """As any demonstration."""
        with (
            bench_for(client, directory) as (cluster, bench),
            proxied(cluster.witness_bootstrap, parse_release(RELEASE), directory / "proxy.log") as (through, links),
        ):
            return self.play(bench, links, through)

    @abstractmethod
    def play(self, bench: ContractBench, links: FrameLinks, through: str) -> str:
        """The bug as it was seen, in words; empty where it was not. Raises ClientError."""


@dataclass(frozen=True, slots=True)
class Answered(BehindTheProxy):
    """The client gets an answer of `tox -e client-answers`, in the role of that list or in another one."""

    answer: str
    role: str = ""

    def play(self, bench: ContractBench, links: FrameLinks, through: str) -> str:
        """Sentences of the client that the log denies, else a treatment that is not the expected one."""
        (answer,) = [each for each in answers() if each.key == self.answer]
        trial = perform_trial(bench, links, replace(answer, role=self.role or answer.role), through=through)
        if trial.absent or trial.problem:
            raise ClientError(f"{self.answer} shows nothing: {trial.absent or trial.problem}.")
        if trial.untrue or trial.as_expected:
            return "; ".join(trial.untrue)
        return f"{trial.said}: {trial.treatment}, and not {' or '.join(answer.expected)}"


class LostAcknowledgement(BehindTheProxy):
    """Answers to an idempotent producer are lost."""

    def play(self, bench: ContractBench, links: FrameLinks, through: str) -> str:
        """The record that is not in the log."""
        return lost_acknowledgement(bench, links, through=through)


class CommitAcrossARestart(Demonstration):
    """The only broker is killed before a commit, and started again at once."""

    def seen(self, client: ClientKind, directory: Path) -> str:
        """The commit that did not return, though another producer is served after it."""
        with bench_for(client, directory) as (cluster, bench):
            topics = bench.topics(1)
            producer = bench.producer(topics)
            records = producer.records([(0, 0), (0, 1)])
            producer.ask(
                "transaction", records=records, intent="commit", hold_at="before-commit", deadline_s=RETURNS_WITHIN_S
            )
            while (event := producer.hear()["event"]) != "held":
                require(event == "begun", f"instead of holding it wrote {event!r}")
            (broker,) = cluster.brokers
            cluster.crash(broker)
            producer.driver.send({"do": "go"})
            cluster.start(broker)
            while (done := producer.hear(2 * RETURNS_WITHIN_S))["event"] != "done":
                pass
            require_none(bench.producer(topics).transaction([(0, 0)])["error"], "transaction")
        error = done["error"]
        return error["reason"] if error is not None and error["name"] == DID_NOT_RETURN else ""


class BeforeFinalization(Demonstration):
    """The finalized `transaction.version` is 0, as between the last restart of an upgrade and its finalization."""

    def seen(self, client: ClientKind, directory: Path) -> str:
        """The error of a transaction, though nothing disturbs it."""
        with bench_for(client, directory, {"transaction.version": 0}) as (_, bench):
            producer = bench.producer(bench.topics(1))
            done = [producer.transaction([(0, 0)]) for _ in range(2)]
        failed = [each["error"]["name"] for each in done if each["error"] is not None]
        return f"{len(failed)} of 2 transactions ended with an error, first {failed[0]}" if failed else ""


@dataclass(frozen=True, slots=True)
class InScenario(Demonstration):
    """The client takes part in a scenario, by the word that selects it with `-k`."""

    keyword: str

    def seen(self, client: ClientKind, directory: Path) -> str:
        """The findings."""
        options = [
            "suites",
            "--only=scenarios",
            "-k",
            self.keyword,
            f"--kafka={RELEASE}",
            "--runtime=local",
            "--seed=1",
        ]
        _, results = matrix_run.perform(
            directory.name,
            [*options, f"--client={client.name}"],
            within_s=SCENARIO_WITHIN_S,
            directory=directory / "run",
        )
        (scenario,) = results["scenarios"]
        if scenario["verdict"] not in (Verdict.PASS.name, Verdict.FAIL.name):
            raise ClientError(f"{self.keyword} shows nothing: {scenario['reason']}.")
        return ", ".join(f"{each['count']} {each['anomaly']}" for each in scenario["findings"])
