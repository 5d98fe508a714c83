"""Changes settings of brokers, waits until they are in force, and restores them.

If a case cannot restore its change, the cluster is closed and the next case gets a new one. Otherwise the next case would
run on other settings than its script names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from runner.protocol.toolkit import brokers
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.local_processes import need_local_processes
from wire.router import check

VERIFICATION = "transaction.partition.verification.enable"
#: A dynamic setting reaches a broker with the metadata, within milliseconds on a quiet machine.
SET_WITHIN_S = 10.0
_BROKERS, _BROKER_LOGGERS = 4, 8
_SET, _DELETE = 0, 1


@contextmanager
def unverified(case: CaseContext) -> Iterator[None]:
    """Switch off the verification of partitions by leaders; before 3.6 there is none, and nothing is changed."""
    if not case.since("3.6.0"):
        yield
        return
    with changed(case, VERIFICATION, "false", back="true"):
        yield


@contextmanager
def changed(case: CaseContext, name: str, value: str, *, back: str) -> Iterator[None]:
    """Change a dynamic setting of all brokers; `back` is the value that holds without the change."""
    try:
        _configure(case, name, _SET, value)
        yield
    finally:
        try:
            _configure(case, name, _DELETE, back)
        except BaseException:
            case.cluster.close()
            raise


@contextmanager
def restarted(case: CaseContext, broker: int, name: str, value: str) -> Iterator[None]:
    """Restart a broker with another value of a setting that it reads only at its start.

    The case is left out where brokers run in containers.
    """
    need_local_processes(case, "a broker restarts with another file of settings")
    path = case.cluster.directory / "config" / f"broker-{broker}.properties"
    case.require(f"the settings of broker {broker} can be reached", path.is_file(), True)
    before = path.read_text(encoding="utf-8")
    try:
        with brokers.stopped(case, broker):
            # If a setting has several lines, the last one holds.
            path.write_text(f"{before}{name}={value}\n", encoding="utf-8")
        case.require(f"{name} of broker {broker}", _configured(case, name, broker), value)
        yield
    finally:
        try:
            with brokers.stopped(case, broker):
                path.write_text(before, encoding="utf-8")
        except BaseException:
            case.cluster.close()
            raise


@contextmanager
def quiet(case: CaseContext, broker: int, logger: str) -> Iterator[None]:
    """Let a broker log only warnings of one logger (KIP-412): a line per request costs it a quarter of its time."""

    def level(word: str) -> None:
        configs = [{"Name": logger, "ConfigOperation": _SET, "Value": word}]
        resource = {"ResourceType": _BROKER_LOGGERS, "ResourceName": str(broker), "Configs": configs}
        answer = case.client.call("IncrementalAlterConfigs", {"Resources": [resource]}, broker=broker)
        check(answer["Responses"][0]["ErrorCode"], f"{logger}={word}")

    level("WARN")
    try:
        yield
    finally:
        level("INFO")


def _configure(case: CaseContext, name: str, operation: int, value: str) -> None:
    config = {"Name": name, "ConfigOperation": operation, "Value": value if operation == _SET else None}
    resource = {"ResourceType": _BROKERS, "ResourceName": "", "Configs": [config]}
    answer = case.client.call("IncrementalAlterConfigs", {"Resources": [resource]})
    check(answer["Responses"][0]["ErrorCode"], f"{name}={value}")
    for broker in case.brokers:
        look = partial(_configured, case, name, broker)
        seen = case.poll_until(look, lambda each: each == value, within_s=SET_WITHIN_S)
        case.require(f"{name} of broker {broker}", seen, value)


def _configured(case: CaseContext, name: str, broker: int) -> str:
    resource = {"ResourceType": _BROKERS, "ResourceName": str(broker), "ConfigurationKeys": [name]}
    answer = case.client.call("DescribeConfigs", {"Resources": [resource]}, broker=broker)
    return str(answer["Results"][0]["Configs"][0]["Value"])
