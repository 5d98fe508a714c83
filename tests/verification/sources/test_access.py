"""How the log's reader enters a listener: what librdkafka's settings mean for our own Fetch."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from verification.sources.access import Access, access
from verification.vocabulary.errors import CaptureError
from wire.sasl import Plain, Scram

WHO = {"sasl.username": "auditor", "sasl.password": "s3cret"}


@pytest.mark.parametrize("settings", [{}, {"security.protocol": "PLAINTEXT"}, {"check.crcs": "false"}])
def test_a_plain_listener_needs_nothing(settings: dict[str, str]) -> None:
    """Without security settings neither TLS nor SASL is spoken; other settings are librdkafka's business."""
    assert access(settings) == Access()


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        ("PLAIN", Plain(username="auditor", password="s3cret")),
        ("scram-sha-256", Scram(username="auditor", password="s3cret", digest="SHA-256")),
        ("SCRAM-SHA-512", Scram(username="auditor", password="s3cret", digest="SHA-512")),
    ],
)
@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_each_mechanism_is_spoken_as_it_is_named(mechanism: str, expected: Plain | Scram, name: str) -> None:
    """Both of librdkafka's names for the mechanism mean it, in any case of letters."""
    found = access({"security.protocol": "SASL_PLAINTEXT", name: mechanism, **WHO})
    assert found == Access(authentication=expected)


def test_tls_checks_name_and_certificate_unless_told_otherwise() -> None:
    """The defaults are librdkafka's: the certificate of the peer must be trusted and have its name."""
    strict = access({"security.protocol": "ssl"}).ssl_context
    nameless = access({"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "none"}).ssl_context
    blind = access({"security.protocol": "ssl", "enable.ssl.certificate.verification": "false"}).ssl_context
    assert strict is not None
    assert nameless is not None
    assert blind is not None
    assert (strict.check_hostname, strict.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert (nameless.check_hostname, nameless.verify_mode) == (False, ssl.CERT_REQUIRED)
    assert (blind.check_hostname, blind.verify_mode) == (False, ssl.CERT_NONE)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"security.protocol": "tls"}, "none of plaintext"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER", **WHO}, "needs sasl.oauthbearer.token"),
        ({"security.protocol": "sasl_ssl"}, "GSSAPI is none of"),
        ({"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}, "sasl.username and sasl.password"),
        ({"ssl.keystore.location": "store.p12"}, "setting ssl.keystore.location"),
        ({"security.protocol": "ssl", "ssl.ca.location": "/nonexistent.pem"}, "cannot be used"),
    ],
)
def test_what_cannot_be_honoured_is_refused(settings: dict[str, Any], said: str) -> None:
    """One sentence names the setting, and no secret is in it."""
    with pytest.raises(CaptureError, match=said) as refused:
        access(settings)
    assert "s3cret" not in str(refused.value)


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    """A file that OpenSSL cannot read is one sentence, not a traceback."""
    odd = tmp_path / "ca.pem"
    odd.write_text("not a certificate")
    with pytest.raises(CaptureError, match="cannot be used"):
        access({"security.protocol": "ssl", "ssl.ca.location": str(odd)})
