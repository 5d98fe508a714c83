"""Tokens by client credentials, from a real HTTP server."""

from __future__ import annotations

import pytest

from fixtures.clusters.network.certificates import TokenIssuer
from tests.support.servers.token_issuer import issuing
from verification.sources.client_credentials import ClientCredentials
from wire.errors import ConnectError


def test_one_token_serves_until_it_ages() -> None:
    """The issuer is asked once; its scope is that of the settings."""
    asked: list[str] = []
    with issuing(TokenIssuer(), {"ann": "s3cret"}, asked) as endpoint:
        found = ClientCredentials(endpoint=endpoint, client="ann", secret="s3cret", scope="kafka")
        first = found.token()
        assert found.token() == first
        assert first.count(".") == 2
        found._until = 0.0
        found.token()
    assert asked == ["kafka", "kafka"]


def test_a_wrong_secret_is_named_without_it() -> None:
    """The status of the answer says enough."""
    with issuing(TokenIssuer(), {"ann": "s3cret"}) as endpoint, pytest.raises(ConnectError, match="HTTP 401") as found:
        ClientCredentials(endpoint=endpoint, client="ann", secret="hunter2").token()
    assert "hunter2" not in str(found.value)


def test_an_issuer_that_is_down_is_named() -> None:
    """No connection was made, and nothing was sent to a broker."""
    with pytest.raises(ConnectError, match=r"http://127\.0\.0\.1:1/token gave no token"):
        ClientCredentials(endpoint="http://127.0.0.1:1/token", client="ann", secret="s3cret").token()


def test_an_endpoint_that_is_no_url_is_refused() -> None:
    """`urllib` would read files."""
    with pytest.raises(ValueError, match="no http or https URL"):
        ClientCredentials(endpoint="file:///etc/passwd", client="ann", secret="s3cret")
