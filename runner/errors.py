"""Errors of the machine, the network or the harness, which end one scenario or one case and not the run."""

from __future__ import annotations

from chaos.errors import ChaosError
from fixtures.errors import OnceproofError
from verification.vocabulary.errors import VerificationError
from wire.errors import WireError

ENVIRONMENT_ERRORS = (OnceproofError, ChaosError, VerificationError, WireError, OSError)
