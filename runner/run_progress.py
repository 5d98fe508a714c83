"""How far a run is, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from reports.model.run_record import Ended, Planned
from runner.config import RunConfig
from verification.vocabulary.verdict import Verdict


def estimated_s(planned: Iterable[Planned], config: RunConfig) -> float:
    """The seconds that experiments take: scenarios and cases run side by side, each in their lanes.

    Once the scenarios have ended, more lanes perform cases. Those that run alone follow.
    """
    scenarios_s = cases_s = alone_s = 0.0
    scenarios = 0
    for each in planned:
        if each.alone:
            alone_s += each.expected_s
        elif each.case:
            cases_s += each.expected_s
        else:
            scenarios_s += each.expected_s
            scenarios += 1
    # A scenario fills one lane; a window of `watch` waits in its lane while another one is watched.
    busy = config.lanes if _watches(config) else min(config.lanes, scenarios)
    beside_s = scenarios_s / max(1, busy)
    left_s = max(0.0, cases_s - beside_s * config.case_lanes)
    return beside_s + left_s / config.case_lanes_at_last + alone_s


def _watches(config: RunConfig) -> bool:
    return config.given is not None and config.given.windows > 0


def _until_stopped(config: RunConfig) -> bool:
    return config.given is not None and config.given.until_stopped


def summed_up(planned: Collection[Planned], config: RunConfig) -> str:
    """How many experiments there are, and how long they will take."""
    if _until_stopped(config):
        return f"windows until Ctrl-C, at most {len(planned)}"
    scenarios = [each for each in planned if not each.case]
    controls, cases = sum(each.control for each in scenarios), len(planned) - len(scenarios)
    parts, lanes = [], 0
    if scenarios:
        parts.append(f"{len(scenarios)} scenarios, {controls} of them controls")
        lanes += config.lanes
    if cases:
        parts.append(f"{cases} protocol cases")
        lanes += config.case_lanes
    minutes = max(estimated_s(planned, config) / 60, 1)
    return f"{', and '.join(parts) or 'nothing'}: about {minutes:.0f} min, in {lanes} lane{'' if lanes == 1 else 's'}"


#: Before so much of the expected time is done, the start of the first cluster is most of it.
PACED_AFTER_S = 60.0


class RunProgress:
    """The live line of a whole run: experiments with a verdict, failures, time so far and time left."""

    def __init__(
        self,
        planned: Mapping[str, Planned],
        ended: Mapping[str, Ended],
        config: RunConfig,
        verdicts: Sequence[Verdict] = (),
        anomalies: Mapping[str, int] | None = None,
    ) -> None:
        """`anomalies` are those of failed experiments, each with the number of experiments that have it."""
        self._planned, self._ended, self._config, self._verdicts = planned, ended, config, verdicts
        self._anomalies = {} if anomalies is None else anomalies
        self._whole_s = estimated_s(planned.values(), config)
        self._began = self._moved = time.monotonic()
        self._seen = 0

    def line(self) -> str:
        """For instance `112 of 325 have ended, 2 FAIL (1 lost-write, 2 duplicate) │ 3.5 min, about 8 min left`."""
        now = time.monotonic()
        if self._seen != len(self._ended):
            self._seen, self._moved = len(self._ended), now
        waiting = [each for key, each in self._planned.items() if key not in self._ended]
        left_s = estimated_s(waiting, self._config)
        if self._config.lanes == 1 and waiting and not waiting[0].case:
            # The one that runs now may take minutes, as an upgrade does; its time so far is no longer left.
            left_s -= min(now - self._moved, waiting[0].expected_s)
        done_s = self._whole_s - left_s
        if done_s >= PACED_AFTER_S:
            # What has ended took so much longer than expected, and so will the rest on this machine.
            left_s *= max(1.0, (now - self._began) / done_s)
        endless = _until_stopped(self._config)
        done = f"{len(self._ended)} have ended" if endless else f"{len(self._ended)} of {len(self._planned)} have ended"
        if failed := self._verdicts.count(Verdict.FAIL):
            # A protocol case that fails names no anomaly, so that the numbers would not fit.
            cases = any(each.case for each in self._planned.values())
            kinds = (
                "" if cases else ", ".join(f"{count} {anomaly}" for anomaly, count in sorted(self._anomalies.items()))
            )
            done += f", {failed} FAIL" + (f" ({kinds})" if kinds else "")
        left = "until Ctrl-C" if endless else f"about {left_s / 60:.0f} min left"
        return f"{done} │ {(now - self._began) / 60:.1f} min, {left}"
