"""Records a script while it is performed."""

from __future__ import annotations

import time
from typing import Any

from runner.protocol.toolkit.responses import Response
from verification.scripts.script import Exchange, OutageChange, Relation, Statement, TopicUsed, plain
from wire.errors import WireError
from wire.schema import Body


class UnmetError(Exception):
    """A precondition of a script does not hold, so that the script tests nothing and ends."""


class NotApplicableError(Exception):
    """The release does not have the subject of the case. That is no verdict on the release, and not a PASS."""


class ScriptRecorder:
    """The exchanges and statements so far, and the conditions: the topics of the case, and its outages of brokers."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.statements: list[Statement] = []
        self.topics: dict[str, TopicUsed] = {}
        self.outages: list[OutageChange] = []

    @property
    def seconds(self) -> float:
        """The time since the first request; 0 before it."""
        return (time.monotonic_ns() - self.exchanges[0].sent_ns) / 1e9 if self.exchanges else 0.0

    def begin(self, api: str, version: int, to: str, request: Any) -> Exchange:
        """Record a request that is about to be sent; its number is its place in the script."""
        begun = Exchange(
            number=len(self.exchanges) + 1,
            api=api,
            version=version,
            to=to,
            request=plain(request),
            response=None,
            sent_ns=time.monotonic_ns(),
            error="no answer was waited for",
        )
        self.exchanges.append(begun)
        return begun

    def answered(self, begun: Exchange, outcome: Body | WireError) -> Response:
        """Record the answer, or the error because of which none will come."""
        failed = isinstance(outcome, WireError)
        self.exchanges[begun.number - 1] = Exchange(
            number=begun.number,
            api=begun.api,
            version=begun.version,
            to=begun.to,
            request=begun.request,
            response=None if failed else plain(outcome),
            sent_ns=begun.sent_ns,
            answered_ns=time.monotonic_ns(),
            error=str(outcome) if failed else "",
        )
        return Response(
            exchange=begun.number,
            api=begun.api,
            version=begun.version,
            body=None if isinstance(outcome, WireError) else outcome,
            error=str(outcome) if failed else "",
        )

    def outage(self, what: str) -> None:
        """Record that an outage of brokers has just begun or ended."""
        self.outages.append(OutageChange(after=len(self.exchanges), what=what, at_ns=time.monotonic_ns()))

    def state(self, what: str, observed: Any, relation: Relation, expected: Any, *, required: bool) -> Statement:
        """Record how an observed value relates to the expected one. Raises UnmetError if a precondition does not hold."""
        statement = self._statement(what, observed, relation, expected, required=required)
        self.statements.append(statement)
        if required and not statement.holds:
            raise UnmetError(str(statement))
        return statement

    def holds(self, observed: Any, relation: Relation, expected: Any) -> bool:
        """Whether a statement with these values would hold."""
        return self._statement("", observed, relation, expected, required=False).holds

    def _statement(self, what: str, observed: Any, relation: Relation, expected: Any, *, required: bool) -> Statement:
        return Statement(
            after=len(self.exchanges),
            what=what,
            relation=relation,
            expected=plain(expected),
            observed=plain(observed),
            required=required,
        )
