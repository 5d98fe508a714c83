"""The errors that capturing and judging evidence raise.

::

    VerificationError
    ├── SessionError            no Spark session
    │   └── JavaUnfitError      no Java, or one that Spark refuses
    ├── CaptureError            a capture could not be completed
    │   ├── ReaderTimeoutError  a reader did not reach its pinned end in time
    │   └── SegmentDamagedError a segment file holds bytes that cannot be a log
    │       └── SegmentChecksumError  the CRC of one of its batches does not hold
    ├── DataDirectoryError      a directory that is not the data directory of a stopped broker
    ├── UnfitEvidenceError      a run directory that cannot be judged: incomplete, foreign or cut
    ├── UnknownFloorError       a coverage floor that is not counted
    ├── UnfitScriptError        a script.json that cannot be judged, see `script`
    ├── CatalogueError          a file of the requirements catalogue
    ├── KnownBugsError          the file of known bugs
    └── ReleaseError            a release that is not a version number

None of these is a verdict about the subject. `history_file.UnfitHistoryError` and `experiment.UnfitExperimentError` are
raised by the readers of single files; the loader of a run directory turns them into UnfitEvidenceError.
"""

from __future__ import annotations


class VerificationError(Exception):
    """The judge could not do its work. The subclasses say why; none is about the subject."""


class SessionError(VerificationError):
    """No Spark session started. Hint: the message holds the last lines that Spark's JVM printed."""


class JavaUnfitError(SessionError):
    """There is no Java that Spark accepts. Hint: set JAVA_HOME to a Java 17 or later."""


class CaptureError(VerificationError):
    """A capture could not be completed. Hint: the cluster must be up and lead every partition."""


class ReaderTimeoutError(CaptureError):
    """A reader did not reach the pinned end of its range. Hint: the message names the offset where it stood."""


class SegmentDamagedError(CaptureError):
    """A segment file holds bytes that cannot be a log. Hint: the message names file and byte; compare with a copy."""


class SegmentChecksumError(SegmentDamagedError):
    """The CRC of a batch in a segment file does not hold: its bytes were changed after they were written."""


class DataDirectoryError(VerificationError):
    """A directory is no data directory, or is in use. Hint: stop the broker, and name an entry of `log.dirs`."""


class UnfitEvidenceError(VerificationError):
    """A run directory is incomplete, foreign or cut. Hint: the message names the file; make the run again."""


class UnknownFloorError(VerificationError):
    """A scenario asks for a coverage floor that is not counted. Hint: the message lists those that are."""


class CatalogueError(VerificationError):
    """A requirement does not fit the catalogue's format. Hint: compare it with any other entry of its file."""


class KnownBugsError(VerificationError):
    """A known bug does not fit its format. Hint: compare it with any other entry of the file."""


class ReleaseError(VerificationError):
    """A release is not written as a version number. Hint: write it as Kafka does, for instance 4.3.1."""
