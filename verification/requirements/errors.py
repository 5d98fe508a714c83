"""What can be wrong with the normative data: mistakes of whoever edited it or asked it, never of a cluster.

::

    VerificationError
    └── NormativeDataError
        ├── CatalogueError    a file of the requirements catalogue
        ├── KnownBugsError    the file of known bugs
        └── ReleaseError      a release that is not a version number
"""

from __future__ import annotations

from verification.vocabulary.errors import VerificationError


class NormativeDataError(VerificationError):
    """The normative data cannot be used. Hint: the message names the file and the entry."""


class CatalogueError(NormativeDataError):
    """A requirement does not fit the catalogue's format. Hint: compare it with any other entry of its file."""


class KnownBugsError(NormativeDataError):
    """A known bug does not fit its format. Hint: compare it with any other entry of the file."""


class ReleaseError(NormativeDataError):
    """A release is not written as a version number. Hint: write it as Kafka does, for instance 4.3.1."""
