"""Performs the protocol cases of a release, cluster by cluster, and judges each from the script that it wrote.

Cases with equal needs follow each other on one cluster. A case is NOT APPLICABLE if its requirements do not apply to the
release, or if the brokers do not offer its transaction version. It is then not begun, and its script says why.

A case is INCONCLUSIVE if the release has its subject and this harness cannot set it up, such as a listener behind TLS in
containers: a requirement that was not tried is not kept.

A case breaks if an answer does not come, if a broker is gone, or if the case has a mistake. That is an ERROR of this case
only, and the others are performed. Before the next case the cluster is checked, and replaced if it is not healthy.
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

from fixtures.clients.java.kept_jvm import KeptJvm
from fixtures.clients.java.launch import ClientJvm, client_jvm
from fixtures.clusters.given.cluster import GivenCluster
from fixtures.clusters.given.runtime import GIVEN
from fixtures.clusters.locks.releases import clients_jar, definition_jars
from fixtures.clusters.pool import ClusterPool
from fixtures.clusters.runtime import RunningCluster
from runner.environment import Environment
from runner.errors import ENVIRONMENT_ERRORS
from runner.lanes import Performer
from runner.protocol import shared_outages
from runner.protocol.given_cases import harmless, hindrance, is_of_others, reason_to_leave_out, remove_traces
from runner.protocol.open_clients import OpenClients
from runner.protocol.shared_outages import OutageError, Participant
from runner.protocol.toolkit.case import Needs
from runner.protocol.toolkit.context import QUORUM_SINCE, CaseContext
from runner.protocol.toolkit.local_processes import left_out
from runner.protocol.toolkit.outage import at_once
from runner.protocol.toolkit.script_recorder import NotApplicableError, UnmetError
from verification.evidence.run_directory import SCRIPT
from verification.requirements.catalogue import applies_to, load
from verification.scripts import script as scripts
from verification.scripts.script import Relation, Script, ScriptVerdict, Statement
from verification.sources.access import Access
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
class ProtocolCase:
    """One case in one transaction version; `transaction_version` is None where nothing in the case depends on it."""

    key: str
    claim: str
    requirements: tuple[str, ...]
    transaction_version: TransactionVersion | None
    needs: Needs
    play: Callable[[CaseContext], None]
    replay: str
    shares: tuple[str, ...] = ()
    time_critical: bool = False
    one_broker: bool = False
    inside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """How a case ended: the verdict, or `broke`, the reason why there is no script.

    `before` is the failed outage after which it was performed again, alone; empty where it was performed once.
    """

    seconds: float
    verdict: ScriptVerdict | None = None
    broke: str = ""
    before: str = ""


class CaseRunner(Performer[ProtocolCase, CaseResult]):
    """Performs cases of one release; `close` ends its cluster. `say` gets sentences for the user."""

    def __init__(
        self,
        environment: Environment,
        directory: Path,
        *,
        release: str,
        prefix: str = "",
        say: Callable[[str], None] = LOG.warning,
    ) -> None:
        environment = replace(environment, own_settings=environment.own_settings.for_cases)
        self.environment = environment
        self.directory = directory
        self.release = release
        load_definitions = harmless if is_of_others(environment) else Definitions.load
        self._definitions = load_definitions(*definition_jars(environment.files))
        self._defined = Definitions.load(clients_jar(environment.files))
        self._prefix = prefix
        self._say = say
        self._runtime = environment.runtime
        self._own_settings = environment.own_settings
        self._pool = ClusterPool(environment.launch)
        self._catalogue = load()
        self._clients = OpenClients()
        self._java = KeptJvm(partial(_jvm, environment), directory / "clients")

    def perform(self, case: ProtocolCase) -> ScriptVerdict:
        """Perform one case, write its script, and judge it. Raises the errors of a cluster that does not start.

        It decides those of its requirements that apply to the release. The caller chooses the releases of a case that
        names none.
        """
        ready = self._ready(case)
        if isinstance(ready, ProtocolCase):
            ready = self._played(ready, self._pool.lease(ready.needs.spec(self.release)))
        return self._judged(ready)

    def perform_together(self, cases: Sequence[ProtocolCase]) -> list[CaseResult]:
        """Perform cases that share the outages of their brokers, or a single one; returns how each ended."""
        ready = [self._ready(case) for case in cases]
        sharing = [each for each in ready if isinstance(each, ProtocolCase)]
        if len(sharing) < 2:
            return [self._alone(case) for case in cases]
        try:
            ended = self._sharing(sharing)
        except ENVIRONMENT_ERRORS as error:
            ended = {each.key: CaseResult(seconds=0.0, broke=str(error)) for each in sharing}
        return [ended.get(case.key) or self._alone(case) for case in cases]

    def _sharing(self, cases: Sequence[ProtocolCase]) -> dict[str, CaseResult]:
        """How each of several cases ended, by key. Raises the errors of a cluster that does not start."""
        cluster = self._pool.lease(cases[0].needs.spec(self.release))
        participants = {
            case.key: Participant(case.shares, partial(self._played, case, cluster), time_critical=case.time_critical)
            for case in cases
        }
        shared_outages.perform([*participants.values()])
        return {case.key: self._ended(case, participants[case.key]) for case in cases}

    def _alone(self, case: ProtocolCase) -> CaseResult:
        began = time.monotonic()
        try:
            verdict = self.perform(case)
        except ENVIRONMENT_ERRORS as error:
            return CaseResult(seconds=time.monotonic() - began, broke=str(error))
        return CaseResult(seconds=time.monotonic() - began, verdict=verdict)

    def _ended(self, case: ProtocolCase, participant: Participant[Script]) -> CaseResult:
        """How a participant ended; it is performed again, alone, if an outage failed before it had proven a violation."""
        again = participant.outage_failed and not self._clients.abandoned
        try:
            script = participant.ended.result()
        except (OutageError, *ENVIRONMENT_ERRORS) as error:
            broke = str(error)
        else:
            so_far = scripts.judge(script)
            # A violated claim outweighs every later failure, and it may be a race that a second run does not show.
            if not again or so_far.violated:
                return CaseResult(seconds=script.seconds, verdict=self._judged(script))
            broke = so_far.reason
        return replace(self._alone(case), before=broke) if again else CaseResult(seconds=0.0, broke=broke)

    def _ready(self, case: ProtocolCase) -> ProtocolCase | Script:
        """The case with the requirements that it can decide; its script if it is not begun."""
        level = self._level(case)
        applicable = tuple(each for each in case.requirements if applies_to(self._catalogue[each], self.release, level))
        if case.requirements and not applicable:
            return replace(self._empty(case), inapplicable=f"nothing of it applies to {self.release}")
        if level is not None and not within(self.release, LEVELS_SINCE, None):
            reason = f"{self.release} has neither TV2 nor levels of transaction.version"
            return replace(self._empty(case), inapplicable=reason)
        case = replace(case, requirements=applicable)
        if case.needs.secured and self._runtime not in ("local", GIVEN):
            return replace(self._empty(case), inapplicable=left_out("clusters there have no secured listener"))
        if case.needs.secured and (unmet := self._unsecured()):
            return replace(self._empty(case), statements=unmet)
        return case

    def _played(
        self, case: ProtocolCase, cluster: RunningCluster, participant: Participant[Script] | None = None
    ) -> Script:
        """Perform a case on its cluster, as a participant of shared outages or alone; returns its script."""
        given = cluster if isinstance(cluster, GivenCluster) else None
        access = Access() if given is None else given.connection.access()
        with self._clients.opened(cluster.witness_bootstrap, self._definitions, access) as client:
            missing = (
                "" if given is None else hindrance(case.needs, given, one_broker=case.one_broker, inside=case.inside)
            )
            missing = missing or _missing(client, case.transaction_version)
            if missing:
                return replace(self._empty(case), inapplicable=missing)
            context = CaseContext(
                client,
                transaction_version=case.transaction_version or newest(client),
                release=self.release,
                defined=self._defined,
                cluster=cluster,
                java=self._java,
                on_outage=at_once if participant is None else participant.await_event,
                prefix=self._prefix,
                topic_settings=self._own_settings.topics,
            )
            LOG.info("%s begins on the cluster in %s", case.key, cluster.directory)
            began = time.monotonic()
            broke = inapplicable = ""
            try:
                broke = _play(case, context)
            except NotApplicableError as reason:
                inapplicable = str(reason)
            finally:
                # A broker that the run has started ends with it, and has nothing to be kept clean for.
                if given is not None and is_of_others(self.environment):
                    remove_traces(context, client, self._say)
            LOG.info("%s ended%s", case.key, f": {broke}" if broke else "")
            seconds = time.monotonic() - began - (0.0 if participant is None else participant.waited_s)
            return replace(self._performed(case, context, broke, seconds), inapplicable=inapplicable)

    def _level(self, case: ProtocolCase) -> int | None:
        """The transaction.version for which a case's requirements must apply: that of the requests it sends."""
        return 2 if case.transaction_version is TransactionVersion.TV2 else case.needs.level

    def _unsecured(self) -> tuple[Statement, ...]:
        """The preconditions of a secured listener that do not hold here."""
        preconditions = (
            _precondition(
                "there is a metadata quorum, without which no listener is secured",
                True,
                within(self.release, QUORUM_SINCE, None),
            ),
        )
        return tuple(each for each in preconditions if not each.holds)

    def _empty(self, case: ProtocolCase) -> Script:
        return Script(
            case=case.key,
            claim=case.claim,
            requirements=case.requirements,
            generation=case.transaction_version or "",
            release=self.release,
            cluster=case.needs.describe(),
            configuration=self._own_settings.configuration,
            replay=case.replay,
        )

    def _performed(self, case: ProtocolCase, context: CaseContext, broke: str, seconds: float) -> Script:
        features: dict[str, int] = {}
        with contextlib.suppress(WireError):
            features = dict(context.client.connection().features)
        return replace(
            self._empty(case),
            generation=context.transaction_version,
            features=features,
            exchanges=tuple(context.recording.exchanges),
            statements=tuple(context.recording.statements),
            topics=tuple(context.recording.topics.values()),
            outages=tuple(context.recording.outages),
            broke=broke,
            seconds=seconds,
        )

    def _judged(self, script: Script) -> ScriptVerdict:
        place = self.directory / "runs" / script.case
        place.mkdir(parents=True)
        script.write(place / SCRIPT)
        # The judge reads the script from the disk, never from memory.
        return scripts.judge(scripts.read(place / SCRIPT))

    def discard(self, case: ProtocolCase) -> None:
        """Remove the files of an interrupted case, which decides nothing."""
        shutil.rmtree(self.directory / "runs" / case.key, ignore_errors=True)

    def interrupt(self) -> None:
        """A case that another thread performs gets no further answer, and ends."""
        self._clients.abandon()
        self._java.close()

    def close(self) -> None:
        """Interrupt a running case and end the cluster."""
        self.interrupt()
        self._pool.close()


def _play(case: ProtocolCase, context: CaseContext) -> str:
    """Perform a case to its end; returns why it broke, empty if it did not."""
    try:
        case.play(context)
    except UnmetError:
        return ""  # the statement that does not hold says so
    except NotApplicableError:
        raise
    except Exception as error:
        if isinstance(context.cluster, GivenCluster) and (lacking := reason_to_leave_out(error, context.cluster)):
            raise NotApplicableError(lacking) from error
        LOG.exception("%s broke", case.key)
        return f"{type(error).__name__}: {error}"
    finally:
        context.close()
    return ""


def _jvm(environment: Environment) -> ClientJvm:
    """The JVM of the release's own clients. Raises NotApplicableError where there is no Java."""
    if environment.java is None:
        raise NotApplicableError("it needs kafka-clients, and so Java 17 to 25, which this machine does not have")
    return client_jvm(environment.files, environment.java)


def _precondition(what: str, expected: object, observed: object) -> Statement:
    return Statement(after=0, what=what, relation=Relation.EQUALS, expected=expected, observed=observed, required=True)


def newest(client: Client) -> TransactionVersion:
    """The newest transaction version that the brokers offer."""
    return TransactionVersion.TV1 if _missing(client, TransactionVersion.TV2) else TransactionVersion.TV2


def _missing(client: Client, wanted: TransactionVersion | None) -> str:
    if wanted is None:
        return ""
    connection = client.connection()
    for api, least in AT_LEAST[wanted].items():
        highest = connection.versions.get(client.definitions.api_key(api), (0, -1))[1]
        if highest < least:
            return f"the brokers offer {api} up to v{highest}; {wanted} begins at v{least}"
    return ""
