"""TLS and SASL for our own Fetch, from the settings of librdkafka.

Users who capture their own cluster write `settings` once. The consumer captures pass them to librdkafka; this module
turns them into arguments of `wire`. A security setting that `wire` does not support is refused and never ignored: a
reader with other security than configured would prove something about another listener.

Free of pyspark. Source of names and defaults: librdkafka's CONFIGURATION.md.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verification.sources.client_credentials import ClientCredentials
from verification.vocabulary.errors import CaptureError
from wire.connection import Authentication
from wire.sasl import Bearer, Plain, Scram

_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_TLS = (
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
)
_SASL = ("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password")
_ID, _SECRET, _SCOPE = (f"sasl.oauthbearer.{each}" for each in ("client.id", "client.secret", "scope"))
_ENDPOINT, _METHOD = "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.method"
_OAUTH = (_METHOD, _ID, _SECRET, _SCOPE, _ENDPOINT)
_HTTPS = ("https.ca.location", "https.ca.pem")
KNOWN = ("security.protocol", *_TLS, *_SASL, *_OAUTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Arguments of `wire.client.Client`; both are None for a listener without TLS and SASL."""

    ssl_context: ssl.SSLContext | None = None
    authentication: Authentication | None = None


def access(settings: Mapping[str, Any]) -> Access:
    """The access that settings of librdkafka describe; settings that are not about security are ignored here.

    Raises CaptureError for a security setting, protocol or mechanism that is unknown here, a name or password that is
    missing, and a file that cannot be read.
    """
    texts = {name: str(value) for name, value in settings.items()}
    for name in texts:
        if name.startswith(("ssl.", "sasl.", "security.", "enable.ssl", "enable.sasl")) and name not in KNOWN:
            raise CaptureError(f"the log cannot be read with the setting {name}; known are {', '.join(KNOWN)}")
    protocol = texts.get("security.protocol", "plaintext").lower()
    if protocol not in _PROTOCOLS:
        raise CaptureError(f"security.protocol={protocol} is none of {', '.join(_PROTOCOLS)}")
    return Access(
        ssl_context=_context(texts) if protocol.endswith("ssl") else None,
        authentication=_authentication(texts) if protocol.startswith("sasl") else None,
    )


def _context(texts: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=texts.get("ssl.ca.location"), cadata=texts.get("ssl.ca.pem"))
        with _own_certificate(texts) as (certificate, key):
            if certificate:
                # Without a password OpenSSL would prompt for it.
                context.load_cert_chain(certificate, key, lambda: texts.get("ssl.key.password", ""))
    except (OSError, ValueError) as error:
        raise CaptureError(f"a certificate or key of the settings cannot be used: {error}") from error
    context.check_hostname = texts.get("ssl.endpoint.identification.algorithm", "https").lower() != "none"
    if texts.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextmanager
def _own_certificate(texts: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The files of the client's own certificate and key, if it has one. OpenSSL reads them from files only."""
    if "ssl.certificate.pem" not in texts:
        yield texts.get("ssl.certificate.location", ""), texts.get("ssl.key.location")
        return
    # Only this user can read it, and it is gone before anything is sent.
    written, file = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(written, "w", encoding="utf-8") as open_file:
            open_file.write(f"{texts.get('ssl.key.pem', '')}\n{texts['ssl.certificate.pem']}\n")
        yield file, None
    finally:
        Path(file).unlink()


def _authentication(texts: Mapping[str, str]) -> Authentication:
    # librdkafka's own default is GSSAPI, which is unknown here; so the setting is required.
    mechanism = texts.get("sasl.mechanism", texts.get("sasl.mechanisms", "GSSAPI")).upper()
    if mechanism not in _MECHANISMS:
        raise CaptureError(f"sasl.mechanism={mechanism} is none of {', '.join(_MECHANISMS)}")
    needed = (_ENDPOINT, _ID, _SECRET) if mechanism == "OAUTHBEARER" else ("sasl.username", "sasl.password")
    missing = [name for name in needed if not texts.get(name)]
    if missing:
        raise CaptureError(f"sasl.mechanism={mechanism} needs {' and '.join(missing)}")
    if mechanism == "OAUTHBEARER":
        return Bearer(token=_credentials(texts).token)
    name, password = texts["sasl.username"], texts["sasl.password"]
    if mechanism == "PLAIN":
        return Plain(username=name, password=password)
    return Scram(username=name, password=password, digest=mechanism.removeprefix("SCRAM-"))


def _credentials(texts: Mapping[str, str]) -> ClientCredentials:
    location, certificates = (texts.get(each) for each in _HTTPS)
    try:
        # An issuer may have another authority than the brokers.
        trusts = ssl.create_default_context(cafile=location, cadata=certificates)
        return ClientCredentials(
            endpoint=texts[_ENDPOINT],
            client=texts[_ID],
            secret=texts[_SECRET],
            scope=texts.get(_SCOPE, ""),
            trusts=trusts,
        )
    except (OSError, ValueError) as error:
        raise CaptureError(f"{_ENDPOINT}={texts[_ENDPOINT]} cannot be used: {error}") from error
