"""Waiver files: accepted ids, and waivers that are refused because they would never be looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.errors import UsageError
from reports.model.run_record import Acceptance
from runner.waivers import acceptances

WHOLE = '[[accept]]\nid = "KB-16"\nreason = "no single replicas here"\nuntil = 2027-03-31\n'


def written(directory: Path, text: str) -> Path:
    """A waiver file."""
    path = directory / "waivers.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_waiver_file_adds_to_the_command_line(tmp_path: Path) -> None:
    """The ids of both are accepted; those of the file have a reason and an end date."""
    second = WHOLE.replace("KB-16", "TXN-25").replace("2027-03-31", "2027-04-30")
    assert acceptances(("KB-05",), written(tmp_path, WHOLE + second)) == (
        Acceptance(id="KB-05", reason="given on the command line"),
        Acceptance(id="KB-16", reason="no single replicas here", until="2027-03-31"),
        Acceptance(id="TXN-25", reason="no single replicas here", until="2027-04-30"),
    )


def test_a_file_without_waivers_accepts_nothing(tmp_path: Path) -> None:
    """A waiver that was removed is no longer accepted."""
    assert acceptances((), written(tmp_path, "# all mended\n")) == ()


@pytest.mark.parametrize(
    "text",
    [
        WHOLE.replace('reason = "no single replicas here"\n', ""),
        WHOLE.replace('"no single replicas here"', '""'),
        WHOLE.replace("until = 2027-03-31\n", ""),
        WHOLE.replace("2027-03-31", '"some day"'),
        WHOLE.replace('id = "KB-16"\n', ""),
        WHOLE.replace("KB-16", "KB-999"),
        "[accept]\n",
        'accept = ["KB-16"]\n',
    ],
    ids=["no reason", "empty reason", "no end", "an end in words", "no id", "unknown id", "an empty table", "bare ids"],
)
def test_an_unfit_waiver_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    """Without id, reason and end date it is a usage error that names the file or the id."""
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=r"waivers\.toml|KB-999") as refused:
        acceptances((), path)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 4
