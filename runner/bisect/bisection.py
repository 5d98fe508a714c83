"""Performs a bisection: the rate of failure at the bad end, the good end, then the builds in between.

One failing run decides that a build is bad, because a violation is proven by its evidence. A build is good when it passes
so often in a row that a build as bad as the bad end would fail before, with the stated confidence.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from runner import matrix_run
from runner.bisect.candidates import Candidate
from runner.bisect.experiment import Repeated
from runner.bisect.ledger import BuildRun, Ledger
from runner.bisect.likelihood import passes_needed
from runner.bisect.search import BuildVerdict, first_bad
from verification.vocabulary.verdict import ExitCode, Verdict

#: Runs at the bad end, so that its rate is known: this many at least, and as many until it fails once at most.
MEASURED, TRIED_MAX = 3, 20
#: After so many undecided runs in a row a build is skipped.
UNDECIDED_MAX = 2
#: A run of one case or scenario takes a minute on two quiet cores; 20 times that is a run that hangs.
RUN_WITHIN_S = 1_200.0
_NOTE_MAX = 300
_OF = {Verdict.FAIL: BuildVerdict.BAD, Verdict.PASS: BuildVerdict.GOOD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """One call of the command. `perform` makes one run on a build."""

    builds: tuple[Candidate, ...]
    ledger: Ledger
    confidence: float
    perform: Callable[[Candidate], BuildRun]
    say: Callable[[str], None]

    def run(self) -> ExitCode:
        """Find the first bad build and end the ledger. Raises MatrixRunError, KeyboardInterrupt and OSError."""
        good, bad = self.builds[0], self.builds[-1]
        if reason := self._measure(bad):
            return self._end(reason, ExitCode.INCONCLUSIVE)
        failed, tried = self.ledger.rate or (0, 0)
        needed = passes_needed(self.confidence, failed=failed, tried=tried)
        self.say(
            f"{bad.name} failed in {failed} of {tried} runs: a build is good after {needed} passes in a row "
            f"(confidence {self.confidence:g})"
        )
        if (verdict := self._verdict(good, needed)) is not BuildVerdict.GOOD:
            return self._end(f"the good end, {good.name}, is {verdict}", ExitCode.INCONCLUSIVE)
        found = first_bad(len(self.builds), lambda place: self._verdict(self.builds[place], needed))
        names = [self.builds[place].name for place in found.places]
        if found.found:
            return self._end(f"the first bad build is {names[0]}", ExitCode.CONFORMANT)
        return self._end(f"the first bad build is one of {', '.join(names)}", ExitCode.INCONCLUSIVE)

    def _end(self, result: str, code: ExitCode) -> ExitCode:
        self.ledger.end(result)
        for line in self.ledger.table():
            self.say(line)
        self.say(f"{result[0].upper()}{result[1:]}. Ledger: {self.ledger.directory}")
        return code

    def _runs(self, build: Candidate, *, at_most: int, enough: Callable[[list[BuildRun]], bool]) -> list[BuildRun]:
        """The runs on a build: those of the ledger, and further ones until they are enough."""
        while not enough(runs := self.ledger.runs(build.name)) and len(runs) < at_most:
            run = self.perform(build)
            self.ledger.add(run)
            self.say(f"{build.name}: run {len(runs) + 1} {run.verdict}, {run.seconds:.0f} s  {run.note}".rstrip())
        return runs

    def _measure(self, bad: Candidate) -> str:
        """Find the rate of failure at the bad end; the reason why there is none, empty when there is one."""
        runs = self._runs(
            bad,
            at_most=TRIED_MAX,
            enough=lambda runs: _stuck(runs) or (len(runs) >= MEASURED and _failed(runs) > 0),
        )
        if not _failed(runs):
            verdict = BuildVerdict.SKIPPED if _stuck(runs) else BuildVerdict.GOOD
            self.ledger.decide(bad.name, verdict)
            return f"the bad end, {bad.name}, did not fail in {len(runs)} runs"
        self.ledger.rate = _failed(runs), sum(each.verdict != BuildVerdict.SKIPPED for each in runs)
        self.ledger.decide(bad.name, BuildVerdict.BAD)
        return ""

    def _verdict(self, build: Candidate, needed: int) -> BuildVerdict:
        """The verdict on a build, by as many runs as that takes."""
        runs = self._runs(
            build,
            at_most=UNDECIDED_MAX * needed,
            enough=lambda runs: _stuck(runs) or _failed(runs) > 0 or _passed(runs) >= needed,
        )
        verdict = BuildVerdict.SKIPPED
        if _failed(runs):
            verdict = BuildVerdict.BAD
        elif _passed(runs) >= needed:
            verdict = BuildVerdict.GOOD
        self.ledger.decide(build.name, verdict)
        return verdict


def perform_with(ledger: Ledger, repeated: Repeated) -> Callable[[Candidate], BuildRun]:
    """The function that makes one run on a build. It raises the errors of `matrix_run.perform`."""

    def perform(build: Candidate) -> BuildRun:
        directory = ledger.directory / "runs" / f"{build.name}-{datetime.now(tz=UTC):%Y%m%dT%H%M%S%fZ}"
        began = time.monotonic()
        arguments = [*repeated.arguments, build.option]
        _, results = matrix_run.perform(build.name, arguments, within_s=RUN_WITHIN_S, directory=directory)
        row = repeated.row(results)
        verdict, note = Verdict.ERROR, str(results["why"])
        if row is not None:
            verdict, note = Verdict[row["verdict"]], _note(row)
        return BuildRun(
            build=build.name,
            verdict=str(_OF.get(verdict, BuildVerdict.SKIPPED)),
            seconds=round(time.monotonic() - began, 1),
            directory=str(directory.relative_to(ledger.directory)),
            note=note[:_NOTE_MAX],
            commit=ledger.commit,
        )

    return perform


def _note(row: dict[str, Any]) -> str:
    """The anomalies and known bugs of a run that failed, else the reason why it was not decided."""
    if row["verdict"] == Verdict.PASS.name:
        return ""
    found = [each.get("known_bug") or each["anomaly"] for each in row.get("findings", [])]
    found += [each["id"] for each in row.get("known", []) if each["named"]]
    return ", ".join(sorted(set(found))) or " ".join(str(row["reason"]).split())


def _failed(runs: list[BuildRun]) -> int:
    return sum(each.verdict == BuildVerdict.BAD for each in runs)


def _passed(runs: list[BuildRun]) -> int:
    return sum(each.verdict == BuildVerdict.GOOD for each in runs)


def _stuck(runs: list[BuildRun]) -> bool:
    """Whether the last runs were all undecided."""
    last = runs[-UNDECIDED_MAX:]
    return len(last) == UNDECIDED_MAX and all(each.verdict == BuildVerdict.SKIPPED for each in last)
