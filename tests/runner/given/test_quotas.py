"""The quotas that the preflight shows, from the answers of a scripted broker."""

from __future__ import annotations

from typing import Any

from runner.given.quotas import quotas


class Broker:
    """Answers DescribeClientQuotas by the kind of the entity."""

    def __init__(self, entries: dict[tuple[str, str | None], dict[str, float]], error: int = 0) -> None:
        self.entries, self.error = entries, error

    def call(self, api: str, body: dict[str, Any]) -> dict[str, Any]:
        assert (api, body["Strict"]) == ("DescribeClientQuotas", False)
        (component,) = body["Components"]
        assert (component["MatchType"] == 0) is (component["Match"] is not None)
        key = (component["EntityType"], component["Match"])
        values = [{"Key": name, "Value": value} for name, value in self.entries.get(key, {}).items()]
        entity = [{"EntityType": key[0], "EntityName": key[1]}]
        return {"ErrorCode": self.error, "Entries": [{"Entity": entity, "Values": values}] if values else None}


def shown(broker: Any) -> list[str]:
    return list(quotas(broker, "owner"))


def test_quotas_of_the_user_and_defaults_are_shown() -> None:
    """A default has no name."""
    found = shown(Broker({("user", "owner"): {"producer_byte_rate": 1048576.0}, ("client-id", None): {"x": 2.5}}))
    assert found == ["quota of user owner: producer_byte_rate 1048576", "quota of client-id (default): x 2.5"]


def test_that_there_are_none_is_said() -> None:
    """A reader need not wonder whether they were asked for."""
    assert shown(Broker({})) == ["no quota holds for this principal"]


def test_that_they_may_not_be_asked_for_is_said() -> None:
    """It is no reason to end: a run needs no right to see them."""
    (line,) = shown(Broker({}, error=31))
    assert line.startswith(
        "quotas are not known: DescribeClientQuotas: the broker answered CLUSTER_AUTHORIZATION_FAILED"
    )
