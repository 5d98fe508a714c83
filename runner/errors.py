"""Errors that are about the machine, the network or us, and end one scenario or one case, not the run."""

from __future__ import annotations

from chaos.errors import ChaosError
from fixtures.errors import OnceproofError
from verification.vocabulary.errors import VerificationError
from wire.errors import WireError

ENVIRONMENT_ERRORS = (OnceproofError, ChaosError, VerificationError, WireError, OSError)
