"""All faults, in one list, read top to bottom. Adding one is a file here, a line below, and a unit test."""

from __future__ import annotations

from chaos.faults.brokers import CrashBroker, PauseBroker, StopBroker
from chaos.faults.clients import KillClient
from chaos.faults.compound import ElectUncleanly, IsolateThenCrashLeader
from chaos.faults.fault import Fault, Injection
from chaos.faults.frames import TamperFrames
from chaos.faults.late_duplicate import LateDuplicate
from chaos.faults.network import CutFollowers, CutLeaderFromFollowers, IsolateBrokers
from chaos.faults.sites import CutSite, DegradeSite, LoseResponses
from chaos.faults.zombies import PartitionedZombie, PausedZombie

FAULTS: tuple[type[Fault], ...] = (
    CrashBroker,
    StopBroker,
    PauseBroker,
    CutFollowers,
    CutLeaderFromFollowers,
    IsolateBrokers,
    CutSite,
    DegradeSite,
    LoseResponses,
    PausedZombie,
    PartitionedZombie,
    KillClient,
    IsolateThenCrashLeader,
    ElectUncleanly,
    TamperFrames,
    LateDuplicate,
)

__all__ = [
    "FAULTS",
    "CrashBroker",
    "CutFollowers",
    "CutLeaderFromFollowers",
    "CutSite",
    "DegradeSite",
    "ElectUncleanly",
    "Fault",
    "Injection",
    "IsolateBrokers",
    "IsolateThenCrashLeader",
    "KillClient",
    "LateDuplicate",
    "LoseResponses",
    "PartitionedZombie",
    "PauseBroker",
    "PausedZombie",
    "StopBroker",
    "TamperFrames",
]
