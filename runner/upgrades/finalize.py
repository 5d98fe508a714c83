"""The stages after the rolls: each new feature level, the old release that must refuse from then on, lowered levels.

    finalize metadata.version → finalize transaction.version → finalize other features → refuse 3.9.2 → … → lower

Levels are raised one at a time, while every producer has an open transaction. Around transaction.version more happens. A
zombie from before its last level comes back after it. Its coordinator crashes right after it. A live producer learns of
the level only from a new connection, which the restart of that broker brings. The nightly profile has a zombie at every
level, and cuts all clients off after that crash.

A level that the old release does not know locks the way back: a node of that release ends by itself at its start. Last,
levels are lowered and raised again, and those that may not be lowered are asked for. transaction.version is lowered in a
scenario of its own, because live producers do not survive that (KB-40).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from chaos.clients import SyncPoint
from chaos.faults.brokers import CrashBroker, StopBroker
from chaos.faults.fault import Fault
from chaos.faults.sites import CutSite
from chaos.operations.across import SpokenSecondProtocol, ZombieAcross
from chaos.operations.feature_levels import LevelChange, SetFeatureLevel
from chaos.operations.refusals import RefusedFeatureLevel, RefusedRoll
from chaos.schedule import Step
from chaos.targets import TransactionCoordinatorOf
from fixtures.workloads.slots import APP
from runner.upgrades.path import METADATA, TRANSACTIONS, UpgradePath, features_of, line_of, table

#: A level is final in less than a second; clients then meet it.
LEVEL_DWELL_S = 1.0
#: The last level of a stage: clients then end some 30 transactions in the stage, on a busy machine ten.
STAGE_DWELL_S = 3.0
#: A refusal changes nothing that clients could meet.
REFUSAL_DWELL_S = 0.2
#: Clients that are cut off for so long connect again; their transactions outlive it.
CUT_S = 2.0
#: A node stops in 2 s, ends by itself in 5 s and starts in 8 s on two quiet cores. On busy ones that takes a minute.
REFUSE_WITHIN_S = 120.0
#: The first protocol ends with the first new connection; a machine that is busy needs some seconds for transactions.
SPEAK_WITHIN_S = 30.0
#: In this time every producer ends some transactions under a lowered level, and one that has died is replaced.
LOWERED_DWELL_S = 5.0
#: The transactional ids of the workload under which transaction.version is lowered: a feeder and two copiers.
PRODUCERS = 3
KRAFT = "kraft.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalization:
    """The stages of one path; `thorough` performs everything that the seed would draw from."""

    path: UpgradePath
    seed: int
    thorough: bool = False

    @property
    def raised(self) -> Iterator[Step]:
        """Every level, and the old release that must refuse from then on."""
        levels = [(feature, level) for feature, levels in self.path.raised.items() for level in levels]
        for (feature, level), (following, _) in pairwise([*levels, ("", 0)]):
            last = not following or stage_of(following) != stage_of(feature)
            yield self._raise(feature, level, last=last)
            if last and feature == TRANSACTIONS:
                yield from self._after_transactions()
        if locked(self.path):
            yield _refuse(self.path, "old_release")

    def _raise(self, feature: str, level: int, *, last: bool) -> Step:
        fault: Fault = SetFeatureLevel(feature, level)
        if self.thorough or (feature == TRANSACTIONS and last):
            fault = ZombieAcross(fault, site=APP, successor_site=APP)
        return Step(
            fault=fault,
            stage=stage_of(feature),
            hold_s=STAGE_DWELL_S if last else LEVEL_DWELL_S,
            while_held=SyncPoint.BEFORE_COMMIT,
            once_whole=True,
        )

    def _after_transactions(self) -> Iterator[Step]:
        stage = stage_of(TRANSACTIONS)
        yield Step(fault=CrashBroker(TransactionCoordinatorOf(0)), stage=stage, hold_s=LEVEL_DWELL_S)
        if self.thorough:
            yield Step(fault=CutSite(APP), stage=stage, hold_s=CUT_S, once_whole=True)

    @property
    def lowered(self) -> Iterator[Step]:
        """Every level that may be lowered, or the one that the seed draws, and every refusal."""
        stage, lowest = "lower", lowest_levels(self.path)
        lowest.pop(TRANSACTIONS, None)
        names = sorted(lowest)
        chosen = names if self.thorough else Random(f"{self.seed}:lowered").sample(names, min(1, len(names)))
        for feature in chosen:
            yield from lowered_and_raised(self.path, feature, lowest[feature], stage=stage)
        for fault in refused_levels(self.path):
            yield Step(fault=fault, stage=stage, hold_s=REFUSAL_DWELL_S)


def _refuse(path: UpgradePath, why: str) -> Step:
    """The old release must refuse, in the words that `refusals.toml` has for this reason."""
    words = table("refusals.toml")
    skips = line_of(path.source) == words["kept_out"]["line"]
    kept_out = tuple(words["kept_out"]["words"]) if skips else ()
    return Step(
        fault=RefusedRoll(path.source.version, texts=tuple(words[why]["words"]), kept_out=kept_out),
        stage=f"refuse {path.source}",
        hold_s=LEVEL_DWELL_S,
        confirm_within_s=REFUSE_WITHIN_S,
        once_whole=True,
    )


def stage_of(feature: str) -> str:
    """The stage in which a feature is finalized."""
    return f"finalize {feature}" if feature in (METADATA, TRANSACTIONS) else "finalize other features"


def locked(path: UpgradePath) -> bool:
    """Whether the path makes a level final that its old release does not know."""
    known = {name: each.highest for name, each in features_of(path.source).items()}
    return any(levels[-1] > known.get(name, 0) for name, levels in path.raised.items())


def lowest_levels(path: UpgradePath) -> dict[str, int]:
    """By feature the lowest level to which the target lowers its highest one."""
    return dict(table("refusals.toml")["lowest"].get(line_of(path.target), {}))


def lowered_and_raised(path: UpgradePath, feature: str, lowest: int, *, stage: str) -> Iterator[Step]:
    """Lower a feature from its highest level by a safe downgrade, and raise it again.

    metadata.version is lowered by one level only, because a lower one changes other features' limits too.
    """
    highest = features_of(path.target)[feature].highest
    down = highest - 1 if feature == METADATA else lowest
    for fault in (SetFeatureLevel(feature, down, LevelChange.SAFE_DOWNGRADE), SetFeatureLevel(feature, highest)):
        yield Step(fault=fault, stage=stage, hold_s=LEVEL_DWELL_S, while_held=SyncPoint.BEFORE_COMMIT, once_whole=True)


def lowered_transactions(path: UpgradePath) -> Iterator[Step]:
    """Lower transaction.version by a safe downgrade and raise it again, one level at a time, once producers speak TV2.

    Level 0 blocks every transactional id of such a producer until its coordinator restarts (KB-18, KB-40). So coordinators
    are restarted at the end, as an operator must do; without that no evidence could be judged.
    """
    highest, stage = features_of(path.target)[TRANSACTIONS].highest, f"lower {TRANSACTIONS}"
    yield Step(fault=SpokenSecondProtocol(), stage=stage, hold_s=LEVEL_DWELL_S, confirm_within_s=SPEAK_WITHIN_S)
    down = [SetFeatureLevel(TRANSACTIONS, level, LevelChange.SAFE_DOWNGRADE) for level in range(highest - 1, -1, -1)]
    up = [SetFeatureLevel(TRANSACTIONS, level) for level in range(1, highest + 1)]
    for fault in (*down, *up):
        yield Step(fault=fault, stage=stage, hold_s=LOWERED_DWELL_S)
    for producer in range(PRODUCERS):
        yield Step(
            fault=StopBroker(TransactionCoordinatorOf(producer)),
            stage=stage,
            hold_s=LEVEL_DWELL_S,
            once_whole=True,
        )


def remembered_transactions(path: UpgradePath) -> Iterator[Step]:
    """Raise transaction.version and lower it to 0 again; the old release, which does not know it, must still refuse.

    The record of the level stays in the metadata log, and a node applies it at its start, before the one that takes it
    back. So the final levels alone do not say whether there is a way back.
    """
    highest = features_of(path.target)[TRANSACTIONS].highest
    changes = (
        SetFeatureLevel(TRANSACTIONS, highest),
        SetFeatureLevel(TRANSACTIONS, 0, LevelChange.SAFE_DOWNGRADE),
    )
    for fault in changes:
        yield Step(fault=fault, stage=f"lower {TRANSACTIONS}", hold_s=LEVEL_DWELL_S, once_whole=True)
    yield _refuse(path, "replayed")


def refused_levels(path: UpgradePath) -> Iterator[RefusedFeatureLevel]:
    """Requests that the target must refuse."""
    data, offered = table("refusals.toml"), features_of(path.target)
    if METADATA not in offered:
        return
    texts, highest = data["texts"], offered[METADATA].highest
    yield RefusedFeatureLevel(METADATA, highest + 1, LevelChange.UPGRADE, texts["above"])
    yield RefusedFeatureLevel("no.such.feature", 1, LevelChange.UPGRADE, texts["unknown"])
    yield RefusedFeatureLevel(METADATA, highest - 1, LevelChange.UPGRADE, texts["untyped"])
    refused = data["refused"].get(line_of(path.target))
    if refused is not None:
        yield RefusedFeatureLevel(METADATA, refused, LevelChange.SAFE_DOWNGRADE, texts["safe"])
        yield RefusedFeatureLevel(METADATA, refused, LevelChange.UNSAFE_DOWNGRADE, texts["unsafe"])
    if KRAFT in path.raised:
        yield RefusedFeatureLevel(KRAFT, 0, LevelChange.SAFE_DOWNGRADE, texts["never"])
