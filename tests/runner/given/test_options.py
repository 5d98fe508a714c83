"""The options of a run on a cluster of the user: bounds for what it writes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.clusters.given.connection import ClusterConnection
from runner.given.options import DEFAULT_MB, DEFAULT_RECORDS_PER_S, GivenOptions, given_options
from runner.options import _refuse_contradictions


def options(**given: Any) -> SimpleNamespace:
    names = ("client_properties", "faults", "prefix", "max_mb", "max_records_per_s", "kafka_libs", "broker_command")
    names += ("server_properties", "topic_properties")
    plain = {**dict.fromkeys(names), "bootstrap": "kafka:9092", "kafka": "4.3.1", "runtime": "auto", "keep": False}
    return SimpleNamespace(**(plain | {"dry_run": False} | given))


JOB: dict[str, Any] = {"scripted": False, "other_job": ""}


def chosen(*, scripted: bool = False, **given: Any) -> GivenOptions:
    found = given_options(options(**given), watches=False, scripted=scripted, other_job="")
    assert found is not None
    return found


def test_a_budget_has_defaults_and_is_repeated_only_where_it_differs() -> None:
    """The line that repeats a run has no more options than the user gave."""
    plain, narrow = chosen(), chosen(max_mb=20, max_records_per_s=500)
    assert (plain.budget.megabytes, plain.budget.records_per_s) == (DEFAULT_MB, DEFAULT_RECORDS_PER_S)
    assert plain.written == "--bootstrap kafka:9092"
    assert narrow.written == "--bootstrap kafka:9092 --max-records-per-s 500 --max-mb 20"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_mb": 0}, "--max-mb must be 1 or more"),
        ({"max_records_per_s": 0}, "--max-records-per-s must be 300 or more"),
        ({"max_mb": 5, "bootstrap": None}, "--max-mb needs --bootstrap"),
        ({"max_records_per_s": 0, "bootstrap": None}, "--max-records-per-s needs --bootstrap"),
    ],
)
def test_a_budget_that_cannot_be_is_one_sentence(given: dict[str, Any], said: str) -> None:
    """Before anything is asked of the cluster."""
    with pytest.raises(pytest.UsageError, match=said):
        chosen(**given)


def test_a_watch_ends_after_its_time_or_when_it_is_stopped() -> None:
    """Every window is planned; without a time there are those of a day, and the command is repeated without it."""
    asked = [given_options(options(watch_for=time, window="60s"), watches=True, **JOB) for time in ("5m", None)]
    assert [(each.windows, each.until_stopped) for each in asked if each] == [(5, False), (1440, True)]
    assert [each.written.partition("9092")[2] for each in asked if each] == [
        " --for 300s --window 60s",
        " --window 60s",
    ]


def test_a_broker_may_be_a_program() -> None:
    """Its address is not known before it starts; the command is repeated as it was given."""
    found = chosen(scripted=True, bootstrap=None, broker_command="./broker --port {port}")
    assert found.program is not None
    assert found.connection.bootstrap == "127.0.0.1:{port}"
    assert found.written == "--broker-command './broker --port {port}'"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scripted": False, "bootstrap": None}, "--broker-command is for `tox -e protocol`"),
        ({}, "--broker-command starts the broker, so --bootstrap has no meaning"),
        ({"bootstrap": None, "broker_command": "./broker"}, r"--broker-command must contain \{port\}"),
    ],
)
def test_a_program_that_cannot_be_started_is_one_sentence(given: dict[str, Any], said: str) -> None:
    """Before anything is started."""
    with pytest.raises(pytest.UsageError, match=said):
        chosen(**({"scripted": True, "broker_command": "./broker {port}"} | given))


@pytest.mark.parametrize(("client", "refused"), [("franz-go", True), ("sarama@1.61.1", True), ("aiokafka", False)])
def test_clients_in_go_take_no_key_with_a_password(client: str, refused: bool) -> None:
    """It is said before the run, and not by a driver that ends."""
    locked = replace(
        chosen(), connection=ClusterConnection(bootstrap="kafka:9092", properties={"ssl.key.password": "x"})
    )
    usual = SimpleNamespace(manifest=None, pipeline=None, retain=1, repeat=0)
    with pytest.raises(pytest.UsageError, match=f"{client} takes a key without") if refused else nullcontext():
        _refuse_contradictions(usual, None, client=client, given=locked)  # type: ignore[arg-type]
