"""Tokens for SASL OAUTHBEARER, by the client credentials grant (RFC 6749 §4.4), as Kafka's own clients ask for them.

One POST to the token endpoint with the client's id and secret (HTTP Basic), the answer has `access_token` and, mostly,
`expires_in` in seconds (KIP-768). A token is used until four fifths of its life have passed, as by kafka-clients.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field

from wire.errors import ConnectError

#: An issuer that takes longer is down.
_ANSWERS_WITHIN_S = 10.0
_USED_OF_LIFE = 0.8
_ANSWER_BYTES_MAX = 1 << 20


@dataclass(slots=True, kw_only=True)
class ClientCredentials:
    """A client's id and secret at an issuer. Raises ValueError for an endpoint that is no http or https URL."""

    endpoint: str
    client: str
    secret: str = field(repr=False)
    scope: str = ""
    trusts: ssl.SSLContext | None = field(default=None, repr=False)
    _token: str = field(default="", init=False, repr=False)
    _until: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if urllib.parse.urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise ValueError("it is no http or https URL")

    def token(self) -> str:
        """A token that is valid now. Raises ConnectError when the issuer gives none."""
        if time.monotonic() >= self._until:
            asked = time.monotonic()
            answer = self._ask()
            self._token = str(answer["access_token"])
            self._until = asked + _USED_OF_LIFE * float(str(answer.get("expires_in", 0)))
        return self._token

    def _ask(self) -> dict[str, object]:
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        login = base64.b64encode(f"{self.client}:{self.secret}".encode()).decode("ascii")
        request = urllib.request.Request(  # noqa: S310 - http and https alone, see __post_init__
            self.endpoint,
            data=urllib.parse.urlencode(form).encode("ascii"),
            headers={"Authorization": f"Basic {login}", "Accept": "application/json"},
        )
        try:
            trusts = self.trusts if self.endpoint.startswith("https:") else None
            with urllib.request.urlopen(request, timeout=_ANSWERS_WITHIN_S, context=trusts) as answer:  # noqa: S310
                found = json.loads(answer.read(_ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as error:
            with error:
                raise ConnectError(f"the issuer at {self.endpoint} gave no token: HTTP {error.code}") from error
        except (OSError, ValueError) as error:
            raise ConnectError(f"the issuer at {self.endpoint} gave no token: {error}") from error
        if not isinstance(found, dict) or not found.get("access_token"):
            raise ConnectError(f"the issuer at {self.endpoint} gave no token: its answer has no access_token")
        return found
