"""Says of the subject of a report that it is a build of your own, so that no reader takes it for a release."""

from __future__ import annotations

import re

from reports.model.conditions import NOT_RECORDED
from reports.model.report import Subject
from verification.vocabulary.releases import own_number, stated_version

#: The entry in the versions of a run with the commit that a build of your own states.
COMMIT = "kafka commit"
# A merged report joins the releases of its runs.
_JOINED = re.compile(r"[,/ ]+")


def own_builds(subject: Subject) -> tuple[str, ...]:
    """The names of the builds of your own among the releases of a subject."""
    return tuple(each for each in _JOINED.split(subject.release) if own_number(each))


def commit_of(subject: Subject) -> str:
    """The commit that a build states, or that it is not recorded."""
    return dict(subject.versions).get(COMMIT, NOT_RECORDED)


def build_note(subject: Subject) -> str:
    """A sentence on each build of your own: its version, its commit, the known bugs that count; empty for releases."""
    return " ".join(
        f"Kafka {each} is a build of your own and no release (version {stated_version(each)}, commit {commit_of(subject)}); "
        f"known bugs are those of {own_number(each)}."
        for each in own_builds(subject)
    )
