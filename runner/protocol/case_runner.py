"""A sweep: every protocol case of a release, cluster by cluster, each one judged from the script that it wrote.

Cases with equal needs follow each other on one cluster. A case whose requirements do not apply to the release, or whose
generation the brokers do not offer, is not applicable and not begun; its script says so. What the release has, and this
harness cannot have here, such as a listener behind TLS in containers, is no such case: it is inconclusive, because a
requirement that was not tried is not kept. A case that breaks (an answer
that does not come, a broker that is gone, a mistake in the case) is an error of its own and does not keep the others
from being performed; the cluster is looked at before the next one and replaced when it is not healthy.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fixtures.clusters.locks.releases import clients_jar, definition_jars
from fixtures.clusters.pool import ClusterPool
from fixtures.clusters.runtime import RunningCluster
from runner.environment import Environment
from runner.errors import ENVIRONMENT_ERRORS
from runner.protocol import shared_outages
from runner.protocol.open_clients import Clients
from runner.protocol.shared_outages import OutageError, Participant
from runner.protocol.toolkit.case import Needs
from runner.protocol.toolkit.context import QUORUM_SINCE, CaseContext
from runner.protocol.toolkit.outage import alone
from runner.protocol.toolkit.script_recorder import NotApplicableError, UnmetError
from verification.evidence.run_directory import SCRIPT
from verification.requirements.catalogue import applies_to, load
from verification.scripts import script as scripts
from verification.scripts.script import Relation, Script, ScriptVerdict, Statement
from verification.vocabulary.releases import within
from wire.client import Client
from wire.errors import WireError
from wire.messages import Definitions
from wire.transaction_versions import AT_LEAST, TransactionVersion

LOG = logging.getLogger(__name__)
#: 3.9 registers the feature transaction.version, 4.0 is the first that can be formatted with a level of it, and the
#: first whose brokers take the requests of TV2.
LEVELS_SINCE = "4.0.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case in one generation. `generation` is None where nothing in it depends on one."""

    key: str
    claim: str
    requirements: tuple[str, ...]
    generation: TransactionVersion | None
    needs: Needs
    play: Callable[[CaseContext], None]
    replay: str
    shares: tuple[str, ...] = ()
    time_critical: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a case ended: the verdict, or what kept it from leaving a script.

    `before` is what had let it down in a company, empty where it was performed once.
    """

    seconds: float
    verdict: ScriptVerdict | None = None
    broke: str = ""
    before: str = ""


class CaseRunner:
    """Performs cases of one release; `close` ends its cluster."""

    def __init__(self, environment: Environment, directory: Path, *, release: str) -> None:
        self.environment = environment
        self.directory = directory
        self.release = release
        self._definitions = Definitions.load(*definition_jars(environment.files))
        self._defined = Definitions.load(clients_jar(environment.files))
        self._runtime = environment.runtime
        self._pool = ClusterPool(environment.launch)
        self._catalogue = load()
        self._clients = Clients()

    def perform(self, case: Case) -> ScriptVerdict:
        """Perform one case, write its script, and judge it. Raises what a cluster that does not start raises.

        Only those of its requirements that apply to the release are decided by it; one that names none is for whoever
        chose it.
        """
        ready = self._ready(case)
        if isinstance(ready, Case):
            ready = self._played(ready, self._pool.lease(ready.needs.spec(self.release)))
        return self._judged(ready)

    def perform_together(self, cases: Sequence[Case]) -> list[Outcome]:
        """Perform cases that share the outages of their brokers, or a single one; how each of them ended."""
        ready = [self._ready(case) for case in cases]
        sharing = [each for each in ready if isinstance(each, Case)]
        if len(sharing) < 2:
            return [self._alone(case) for case in cases]
        try:
            ended = self._company(sharing)
        except ENVIRONMENT_ERRORS as error:
            ended = {each.key: Outcome(seconds=0.0, broke=str(error)) for each in sharing}
        return [ended.get(case.key) or self._alone(case) for case in cases]

    def _company(self, cases: Sequence[Case]) -> dict[str, Outcome]:
        """How each of several cases ended, by key. Raises what a cluster that does not start raises."""
        cluster = self._pool.lease(cases[0].needs.spec(self.release))
        members = {
            case.key: Participant(case.shares, partial(self._played, case, cluster), time_critical=case.time_critical)
            for case in cases
        }
        shared_outages.perform([*members.values()])
        return {case.key: self._ended(case, members[case.key]) for case in cases}

    def _alone(self, case: Case) -> Outcome:
        began = time.monotonic()
        try:
            verdict = self.perform(case)
        except ENVIRONMENT_ERRORS as error:
            return Outcome(seconds=time.monotonic() - began, broke=str(error))
        return Outcome(seconds=time.monotonic() - began, verdict=verdict)

    def _ended(self, case: Case, member: Participant[Script]) -> Outcome:
        """How a case in a company ended; performed again, alone, where it was let down before it had proven anything."""
        again = member.outage_failed and not self._clients.abandoned
        try:
            script = member.ended.result()
        except (OutageError, *ENVIRONMENT_ERRORS) as error:
            broke = str(error)
        else:
            so_far = scripts.judge(script)
            # A violated claim outweighs whatever went wrong after it, and may be a race that is not seen again.
            if not again or so_far.violated:
                return Outcome(seconds=script.seconds, verdict=self._judged(script))
            broke = so_far.reason
        return replace(self._alone(case), before=broke) if again else Outcome(seconds=0.0, broke=broke)

    def _ready(self, case: Case) -> Case | Script:
        """A case as it is to be performed, with the requirements that it can decide; its script where it is not begun."""
        level = self._level(case)
        applicable = tuple(each for each in case.requirements if applies_to(self._catalogue[each], self.release, level))
        if case.requirements and not applicable:
            return replace(self._empty(case), inapplicable=f"nothing of it applies to {self.release}")
        if level is not None and not within(self.release, LEVELS_SINCE, None):
            reason = f"{self.release} has neither TV2 nor levels of transaction.version"
            return replace(self._empty(case), inapplicable=reason)
        case = replace(case, requirements=applicable)
        if case.needs.secured and (grounds := self._unsecured()):
            return replace(self._empty(case), statements=grounds)
        return case

    def _played(self, case: Case, cluster: RunningCluster, member: Participant[Script] | None = None) -> Script:
        """The script of a case on its cluster, in a company or alone."""
        with self._clients.opened(cluster.witness_bootstrap, self._definitions) as client:
            missing = _missing(client, case.generation)
            if missing:
                return replace(self._empty(case), inapplicable=missing)
            stage = CaseContext(
                client,
                generation=case.generation or newest(client),
                release=self.release,
                defined=self._defined,
                cluster=cluster,
                together=alone if member is None else member.meet,
            )
            LOG.info("%s begins on the cluster in %s", case.key, cluster.directory)
            began = time.monotonic()
            broke = inapplicable = ""
            try:
                broke = _play(case, stage)
            except NotApplicableError as reason:
                inapplicable = str(reason)
            LOG.info("%s ended%s", case.key, f": {broke}" if broke else "")
            seconds = time.monotonic() - began - (0.0 if member is None else member.waited_s)
            return replace(self._performed(case, stage, broke, seconds), inapplicable=inapplicable)

    def _level(self, case: Case) -> int | None:
        """The transaction.version that a case's requirements are asked about: that of the requests it sends."""
        return 2 if case.generation is TransactionVersion.TV2 else case.needs.level

    def _unsecured(self) -> tuple[Statement, ...]:
        """The ground that a case with a secured listener does not have here; empty where it has it."""
        grounds = (
            _precondition("the runtime, as clusters in containers have no secured listener", "local", self._runtime),
            _precondition(
                "there is a metadata quorum, without which no listener is secured",
                True,
                within(self.release, QUORUM_SINCE, None),
            ),
        )
        return tuple(each for each in grounds if not each.holds)

    def _empty(self, case: Case) -> Script:
        return Script(
            case=case.key,
            claim=case.claim,
            requirements=case.requirements,
            generation=case.generation or "",
            release=self.release,
            cluster=case.needs.describe(),
            replay=case.replay,
        )

    def _performed(self, case: Case, stage: CaseContext, broke: str, seconds: float) -> Script:
        features: dict[str, int] = {}
        with contextlib.suppress(WireError):
            features = dict(stage.client.connection().features)
        return replace(
            self._empty(case),
            generation=stage.generation,
            features=features,
            exchanges=tuple(stage.recording.exchanges),
            statements=tuple(stage.recording.statements),
            broke=broke,
            seconds=seconds,
        )

    def _judged(self, script: Script) -> ScriptVerdict:
        place = self.directory / "runs" / script.case
        place.mkdir(parents=True)
        script.write(place / SCRIPT)
        # What is judged is what is on disk.
        return scripts.judge(scripts.read(place / SCRIPT))

    def discard(self, case: Case) -> None:
        """Remove what a case has left that was interrupted: it says nothing."""
        shutil.rmtree(self.directory / "runs" / case.key, ignore_errors=True)

    def close(self) -> None:
        """End the cluster. A case that is being performed by another thread asks in vain from then on, and ends."""
        self._clients.abandon()
        self._pool.close()


def _play(case: Case, stage: CaseContext) -> str:
    """Perform it to its end; why it broke, empty when it did not."""
    try:
        case.play(stage)
    except UnmetError:
        return ""  # the statement that does not hold says so
    except NotApplicableError:
        raise
    except Exception as error:
        LOG.exception("%s broke", case.key)
        return f"{type(error).__name__}: {error}"
    finally:
        stage.close()
    return ""


def _precondition(what: str, expected: object, observed: object) -> Statement:
    return Statement(after=0, what=what, relation=Relation.EQUALS, expected=expected, observed=observed, required=True)


def newest(client: Client) -> TransactionVersion:
    """The newest generation that the brokers offer."""
    return TransactionVersion.TV1 if _missing(client, TransactionVersion.TV2) else TransactionVersion.TV2


def _missing(client: Client, generation: TransactionVersion | None) -> str:
    if generation is None:
        return ""
    connection = client.connection()
    for api, least in AT_LEAST[generation].items():
        highest = connection.versions.get(client.definitions.api_key(api), (0, -1))[1]
        if highest < least:
            return f"the brokers offer {api} up to v{highest}; {generation} begins at v{least}"
    return ""
